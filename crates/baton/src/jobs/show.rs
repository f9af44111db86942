//! Jobs as tables.

use crate::fault::Fault;
use crate::print;
use baton_wire::{Job, JobState, Object, PriorityNumber, Progress, Time};
use comfy_table::{Cell, Color, Row};

/// One line of a list of jobs.
pub fn row(job: &Job) -> Row {
    Row::from(vec![
        print::text(job.id),
        print::text(&job.kind),
        waiting(job),
        print::text(PriorityNumber::kept(job.priority_number)),
        print::text(format!("{}/{}", job.attempts, job.max_attempts)),
        print::text(seconds(job.created_at)),
        print::text(job.completed_at.map(seconds).unwrap_or_default()),
    ])
}

pub fn state(state: JobState) -> Cell {
    print::text(state).fg(colour(state))
}

/// The state, and what the job waits for if it does.
fn waiting(job: &Job) -> Cell {
    match job.waiting_for {
        Some(what) => print::text(format!("{} ({})", job.state, what.as_str())).fg(colour(job.state)),
        None => state(job.state),
    }
}

const fn colour(state: JobState) -> Color {
    match state {
        JobState::Received | JobState::Queued | JobState::AwaitingUserConfirmation => Color::Yellow,
        JobState::Executing | JobState::AwaitingTool => Color::Cyan,
        JobState::Completed => Color::Green,
        JobState::Failed => Color::Red,
        JobState::Cancelled => Color::DarkGrey,
    }
}

/// Microseconds are for programs.
pub fn seconds(time: Time) -> String {
    let text = time.to_string();
    text.split_once('.').map_or(text.clone(), |(seconds, _)| format!("{seconds}Z"))
}

/// Such as `40 % half way`.
pub fn progress(progress: &Progress) -> String {
    let percent = progress.percent.map(|percent| format!("{percent} %"));
    let parts = [percent, progress.note.clone()];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

pub fn show(job: &Job, json: bool) -> Result<(), Fault> {
    if json {
        return print::json(job);
    }
    let text = |object: &Object| serde_json::to_string(object).unwrap_or_default();
    let mut rows = vec![
        ("job", print::text(job.id)),
        ("type", print::text(format!("{} (version {})", job.kind, job.version))),
        ("project", print::text(&job.project_id)),
        ("lane", print::text(&job.lane)),
        ("state", waiting(job)),
        ("priority", print::text(PriorityNumber::kept(job.priority_number))),
        ("attempts", print::text(format!("{} of {}", job.attempts, job.max_attempts))),
    ];
    if job.failures > 0 {
        rows.push(("failures", print::text(format!("{} of {}", job.failures, job.max_failures))));
    }
    rows.extend(job.source_session_id.iter().map(|session| ("session", print::text(session))));
    rows.extend(job.dedupe_key.iter().map(|key| ("dedupe key", print::text(key))));
    rows.extend(job.requeued_from.map(|id| ("repeats", print::text(id))));
    rows.extend(job.requeued_as.map(|id| ("repeated as", print::text(id))));
    rows.extend(job.schedule_id.map(|id| ("schedule", print::text(id))));
    rows.push(("created", print::text(job.created_at)));
    rows.extend(job.due_at.map(|time| ("due", print::text(time))));
    rows.extend(job.started_at.map(|time| ("started", print::text(time))));
    rows.extend(job.cancel_requested_at.map(|time| ("told to end", print::text(time))));
    rows.extend(job.completed_at.map(|time| ("ended", print::text(time))));
    rows.push(("payload", print::text(text(&job.payload))));
    rows.extend(job.progress.as_ref().map(|given| ("progress", print::text(progress(given)))));
    rows.extend(job.question.as_ref().map(|question| ("question", print::text(question).fg(Color::Yellow))));
    rows.extend(job.result.as_ref().map(|result| ("result", print::text(text(result)))));
    rows.extend(job.error.as_ref().map(|error| ("error", print::text(error).fg(Color::Red))));
    rows.extend(job.cancel_reason.as_ref().map(|reason| ("cancelled for", print::text(reason))));
    print::pairs(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_show_seconds() {
        let time: Time = "2026-01-31T09:30:00.123456Z".parse().unwrap();
        assert_eq!(seconds(time), "2026-01-31T09:30:00Z");
    }

    #[test]
    fn progress_is_a_number_a_note_or_both() {
        let said = |percent, note: Option<&str>| progress(&Progress { percent, note: note.map(str::to_owned) });
        assert_eq!(said(Some(40), Some("half way")), "40 % half way");
        assert_eq!(said(Some(40), None), "40 %");
        assert_eq!(said(None, Some("half way")), "half way");
        assert_eq!(said(None, None), "");
    }
}
