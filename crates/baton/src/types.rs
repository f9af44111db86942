//! `baton types`: what work means, as data.

use crate::args::{SetTypeArgs, TypeArgs, TypeListArgs, TypesArgs, TypesCommand};
use crate::client::Client;
use crate::fault::Fault;
use crate::pages::{self, Ask};
use crate::{input, print};
use baton_core::TypeName;
use baton_wire::source::{Format, read};
use baton_wire::{JobType, JobTypeList, LaneRule, NewJobType, ServedBy, TimeLimit};
use comfy_table::Row;
use serde_json::Value;

const TYPES: &str = "/api/v1/job-types";

pub async fn run(args: TypesArgs) -> Result<(), Fault> {
    match args.command {
        TypesCommand::Set(args) => set(args).await,
        TypesCommand::List(args) => list(args).await,
        TypesCommand::Show(args) => show(args).await,
    }
}

fn path(name: &TypeName) -> String {
    format!("{TYPES}/{name}")
}

async fn set(args: SetTypeArgs) -> Result<(), Fault> {
    let new = match &args.file {
        None => NewJobType::default(),
        Some(file) => {
            let bad = |why: String| Fault::usage(format!("{}: {why}", file.display()));
            // YAML reads JSON too, and says where it could not.
            let (value, _) = read(&input::read(file)?, Format::Yaml).map_err(|error| bad(error.to_string()))?;
            serde_json::from_value(value).map_err(|error| bad(error.to_string()))?
        }
    };
    let kept: JobType = Client::new(&args.client)?.put(&path(&args.name), &new).await?;
    shown(&kept, args.client.json)
}

async fn show(args: TypeArgs) -> Result<(), Fault> {
    let query: Vec<_> = args.version.map(|version| ("version", version.to_string())).into_iter().collect();
    let kept: JobType = Client::new(&args.client)?.get(&path(&args.name), &query).await?;
    shown(&kept, args.client.json)
}

async fn list(args: TypeListArgs) -> Result<(), Fault> {
    let ask = Ask { path: TYPES, query: Vec::new(), page: &args.page };
    let list: JobTypeList = pages::read(&Client::new(&args.client)?, ask).await?;
    if args.client.json {
        return print::json(&list);
    }
    let row = |kind: &JobType| {
        Row::from(vec![
            print::text(&kind.name),
            print::text(kind.version),
            print::text(served_by(kind)),
            print::text(lane(kind.lane.as_ref())),
            print::text(&kind.summary),
        ])
    };
    print::table(&["TYPE", "VERSION", "SERVED BY", "LANE", "WHAT IT DOES"], list.job_types.iter().map(row))?;
    print::more(&args.page, list.next_cursor.as_deref())
}

fn served_by(kind: &JobType) -> &'static str {
    match kind.served_by {
        ServedBy::Server => "server",
        ServedBy::Workers => "workers",
    }
}

fn lane(rule: Option<&LaneRule>) -> String {
    match rule {
        None => "its project's, one at a time".to_owned(),
        Some(LaneRule { key, limit: Some(limit), .. }) => format!("{}, {limit} at a time", key.as_str()),
        Some(LaneRule { key, limit: None, .. }) => format!("{}, any number at a time", key.as_str()),
    }
}

fn shown(kind: &JobType, json: bool) -> Result<(), Fault> {
    if json {
        return print::json(kind);
    }
    let as_configured = || "as configured".to_owned();
    let timeout = match kind.timeout {
        None => as_configured(),
        Some(TimeLimit::Never) => "never".to_owned(),
        Some(TimeLimit::After(span)) => span.to_string(),
    };
    let text = |value: &Value| serde_json::to_string(value).unwrap_or_default();
    let mut rows = vec![
        ("type", print::text(format!("{}, version {}", kind.name, kind.version))),
        ("served by", print::text(served_by(kind))),
        ("lane", print::text(lane(kind.lane.as_ref()))),
        ("priority", print::text(kind.priority)),
        ("attempts", print::text(kind.max_attempts.map_or_else(as_configured, |n| n.to_string()))),
        ("lease", print::text(kind.lease)),
        ("timeout", print::text(timeout)),
    ];
    if !kind.summary.is_empty() {
        rows.insert(1, ("does", print::text(&kind.summary)));
    }
    let dedupe = kind.dedupe.as_ref().and_then(|rule| serde_json::to_value(rule).ok());
    rows.extend(dedupe.iter().map(|rule| ("duplicates", print::text(text(rule)))));
    rows.extend(kind.payload_schema.iter().map(|schema| ("payload", print::text(text(schema)))));
    rows.extend(kind.result_schema.iter().map(|schema| ("result", print::text(text(schema)))));
    print::pairs(rows)
}
