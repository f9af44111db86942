//! Jobs.

use super::{Kind, OPERATORS, Queue, Wait, What, Why, asked, ended, sentence};
use crate::decision::Case;
use crate::job::{Job, Pause, Status};
use crate::run::{AGENT_JOB, OfRun};
use crate::time::Micros;

/// Why a job does not go on. `case` is the question that it waits for, `ending` what it left behind.
pub fn of_job(job: &Job, case: Option<&Case>, lane: Option<&Queue>, ending: Option<&str>, now: Micros) -> Why {
    let subject = match OfRun::check(job) {
        Ok(()) => "The job".to_owned(),
        Err(OfRun { run, .. }) => format!("The job, which works on an agent of {run},"),
    };
    let (summary, waits_for) = match &job.status {
        Status::Ended { .. } => ended(&subject, job.status.state().as_str(), ending.map(str::to_owned)),
        _ => {
            let wait = waits(job, case, lane, now);
            (sentence(&subject, std::slice::from_ref(&wait), now), vec![wait])
        }
    };
    let status = job.status.state().as_str().to_owned();
    Why { id: job.id.to_string(), kind: Kind::Job, status, since: Some(job.head.at), summary, waits_for }
}

fn waits(job: &Job, case: Option<&Case>, lane: Option<&Queue>, now: Micros) -> Wait {
    match &job.status {
        Status::Queued { due_at } if *due_at > now => Wait::new(What::Time, "it was enqueued for later")
            .since(job.created_at)
            .until(*due_at)
            .next("it can be handed out from then on"),
        Status::Executing { lease } => Wait::new(What::Call, format!("{} works on it", lease.worker))
            .since(job.started_at)
            .until(lease.until)
            .next("the worker says so again before that; if it does not, somebody else takes the job over")
            .who("its worker; it ends by itself"),
        Status::AwaitingTool { pause: Pause::Retry, due_at: Some(due) } if *due > now => {
            let last = job.aside.as_ref().and_then(|aside| aside.last_failure.as_ref());
            let why = last.map(|last| format!(" after {}: {}", last.code, last.message)).unwrap_or_default();
            let detail = format!("attempt {} of {} failed{why}", job.attempts, job.max_attempts);
            Wait::new(What::Retry, detail).since(job.head.at).until(*due).next("it is executed again")
        }
        Status::AwaitingTool { pause: Pause::Tool, due_at } if due_at.is_none_or(|due| due > now) => parked(job),
        Status::AwaitingUser { due_at: None } => match job.decision() {
            Some(id) => asked(What::Answer, id, case),
            None => Wait::new(What::Answer, "it has asked people").since(job.head.at),
        },
        _ => turn(job, lane, now),
    }
}

fn parked(job: &Job) -> Wait {
    if job.kind.name.as_str() == AGENT_JOB {
        return Wait::new(What::Signal, "its agent waits for time, signals or answers; ask why of the agent")
            .since(job.head.at)
            .until(job.status.due_at())
            .next("whatever the agent waits for wakes it");
    }
    let wait = Wait::new(What::Signal, "its handler parked it until something outside wakes it")
        .since(job.head.at)
        .until(job.status.due_at())
        .who(format!("{OPERATORS}: POST /api/v1/jobs/{}/wake", job.id))
        .id(job.id);
    match job.status.due_at() {
        Some(_) => wait.next("it goes on then, woken or not"),
        None => wait.next("it waits until it is woken"),
    }
}

/// It can be handed out: somebody must take it, and its lane must have room.
pub(super) fn turn(job: &Job, lane: Option<&Queue>, now: Micros) -> Wait {
    let key = &job.lane.key;
    let since = job.status.due_at().map_or(job.since, |due| due.min(now));
    match lane {
        Some(Queue { paused: true, .. }) => Wait::new(What::Lane, format!("the lane {key} is paused"))
            .since(since)
            .next("nothing of it is handed out until it is resumed")
            .who(format!("{OPERATORS}: POST /api/v1/lanes/{key}/resume"))
            .id(key),
        Some(Queue { max: Some(max), running, waiting, .. }) if running >= max => {
            let detail = format!("{running} of {max} places of the lane {key} are taken, and {waiting} wait for one");
            Wait::new(What::Lane, detail).since(since).next("it is handed out when its turn comes").id(key)
        }
        _ => Wait::new(What::Worker, untaken(job))
            .since(since)
            .next("it is handed out when its turn comes")
            .who("a node or a worker that does jobs of its type")
            .id(job.id),
    }
}

fn untaken(job: &Job) -> String {
    match job.attempts {
        0 => "no worker has taken it yet".to_owned(),
        begun => format!("no worker has gone on with it yet; {begun} of {} attempts were begun", job.max_attempts),
    }
}
