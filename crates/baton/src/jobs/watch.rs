//! `baton jobs watch`: following jobs to their ends, by their events instead of by asking over and
//! over.

use super::show::progress;
use super::{job_path, jobs_path};
use crate::args::{ClientArgs, WatchArgs};
use crate::client::Client;
use crate::fault::Fault;
use crate::listen::{Listener, Portion};
use crate::paint::{bad, bold, busy, dim, good, warn};
use crate::print;
use baton_core::job::State;
use baton_core::{JobId, ProjectId};
use baton_wire::{Event, Job, JobList, JobState, Progress, limit};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;

/// Ends that are named when not all completed; the rest is counted.
const NAMED: usize = 5;
/// All that has happened, or what happens next.
const NEXT: Portion = Portion { events: limit::EVENTS, wait_ms: limit::WAIT_MS };

pub async fn run(args: WatchArgs) -> Result<(), Fault> {
    let mut client = Client::new(&args.client)?;
    // The place to listen from is taken before looking, so nothing falls in between.
    let mut listener = Listener::at_the_end(&client).await?;
    client.be_patient();
    let mut watch = Watch { client: &client, args: &args.client, project: args.project, jobs: BTreeMap::new() };
    for job in watch.look(&args.ids).await? {
        watch.meet(&job)?;
    }
    while watch.jobs.values().any(|state| !state.is_ended()) {
        let events = listener.hear(NEXT).await?;
        for event in &events {
            watch.hear(event).await?;
        }
        if args.client.json {
            watch.show(&events).await?;
        }
    }
    watch.verdict()
}

/// Waits until a job has ended.
pub async fn ended(client: &Client, id: JobId) -> Result<Job, Fault> {
    let subject = id.to_string();
    let mut listener = Listener::at_the_end(client).await?;
    loop {
        let job: Job = client.get(&job_path(id), &[]).await?;
        if job.state.is_ended() {
            return Ok(job);
        }
        while !listener.hear(NEXT).await?.iter().any(|event| event.subject == subject) {}
    }
}

struct Watch<'a> {
    client: &'a Client,
    args: &'a ClientArgs,
    project: Option<ProjectId>,
    jobs: BTreeMap<JobId, JobState>,
}

