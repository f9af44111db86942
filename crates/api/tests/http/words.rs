//! The words for the states of jobs: Baton's own under `/api/v1`, the orchestrator's on its routes,
//! and both of them understood everywhere.

use crate::support::Server;
use baton_core::JobId;
use baton_wire::{BatchTaken, EnqueuedJob, JobList, JobState, OrchestratorJob, OrchestratorState};
use serde_json::{Value, json};
use std::collections::BTreeMap;

on_both_databases!(
    a_job_is_shown_in_the_words_of_the_route,
    a_list_is_filtered_by_the_words_of_both,
    a_page_holds_as_many_as_asked_for_though_others_stand_between,
    an_unknown_word_is_answered_with_all_that_are_known,
);

const OWN: &str = "/api/v1/projects/p/jobs";
const OUTER: &str = "/api/projects/p/orchestrator/jobs";

fn echo(payload: Value) -> Value {
    json!({ "type": "echo", "projectId": "p", "payload": payload })
}

/// One job in each state that lasts, by that state: a lane runs one at a time, so they are made in
/// an order in which each still gets its turn.
async fn one_of_each(server: &Server) -> BTreeMap<JobState, JobId> {
    let mut jobs = BTreeMap::new();
    for (payload, moved, state) in [
        (json!({}), "job.completed", JobState::Completed),
        (json!({ "fail": "deterministic" }), "job.failed", JobState::Failed),
        (json!({ "ask": true }), "job.asked", JobState::AwaitingUserConfirmation),
        (json!({ "wait": true }), "job.parked", JobState::AwaitingTool),
    ] {
        let job = server.enqueue(echo(payload)).await;
        assert_eq!(server.until(job.id, moved).await.state, state);
        jobs.insert(state, job.id);
    }
    let cancelled = server.enqueue(echo(json!({}))).await;
    server.post(&format!("/api/v1/jobs/{}/cancel", cancelled.id), &json!({})).await.ok::<Value>();
    jobs.insert(JobState::Cancelled, cancelled.id);
    jobs.insert(JobState::Queued, server.enqueue(echo(json!({}))).await.id);
    jobs
}

const fn outer(state: JobState) -> OrchestratorState {
    match state {
        JobState::Received | JobState::Queued | JobState::AwaitingUserConfirmation => OrchestratorState::Queued,
        JobState::Executing | JobState::AwaitingTool => OrchestratorState::Running,
        JobState::Completed => OrchestratorState::Completed,
        JobState::Failed => OrchestratorState::Failed,
        JobState::Cancelled => OrchestratorState::Canceled,
    }
}

async fn a_job_is_shown_in_the_words_of_the_route(server: &Server) {
    for (state, id) in one_of_each(server).await {
        let own: Value = server.get(&format!("/api/v1/jobs/{id}")).await.ok();
        assert_eq!((&own["state"], own.get("phase")), (&json!(state), None));
        let orchestrated: Value = server.get(&format!("/api/orchestrator/jobs/{id}")).await.ok();
        let mut expected = own;
        expected["state"] = json!(outer(state));
        expected["phase"] = json!(state);
        assert_eq!(orchestrated, expected, "everything else is the same");
        let list: JobList<OrchestratorJob> = server.get(OUTER).await.ok();
        let listed = list.jobs.iter().find(|listed| listed.job.id == id).unwrap();
        assert_eq!((listed.job.state, listed.phase), (outer(state), state));
    }
    let letters: JobList = server.get("/api/v1/dead-letters").await.ok();
    assert_eq!(letters.jobs.iter().map(|job| job.state).collect::<Vec<_>>(), [JobState::Failed]);
    let batch = json!({ "jobs": [echo(json!({}))] });
    let taken: BatchTaken = server.post("/api/v1/jobs/batch", &batch).await.parse();
    assert_eq!(taken.jobs[0].state, JobState::Queued);
    let cancel = format!("/api/orchestrator/jobs/{}/cancel", taken.jobs[0].job_id);
    let cancelled: OrchestratorJob = server.post(&cancel, &json!({})).await.ok();
    assert_eq!((cancelled.job.state, cancelled.phase), (OrchestratorState::Canceled, JobState::Cancelled));
    let requeue = format!("/api/v1/jobs/{}/requeue", letters.jobs[0].id);
    let requeued: EnqueuedJob = server.post(&requeue, &json!({})).await.parse();
    assert_eq!(requeued.job.state, JobState::Queued);
}

