//! Jobs as tables.

use crate::fault::Fault;
use crate::print;
use baton_wire::{Job, JobState, Object, PriorityNumber, Progress, Time};
use comfy_table::{Cell, Color, Row};

/// One line of a list of jobs.
pub fn row(job: &Job) -> Row {
    Row::from(vec![
        Cell::new(job.id),
        Cell::new(&job.kind),
        waiting(job),
        Cell::new(PriorityNumber::kept(job.priority_number)),
        Cell::new(format!("{}/{}", job.attempts, job.max_attempts)),
        Cell::new(seconds(job.created_at)),
        Cell::new(job.completed_at.map(seconds).unwrap_or_default()),
    ])
}

pub fn state(state: JobState) -> Cell {
    Cell::new(state).fg(colour(state))
}

/// The state, and what the job waits for if it does.
fn waiting(job: &Job) -> Cell {
    match job.waiting_for {
        Some(what) => Cell::new(format!("{} ({})", job.state, what.as_str())).fg(colour(job.state)),
        None => state(job.state),
    }
}

const fn colour(state: JobState) -> Color {
    match state {
        JobState::Queued => Color::Yellow,
        JobState::Running => Color::Cyan,
        JobState::Completed => Color::Green,
        JobState::Failed => Color::Red,
        JobState::Canceled => Color::DarkGrey,
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
        ("job", Cell::new(job.id)),
        ("type", Cell::new(format!("{} (version {})", job.kind, job.version))),
        ("project", Cell::new(&job.project_id)),
        ("lane", Cell::new(&job.lane)),
        ("state", waiting(job)),
        ("priority", Cell::new(PriorityNumber::kept(job.priority_number))),
        ("attempts", Cell::new(format!("{} of {}", job.attempts, job.max_attempts))),
    ];
    if job.failures > 0 {
        rows.push(("failures", Cell::new(format!("{} of {}", job.failures, job.max_failures))));
    }
    rows.extend(job.source_session_id.iter().map(|session| ("session", Cell::new(session))));
    rows.extend(job.dedupe_key.iter().map(|key| ("dedupe key", Cell::new(key))));
    rows.extend(job.requeued_from.map(|id| ("repeats", Cell::new(id))));
    rows.extend(job.requeued_as.map(|id| ("repeated as", Cell::new(id))));
    rows.extend(job.schedule_id.map(|id| ("schedule", Cell::new(id))));
    rows.push(("created", Cell::new(job.created_at)));
    rows.extend(job.due_at.map(|time| ("due", Cell::new(time))));
    rows.extend(job.started_at.map(|time| ("started", Cell::new(time))));
    rows.extend(job.cancel_requested_at.map(|time| ("told to end", Cell::new(time))));
    rows.extend(job.completed_at.map(|time| ("ended", Cell::new(time))));
    rows.push(("payload", Cell::new(text(&job.payload))));
    rows.extend(job.progress.as_ref().map(|given| ("progress", Cell::new(progress(given)))));
    rows.extend(job.question.as_ref().map(|question| ("question", Cell::new(question).fg(Color::Yellow))));
    rows.extend(job.result.as_ref().map(|result| ("result", Cell::new(text(result)))));
    rows.extend(job.error.as_ref().map(|error| ("error", Cell::new(error).fg(Color::Red))));
    rows.extend(job.cancel_reason.as_ref().map(|reason| ("canceled for", Cell::new(reason))));
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
