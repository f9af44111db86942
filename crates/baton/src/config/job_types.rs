//! `[job_types.NAME]` in the file: job types that workers serve, for every org.

use super::invalid;
use crate::fault::Fault;
use baton_core::TypeName;
use baton_core::definition::JobType;
use baton_core::limits::JOB_TYPES;
use baton_engine::check_schema;
use baton_wire::NewJobType;
use serde::Deserialize as _;
use std::collections::BTreeMap;
use toml::Table;

/// As the file has them, by their names.
pub type Section = BTreeMap<String, Table>;

pub fn declared(section: Section) -> Result<Vec<JobType>, Fault> {
    if section.len() > JOB_TYPES {
        return Err(invalid(format!("job_types: {} are declared, at most {JOB_TYPES} can be", section.len())));
    }
    section.into_iter().map(|(name, table)| one(&name, table)).collect()
}

fn one(name: &str, table: Table) -> Result<JobType, Fault> {
    let bad = |at: &str, why: String| invalid(format!("job_types.{name}{at}: {why}"));
    let known: TypeName = name.parse().map_err(|error| bad("", format!("{error}")))?;
    let new = NewJobType::deserialize(table).map_err(|error| bad("", error.message().to_owned()))?;
    let job_type = new.named(known);
    for (field, schema) in [(".payload_schema", &job_type.payload_schema), (".result_schema", &job_type.result_schema)]
    {
        if let Some(schema) = schema {
            check_schema(schema).map_err(|why| bad(field, why))?;
        }
    }
    Ok(job_type)
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::lane::{Limit, Rule};
    use baton_core::time::Span;

    fn read(text: &str) -> Result<Vec<JobType>, Fault> {
        #[derive(serde::Deserialize)]
        struct File {
            job_types: Section,
        }
        declared(toml::from_str::<File>(text).unwrap().job_types)
    }

    #[test]
    fn types_are_read_with_names_as_the_file_writes_them() {
        let all = read(
            "[job_types.\"mail.send\"]\nsummary = \"Sends mail.\"\nmax_attempts = 3\nlease = \"10s\"\n\
             lane = { key = \"mail\", limit = 2 }\nretry = { max_failures = 2 }\n\
             payload_schema = { type = \"object\", required = [\"to\"] }\n[job_types.pdf]\n",
        )
        .unwrap();
        assert_eq!((all[0].name.as_str(), all[0].max_attempts, all[0].lease), ("mail.send", Some(3), Span::secs(10)));
        assert!(matches!(&all[0].lane, Rule::Own { limit: Limit::At(2), .. }));
        assert_eq!((all[0].retry.max_failures, all[0].payload_schema.is_some()), (Some(2), true));
        assert_eq!(all[1], JobType::new("pdf".parse().unwrap(), 1, ""));
    }

    #[test]
    fn what_cannot_be_used_is_named_by_its_path() {
        for (text, part) in [
            ("[job_types.Loud]\n", "job_types.Loud"),
            ("[job_types.a]\ncolour = 1\n", "job_types.a: unknown field `colour`"),
            ("[job_types.a]\nlease = \"soon\"\n", "job_types.a: "),
            ("[job_types.a]\npayload_schema = { type = \"moon\" }\n", "job_types.a.payload_schema"),
        ] {
            let said = format!("{:?}", read(text).unwrap_err());
            assert!(said.contains(part), "{text}: {said}");
        }
    }
}