async fn a_list_is_filtered_by_the_words_of_both(server: &Server) {
    use JobState::{AwaitingTool, AwaitingUserConfirmation, Cancelled, Completed, Failed, Queued};
    let jobs = one_of_each(server).await;
    let found = async |base: &str, query: &str| {
        let list: Value = server.get(&format!("{base}?state={query}")).await.ok();
        let ids: Vec<JobId> = list["jobs"].as_array().unwrap().iter().map(|job| parse(&job["id"])).collect();
        jobs.iter().filter(|(_, id)| ids.contains(id)).map(|(state, _)| *state).collect::<Vec<_>>()
    };
    let everywhere: [(&str, &[JobState]); 12] = [
        ("", &[Queued, AwaitingTool, AwaitingUserConfirmation, Completed, Failed, Cancelled]),
        ("received", &[]),
        ("executing", &[]),
        ("running", &[AwaitingTool]),
        ("awaiting_tool", &[AwaitingTool]),
        ("awaiting_user_confirmation", &[AwaitingUserConfirmation]),
        ("completed", &[Completed]),
        ("failed", &[Failed]),
        ("cancelled", &[Cancelled]),
        ("canceled", &[Cancelled]),
        ("canceled,cancelled,failed", &[Failed, Cancelled]),
        ("awaiting_tool&state=completed", &[AwaitingTool, Completed]),
    ];
    for (query, expected) in everywhere {
        for base in [OWN, OUTER] {
            assert_eq!(found(base, query).await, expected, "{base} {query}");
        }
    }
    assert_eq!(found(OWN, "queued").await, [Queued]);
    assert_eq!(found(OUTER, "queued").await, [Queued, AwaitingUserConfirmation]);
}

fn parse(id: &Value) -> JobId {
    id.as_str().unwrap().parse().unwrap()
}

async fn a_page_holds_as_many_as_asked_for_though_others_stand_between(server: &Server) {
    let holder = server.enqueue(echo(json!({ "wait": true }))).await;
    server.until(holder.id, "job.parked").await;
    let mut waiting = Vec::new();
    for _ in 0..5 {
        waiting.push(server.enqueue(echo(json!({}))).await.id);
    }
    waiting.sort();
    waiting.reverse();
    // The parked one has the same face as those that run, and a state that two faces share.
    let parked: JobList = server.get(&format!("{OWN}?state=awaiting_tool&limit=1")).await.ok();
    assert_eq!(parked.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [holder.id]);
    let mut seen = Vec::new();
    let mut path = format!("{OWN}?state=queued&limit=2");
    loop {
        let page: JobList = server.get(&path).await.ok();
        assert!(page.jobs.len() <= 2);
        seen.extend(page.jobs.iter().map(|job| job.id));
        let Some(cursor) = page.next_cursor else { break };
        path = format!("{OWN}?state=queued&limit=2&cursor={cursor}");
    }
    assert_eq!(seen, waiting);
}

async fn an_unknown_word_is_answered_with_all_that_are_known(server: &Server) {
    for base in [OWN, OUTER] {
        let detail = server.get(&format!("{base}?state=queued,asleep")).await.refused(400, "invalid_request");
        for word in "received queued executing awaiting_tool awaiting_user_confirmation running completed failed \
                     cancelled canceled"
            .split_whitespace()
        {
            assert!(detail.contains(word), "{word} is not in {detail}");
        }
    }
}
