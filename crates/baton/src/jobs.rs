//! `baton jobs`: enqueue, get, list, wake.

use crate::args::{EnqueueArgs, GetArgs, JobsArgs, JobsCommand, ListArgs, PriorityArg, WakeArgs};
use crate::client::{Client, Said, fresh_key};
use crate::fault::Fault;
use crate::paint::dim;
use crate::print;
use baton_core::JobId;
use baton_engine::SystemClock;
use baton_store::Clock as _;
use baton_wire::{EventList, Job, JobList, JobState, NewJob, Object, Priority, TAIL, Time, limit};
use comfy_table::{Cell, Color, Row};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::path::Path;

/// The largest payload file that is read; the server has its own, smaller limit.
const PAYLOAD_FILE_BYTES: u64 = 16 * 1024 * 1024;

pub async fn run(args: JobsArgs) -> Result<(), Fault> {
    match args.command {
        JobsCommand::Enqueue(args) => enqueue(args).await,
        JobsCommand::Get(args) => get(args).await,
        JobsCommand::List(args) => list(args).await,
        JobsCommand::Wake(args) => wake(args).await,
    }
}

async fn enqueue(args: EnqueueArgs) -> Result<(), Fault> {
    let new = NewJob {
        payload: payload(args.payload.as_deref(), args.payload_file.as_deref())?,
        kind: args.kind,
        project_id: args.project,
        priority: args.priority.map(|priority| match priority {
            PriorityArg::Interactive => Priority::Interactive,
            PriorityArg::Background => Priority::Background,
        }),
        source_session_id: args.source_session,
        not_before: args.delay.map(|delay| Time(SystemClock.now().plus(delay))).or(args.not_before),
        deadline: args.deadline,
    };
    let body = serde_json::to_value(&new).map_err(|error| Fault::usage(error.to_string()))?;
    let key = args.key.unwrap_or_else(fresh_key);
    let client = Client::new(&args.client)?;
    let said: Said<Job> = client.post("/api/v1/jobs", &body, &key).await?;
    let mut job = said.value;
    if said.replayed {
        // The answer of then says how the job stood then.
        job = client.get(&job_path(job.id), &[]).await?;
        writeln!(print::err(), "{}", dim("this key was used before: nothing was enqueued, this is the job of then"))?;
    }
    if !args.wait {
        return if args.client.json { print::json(&job) } else { say_enqueued(&job) };
    }
    let job = ended(&client, job.id).await?;
    show(&job, args.client.json)?;
    match (job.state, job.error) {
        (JobState::Completed, _) => Ok(()),
        (state, None) => Err(Fault::new("job_not_completed", format!("job {} ended as {state}", job.id))),
        (state, Some(error)) => {
            Err(Fault::new("job_not_completed", format!("job {} ended as {state}: {error}", job.id)))
        }
    }
}

fn payload(inline: Option<&str>, file: Option<&Path>) -> Result<Object, Fault> {
    let text = match (inline, file) {
        (Some(text), _) => text.to_owned(),
        (None, Some(path)) => read(path)?,
        (None, None) => return Ok(Object::new()),
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Fault::usage("the payload must be a JSON object").hint("such as '{\"message\":\"hello\"}'")),
        Err(error) => Err(Fault::usage(format!("the payload is not JSON: {error}"))
            .hint("quote it for the shell: --payload '{\"message\":\"hello\"}'")),
    }
}

fn read(path: &Path) -> Result<String, Fault> {
    let cannot =
        |error: std::io::Error| Fault::new("file_unusable", format!("cannot read {}: {error}", path.display()));
    let mut text = String::new();
    let source: Box<dyn std::io::Read> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(std::fs::File::open(path).map_err(cannot)?)
    };
    let read = source.take(PAYLOAD_FILE_BYTES + 1).read_to_string(&mut text).map_err(cannot)?;
    if read as u64 > PAYLOAD_FILE_BYTES {
        let detail = format!("{} has more than {PAYLOAD_FILE_BYTES} bytes", path.display());
        return Err(Fault::new("file_unusable", detail));
    }
    Ok(text)
}

/// Follows a job to its end, by its events instead of by asking over and over.
async fn ended(client: &Client, id: JobId) -> Result<Job, Fault> {
    let path = job_path(id);
    let subject = id.to_string();
    // The place to listen from is taken before looking, so no ending falls in between.
    let here: EventList = client.get("/api/v1/events", &[("after", TAIL.to_owned())]).await?;
    let mut after = here.next;
    loop {
        let job: Job = client.get(&path, &[]).await?;
        if job.state.is_ended() {
            return Ok(job);
        }
        loop {
            let query = [
                ("after", after.clone()),
                ("limit", limit::EVENTS.to_string()),
                ("wait_ms", limit::WAIT_MS.to_string()),
            ];
            let heard: EventList = client.get("/api/v1/events", &query).await?;
            after = heard.next;
            if heard.events.iter().any(|event| event.subject == subject) {
                break;
            }
        }
    }
}

