//! `baton jobs batch`: many jobs, one a line.

use super::show::state;
use crate::args::BatchArgs;
use crate::client::{Client, Said, fresh_key};
use crate::fault::Fault;
use crate::paint::dim;
use crate::{input, print};
use baton_wire::{BatchTaken, NewBatch, NewJob};
use comfy_table::Row;
use std::io::Write as _;

pub async fn run(args: BatchArgs) -> Result<(), Fault> {
    let lines = parse(&input::read(&args.file)?)?;
    let (numbers, jobs): (Vec<usize>, Vec<NewJob>) = lines.into_iter().unzip();
    let key = args.idempotency_key.unwrap_or_else(fresh_key);
    let sent = Client::new(&args.client)?.post("/api/v1/jobs/batch", &NewBatch { jobs }, &key).await;
    let said: Said<BatchTaken> = sent.map_err(|fault| fault.in_file(&numbers))?;
    if said.replayed {
        writeln!(
            print::err(),
            "{}",
            dim("this key was used before: nothing was enqueued, this is the answer of then")
        )?;
    }
    let taken = said.value;
    if args.client.json {
        return print::json(&taken);
    }
    let row =
        |job: &baton_wire::Taken| Row::from(vec![print::text(job.job_id), state(job.state), print::text(&job.dedupe)]);
    print::table(&["JOB", "STATE", "REQUEST"], taken.jobs.iter().map(row))?;
    writeln!(print::out(), "{}", dim(format_args!("{} of {} are new", taken.enqueued, taken.jobs.len())))?;
    Ok(())
}

/// The jobs with the numbers of their lines; empty lines are passed over.
fn parse(text: &str) -> Result<Vec<(usize, NewJob)>, Fault> {
    let mut jobs = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let job = serde_json::from_str(line).map_err(|error| {
            Fault::usage(format!("line {}: {}", at + 1, wrong(&error))).hint(
                "a line looks like {\"type\":\"echo\",\"projectId\":\"demo\",\"payload\":{\"message\":\"hello\"}}",
            )
        })?;
        jobs.push((at + 1, job));
    }
    if jobs.is_empty() {
        return Err(Fault::usage("there is no job in the file"));
    }
    Ok(jobs)
}

/// What is wrong with a line. The library believes that it has read line 1 of something.
fn wrong(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).map_or_else(|| text.clone(), |what| format!("{what} at column {}", error.column()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_jobs_and_a_wrong_one_is_named() {
        let good = "{\"type\":\"noop\",\"projectId\":\"p\"}\n\n  \n{\"type\":\"echo\",\"projectId\":\"p\"}";
        let lines: Vec<_> = parse(good).unwrap().into_iter().map(|(line, job)| (line, job.kind.to_string())).collect();
        assert_eq!(lines, [(1, "noop".to_owned()), (4, "echo".to_owned())]);
        for (bad, part) in [
            ("", "no job"),
            ("\n{", "line 2: EOF while parsing an object at column 1"),
            ("{\"type\":\"noop\"}", "projectId"),
            ("[]", "line 1"),
        ] {
            let fault = format!("{:?}", parse(bad).err());
            assert!(fault.contains(part), "{bad:?}: {fault}");
        }
    }
}
