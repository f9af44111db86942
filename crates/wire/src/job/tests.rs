use super::*;
use crate::orchestrator::OrchestratorJob;
use baton_core::event::Head;
use baton_core::job::{Aside, CancelRequest, Context, End, Kind, Lease};
use baton_core::lane::{LaneKey, Place};
use baton_core::{Micros, OrgId};
use serde_json::json;

const AT: Micros = Micros(1_700_000_000_000_000);
const THEN: &str = "2023-11-14T22:13:20.000000Z";

fn job(status: Status) -> job::Job {
    job::Job {
        org: OrgId::default(),
        id: "job_018bcfe568007001800000000000002a".parse().unwrap(),
        project: "shop".parse().unwrap(),
        kind: Kind { name: "echo".parse().unwrap(), version: 3 },
        priority: 250,
        status,
        lane: Place { key: LaneKey::new("project:shop").unwrap(), max: Some(1), kept: true },
        since: AT,
        attempts: 1,
        max_attempts: 2,
        failures: 1,
        max_failures: 4,
        token: 1,
        wakes: 0,
        created_at: AT,
        started_at: Some(AT),
        has_deadline: false,
        outside: true,
        dedupe: None,
        aside: None,
        head: Head::NONE,
    }
}

fn cold() -> Cold {
    Cold {
        payload: Json::of(&json!({ "b": 1, "a": [true] })),
        source_session: Some("s-1".parse().unwrap()),
        deadline_at: None,
        dedupe_key: Some("shop:s-1".to_owned()),
        requeued_from: None,
        schedule: None,
    }
}

#[test]
fn an_ended_job_has_every_field_of_the_contract_and_baton_s_own() {
    let ended = job(Status::Ended { how: End::Completed, at: AT });
    let result = Json::of(&json!({ "ok": 1 }));
    let shown = Job::with(&ended, &cold(), Left { result: Some(&result), ..Left::default() });
    let expected = json!({
        "id": "job_018bcfe568007001800000000000002a",
        "type": "echo",
        "version": 3,
        "projectId": "shop",
        "sourceSessionId": "s-1",
        "priority": "background",
        "state": "completed",
        "dedupeKey": "shop:s-1",
        "payload": { "a": [true], "b": 1 },
        "result": { "ok": 1 },
        "error": null,
        "attempts": 1,
        "maxAttempts": 2,
        "createdAt": THEN,
        "startedAt": THEN,
        "completedAt": THEN,
        "cancelRequestedAt": null,
        "runningContext": { "threadId": null, "turnId": null },
        "priorityNumber": 250,
        "failures": 1,
        "maxFailures": 4,
        "lane": "project:shop",
        "waitingFor": null,
        "dueAt": null,
        "progress": null,
        "question": null,
        "cancelReason": null, "lastError": null,
        "requeuedFrom": null,
        "requeuedAs": null,
        "scheduleId": null,
    });
    assert_eq!(serde_json::to_value(&shown).unwrap(), expected);
    assert_eq!(serde_json::from_value::<Job>(expected).unwrap(), shown);
}

#[test]
fn a_state_is_told_in_the_words_of_its_route() {
    let lease = Lease { worker: "n".parse().unwrap(), until: AT };
    let tool = |pause| Status::AwaitingTool { pause, due_at: None };
    let asking = |due_at| Status::AwaitingUser { due_at };
    let person = Some(WaitingFor::Person);
    for (status, state, outer, waiting_for) in [
        (Status::Queued { due_at: AT }, "queued", "queued", None),
        (Status::Executing { lease }, "executing", "running", None),
        (tool(Pause::Tool), "awaiting_tool", "running", Some(WaitingFor::Tool)),
        (tool(Pause::Retry), "awaiting_tool", "queued", Some(WaitingFor::Retry)),
        (asking(None), "awaiting_user_confirmation", "queued", person),
        (asking(Some(AT)), "awaiting_user_confirmation", "queued", None),
        (Status::Ended { how: End::Cancelled, at: AT }, "cancelled", "canceled", None),
    ] {
        let due = status.due_at().map(Time);
        let job = job(status);
        let shown = Job::with(&job, &cold(), Left::default());
        assert_eq!((shown.state.to_string().as_str(), shown.waiting_for), (state, waiting_for));
        assert_eq!(shown.due_at, due);
        // The same but for the words, and with both of them.
        let mut expected = serde_json::to_value(&shown).unwrap();
        expected["state"] = json!(outer);
        expected["phase"] = json!(state);
        let orchestrated = OrchestratorJob::with(&job, &cold(), Left::default());
        assert_eq!(serde_json::to_value(&orchestrated).unwrap(), expected);
        assert_eq!(serde_json::from_value::<OrchestratorJob>(expected).unwrap(), orchestrated);
    }
}

#[test]
fn what_is_beside_a_job_is_shown() {
    let mut asking = job(Status::AwaitingUser { due_at: None });
    asking.aside = Some(Box::new(Aside {
        context: Context { thread: Some("t-1".to_owned()), turn: None },
        progress: Some(job::Progress { percent: Some(40), note: Some("half".to_owned()) }),
        question: Some(json!({ "prompt": "sure?" })),
        ..Aside::default()
    }));
    let shown = Job::with(&asking, &cold(), Left::default());
    assert_eq!(shown.question, Some(json!({ "prompt": "sure?" })));
    assert_eq!(shown.progress, Some(Progress { percent: Some(40), note: Some("half".to_owned()) }));
    assert_eq!(shown.running_context.thread_id.as_deref(), Some("t-1"));
    asking.status = Status::AwaitingUser { due_at: Some(AT) };
    assert_eq!(Job::with(&asking, &cold(), Left::default()).question, None, "it was answered");
}

#[test]
fn a_failure_is_its_code_and_its_message() {
    let failure = Failure::new("boom", "it broke");
    let failed = job(Status::Ended { how: End::Failed, at: AT });
    let shown = Job::with(&failed, &cold(), Left { error: Some(&failure), ..Left::default() });
    assert_eq!(shown.error.as_deref(), Some("boom: it broke"));
    assert_eq!(shown.cancel_reason, None);
}

#[test]
fn a_cancellation_is_an_error_only_if_it_was_forced() {
    let cancelled = job(Status::Ended { how: End::Cancelled, at: AT });
    for (reason, error) in [
        ("user_requested", None),
        ("not needed any more", None),
        ("interrupt_timeout", Some("interrupt_timeout")),
        ("shutdown_timeout", Some("shutdown_timeout")),
    ] {
        let shown = Job::with(&cancelled, &cold(), Left { cancelled: Some(reason), ..Left::default() });
        assert_eq!(shown.cancel_reason.as_deref(), Some(reason));
        assert_eq!(shown.error.as_deref(), error, "{reason}");
    }
}

#[test]
fn a_request_to_cancel_shows_before_the_job_has_ended() {
    let lease = Lease { worker: "n".parse().unwrap(), until: AT };
    let mut told = job(Status::Executing { lease });
    let cancel = Some(CancelRequest { at: AT, reason: "enough".to_owned() });
    told.aside = Some(Box::new(Aside { cancel, ..Aside::default() }));
    let shown = Job::with(&told, &cold(), Left::default());
    assert_eq!((shown.state, shown.cancel_requested_at), (JobState::Executing, Some(Time(AT))));
    assert_eq!(shown.cancel_reason.as_deref(), Some("enough"));
}

#[test]
fn a_result_that_is_no_object_stands_under_value() {
    assert_eq!(Value::Object(object(&Json::of(&json!([1, 2])))), json!({ "value": [1, 2] }));
}