impl Watch<'_> {
    /// The jobs to begin with: those that were named, or those of the project that have not ended.
    async fn look(&self, ids: &[JobId]) -> Result<Vec<Job>, Fault> {
        let mut jobs = Vec::new();
        for id in ids {
            jobs.push(self.client.get(&job_path(*id), &[]).await?);
        }
        let Some(project) = &self.project else { return Ok(jobs) };
        let path = jobs_path(project);
        let live = State::ALL.into_iter().filter(|state| !state.is_ended()).map(State::as_str);
        let mut query = vec![("state", live.collect::<Vec<_>>().join(",")), ("limit", limit::JOBS.to_string())];
        loop {
            let page: JobList = self.client.get(&path, &query).await?;
            jobs.extend(page.jobs);
            query.truncate(2);
            match page.next_cursor {
                Some(cursor) => query.push(("cursor", cursor)),
                None => return Ok(jobs),
            }
        }
    }

    fn meet(&mut self, job: &Job) -> Result<(), Fault> {
        self.jobs.insert(job.id, job.state);
        if self.args.json {
            return print::json_line(job);
        }
        let more = job.error.clone().or_else(|| job.progress.as_ref().map(progress)).unwrap_or_default();
        line(&job.created_at, job.id, &job.state.to_string(), &more)
    }

    async fn hear(&mut self, event: &Event) -> Result<(), Fault> {
        let Some(id) = self.concerns(event) else { return Ok(()) };
        let state = event.data["state"].as_str().and_then(State::parse);
        let state = state.map_or(JobState::Queued, JobState::from);
        self.jobs.insert(id, state);
        if self.args.json {
            return Ok(());
        }
        let more = match event.kind.as_str() {
            "job.progress" => self.progress(event, id).await?,
            _ => more(event, id),
        };
        line(&event.at, id, event.kind.trim_start_matches("job."), &more)
    }

    /// How far a job is. The history has the number only: the note must be asked for, and may
    /// be another one by now.
    async fn progress(&self, event: &Event, id: JobId) -> Result<String, Fault> {
        let percent = event.data["percent"].as_u64().and_then(|percent| u8::try_from(percent).ok());
        let now = self.ask(id).await?.and_then(|job| job.progress).filter(|now| now.percent == percent);
        Ok(progress(&now.unwrap_or(Progress { percent, note: None })))
    }

    /// Retention may have removed it already.
    async fn ask(&self, id: JobId) -> Result<Option<Job>, Fault> {
        match self.client.get(&job_path(id), &[]).await {
            Ok(job) => Ok(Some(job)),
            Err(fault) if fault.is("job_not_found") => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// The job that an event is about, if it is watched and has not ended.
    fn concerns(&self, event: &Event) -> Option<JobId> {
        let id: JobId = event.subject.parse().ok()?;
        let ours = match self.jobs.get(&id) {
            Some(state) => !state.is_ended(),
            None => self.project.as_ref().is_some_and(|project| event.data["project"] == project.as_str()),
        };
        ours.then_some(id)
    }

    /// The jobs that events were about, as they stand now.
    async fn show(&self, events: &[Event]) -> Result<(), Fault> {
        let about = |event: &Event| event.subject.parse::<JobId>().ok().filter(|id| self.jobs.contains_key(id));
        for id in events.iter().filter_map(about).collect::<BTreeSet<_>>() {
            if let Some(job) = self.ask(id).await? {
                print::json_line(&job)?;
            }
        }
        Ok(())
    }

    fn verdict(&self) -> Result<(), Fault> {
        let bad: Vec<_> = self.jobs.iter().filter(|(_, state)| **state != JobState::Completed).collect();
        if !self.args.json {
            let done = self.jobs.len() - bad.len();
            writeln!(print::out(), "{}", dim(format_args!("{done} of {} completed", self.jobs.len())))?;
        }
        if bad.is_empty() {
            return Ok(());
        }
        let mut detail = format!("{} of {} jobs did not complete:", bad.len(), self.jobs.len());
        for (id, state) in bad.iter().take(NAMED) {
            let _ = write!(detail, " {id} ({state})");
        }
        if bad.len() > NAMED {
            let _ = write!(detail, " and {} more", bad.len() - NAMED);
        }
        Err(Fault::new("jobs_not_completed", detail).hint("see why with: baton jobs get JOB"))
    }
}

/// What is worth knowing about an event besides its name.
fn more(event: &Event, id: JobId) -> String {
    let data = &event.data;
    let reason = data["reason"].as_str().unwrap_or_default();
    match event.kind.as_str() {
        "job.started" => format!("attempt {}", data["attempt"]),
        "job.retry_scheduled" => format!("{reason}; again in {} ms", data["delay_ms"]),
        "job.asked" => format!("answer with: baton decisions list --subject {id}"),
        _ => reason.to_owned(),
    }
}

fn line(at: &baton_wire::Time, id: JobId, what: &str, more: &str) -> Result<(), Fault> {
    let mut out = print::out();
    write!(out, "{}  {}  ", dim(super::seconds(*at)), bold(id))?;
    let padded = if more.is_empty() { what.to_owned() } else { format!("{what:<16}") };
    match what {
        "completed" => write!(out, "{}", good(padded))?,
        "failed" => write!(out, "{}", bad(padded))?,
        "cancelled" | "retry_scheduled" | "recovered" | "asked" => write!(out, "{}", warn(padded))?,
        _ => write!(out, "{}", busy(padded))?,
    }
    if !more.is_empty() {
        write!(out, "  {more}")?;
    }
    writeln!(out)?;
    out.flush()?;
    Ok(())
}