async fn get(args: GetArgs) -> Result<(), Fault> {
    let job: Job = Client::new(&args.client)?.get(&job_path(args.id), &[]).await?;
    show(&job, args.client.json)
}

async fn wake(args: WakeArgs) -> Result<(), Fault> {
    let key = args.key.unwrap_or_else(fresh_key);
    let path = format!("/api/v1/jobs/{}/wake", args.id);
    let said: Said<Job> = Client::new(&args.client)?.post(&path, &Value::Object(Object::new()), &key).await?;
    show(&said.value, args.client.json)
}

async fn list(args: ListArgs) -> Result<(), Fault> {
    let mut query = vec![("limit", args.limit.to_string())];
    query.extend(args.state.iter().map(|state| ("state", state.clone())));
    query.extend(args.cursor.map(|cursor| ("cursor", cursor)));
    let path = format!("/api/projects/{}/orchestrator/jobs", args.project);
    let list: JobList = Client::new(&args.client)?.get(&path, &query).await?;
    if args.client.json {
        return print::json(&list);
    }
    if list.jobs.is_empty() {
        writeln!(print::out(), "{}", dim("no jobs"))?;
        return Ok(());
    }
    print::table(&["JOB", "TYPE", "STATE", "PRIORITY", "ATTEMPTS", "CREATED", "ENDED"], list.jobs.iter().map(row))?;
    if let Some(cursor) = list.next_cursor {
        writeln!(print::out(), "{}", dim(format_args!("older ones: --cursor {cursor}")))?;
    }
    Ok(())
}

fn job_path(id: JobId) -> String {
    format!("/api/orchestrator/jobs/{id}")
}

fn row(job: &Job) -> Row {
    Row::from(vec![
        Cell::new(job.id),
        Cell::new(&job.kind),
        state(job.state),
        Cell::new(job.priority),
        Cell::new(format!("{}/{}", job.attempts, job.max_attempts)),
        Cell::new(seconds(job.created_at)),
        Cell::new(job.completed_at.map(seconds).unwrap_or_default()),
    ])
}

fn state(state: JobState) -> Cell {
    Cell::new(state).fg(match state {
        JobState::Queued => Color::Yellow,
        JobState::Running => Color::Cyan,
        JobState::Completed => Color::Green,
        JobState::Failed => Color::Red,
        JobState::Canceled => Color::DarkGrey,
    })
}

/// Microseconds are for programs.
fn seconds(time: Time) -> String {
    let text = time.to_string();
    text.split_once('.').map_or(text.clone(), |(seconds, _)| format!("{seconds}Z"))
}

fn say_enqueued(job: &Job) -> Result<(), Fault> {
    writeln!(print::out(), "{} is {}", job.id, job.state)?;
    Ok(())
}

fn show(job: &Job, json: bool) -> Result<(), Fault> {
    if json {
        return print::json(job);
    }
    let text = |object: &Object| serde_json::to_string(object).unwrap_or_default();
    let mut rows = vec![
        ("job", Cell::new(job.id)),
        ("type", Cell::new(format!("{} (version {})", job.kind, job.version))),
        ("project", Cell::new(&job.project_id)),
        ("state", state(job.state)),
        ("priority", Cell::new(job.priority)),
        ("attempts", Cell::new(format!("{} of {}", job.attempts, job.max_attempts))),
    ];
    rows.extend(job.source_session_id.iter().map(|session| ("session", Cell::new(session))));
    rows.push(("created", Cell::new(job.created_at)));
    rows.extend(job.started_at.map(|time| ("started", Cell::new(time))));
    rows.extend(job.completed_at.map(|time| ("ended", Cell::new(time))));
    rows.push(("payload", Cell::new(text(&job.payload))));
    rows.extend(job.result.as_ref().map(|result| ("result", Cell::new(text(result)))));
    rows.extend(job.error.as_ref().map(|error| ("error", Cell::new(error).fg(Color::Red))));
    let name = |name| Cell::new(name).add_attribute(comfy_table::Attribute::Bold);
    print::table(&[], rows.into_iter().map(|(key, value)| Row::from(vec![name(key), value])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_an_object_or_a_clear_no() {
        assert_eq!(payload(None, None).unwrap().len(), 0);
        assert_eq!(payload(Some(r#"{"a":1}"#), None).unwrap()["a"], 1);
        for bad in ["", "[]", "1", "{a:1}", "{\"a\":1"] {
            assert!(payload(Some(bad), None).is_err(), "{bad}");
        }
        assert!(payload(None, Some(Path::new("/nowhere"))).is_err());
    }

    #[test]
    fn tables_show_seconds() {
        let time: Time = "2026-01-31T09:30:00.123456Z".parse().unwrap();
        assert_eq!(seconds(time), "2026-01-31T09:30:00Z");
    }
}
