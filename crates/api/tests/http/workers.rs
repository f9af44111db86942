//! The worker protocol over HTTP, on both databases.

use crate::support::{Database, Server, Setup};
use baton_core::definition::{JobType, Timeout};
use baton_core::time::Span;
use baton_engine::remote::{Wanted, Worker};
use baton_wire::worker::{LeasedJob, SettledJobs};
use baton_wire::{JobState, WaitingFor};
use serde_json::{Value, json};

on_both_databases!(crate::workers::setup =>
    a_worker_leases_beats_reports_and_completes,
    what_is_asked_for_wrongly_is_refused,
    only_the_key_that_leased_can_say_something,
    failures_are_tried_again_as_their_class_says,
    a_job_parks_and_is_woken_and_a_wake_up_between_is_not_lost,
    a_job_asks_and_goes_on_with_the_answer,
    what_is_released_costs_no_attempt,
    a_cancelled_job_is_lost_or_told_to_end,
    a_lease_that_is_not_beaten_for_runs_out,
    a_job_that_takes_too_long_is_lost_at_a_beat,
    many_are_settled_at_once_each_judged_for_itself,
    settling_and_leasing_the_next_is_one_request,
    a_key_reaches_its_types_and_projects_only,
    lanes_and_projects_narrow_what_is_leased,
    lanes_take_turns_from_one_ask_to_the_next,
    duplicates_are_told_inside_of_a_project,
    a_result_that_does_not_fit_fails_the_job,
    whoever_waits_is_handed_the_job_when_it_comes,
    those_who_wait_for_the_same_are_served_in_turn,
    whoever_hangs_up_leaves_no_job_behind,
    only_so_many_wait_with_one_key,
    whose_key_is_revoked_while_it_waits_is_handed_nothing,
);

/// Types that cannot be had over HTTP, because they last too short a time for people.
fn setup() -> Setup {
    let mut setup = Setup::default();
    let kind = |name: &str| JobType { max_attempts: Some(3), ..JobType::new(name.parse().unwrap(), 1, "") };
    let brief = JobType { lease: Span::secs(1), ..kind("brief") };
    let slow = JobType { timeout: Timeout::After(Span::millis(1)), ..kind("slow") };
    for kind in [kind("work"), brief, slow] {
        setup.registry.declare(kind).unwrap();
    }
    setup
}

fn job(kind: &str) -> Value {
    json!({ "type": kind, "projectId": "p", "payload": { "n": 1 } })
}

async fn a_worker_leases_beats_reports_and_completes(server: &Server) {
    let hand = server.hand().await;
    assert!(hand.lease(json!({ "types": ["work"] })).await.is_empty(), "there is nothing yet");
    let made = server.enqueue(job("work")).await;
    let got = hand.lease(json!({ "types": ["work"], "max": 5, "worker": "w-1" })).await;
    let [LeasedJob { lease, job, payload, lease_ms, timeout_ms, .. }] = &got[..] else { panic!("{got:?}") };
    assert_eq!((job.id, job.attempt, job.max_attempts, job.wakes), (made.id, 1, 3, 0));
    assert_eq!((payload["n"].as_i64(), *lease_ms, *timeout_ms), (Some(1), 30_000, Some(60_000)));
    let beaten = hand.beat(&[lease, "nonsense"]).await;
    assert_eq!((beaten.lost, beaten.cancelled), (vec!["nonsense".to_owned()], vec![]));
    let said = json!({ "lease": lease, "percent": 40, "note": "so far", "context": { "threadId": "t" } });
    assert_eq!(hand.say("progress", said).await.ok::<Value>(), json!({ "cancelRequested": false }));
    let shown = server.job(made.id).await;
    assert_eq!((shown.state, shown.running_context.thread_id.as_deref()), (JobState::Executing, Some("t")));
    assert_eq!(shown.progress.unwrap().percent, Some(40));
    let done = json!({ "lease": lease, "result": { "ok": true } });
    assert_eq!(hand.settled("complete", done.clone()).await, "now");
    assert_eq!(hand.settled("complete", done).await, "already", "the answer may have been lost");
    let ended = server.job(made.id).await;
    assert_eq!((ended.state, ended.result.unwrap()["ok"].clone()), (JobState::Completed, json!(true)));
    let events = server.events_until(|event| event.kind == "job.completed").await;
    let started = events.iter().find(|event| event.kind == "job.started").unwrap();
    assert!(started.data["worker"].as_str().unwrap().ends_with("/w-1"), "{started:?}");
    assert_eq!(hand.beat(&[lease]).await.lost, std::slice::from_ref(lease));
}

async fn what_is_asked_for_wrongly_is_refused(server: &Server) {
    let hand = server.hand().await;
    for (body, status, code) in [
        (json!({}), 400, "invalid_request"),
        (json!({ "types": [] }), 400, "invalid_request"),
        (json!({ "types": ["work"], "max": 0 }), 400, "invalid_request"),
        (json!({ "types": ["work"], "max": 101 }), 400, "invalid_request"),
        (json!({ "types": ["work"], "waitMs": 30_001 }), 400, "invalid_request"),
        (json!({ "types": ["work"], "worker": "a b" }), 400, "invalid_request"),
        (json!({ "types": ["work"], "lanes": [] }), 400, "invalid_request"),
        (json!({ "types": ["work"], "settle": [{ "lease": "x" }] }), 400, "invalid_request"),
        (json!({ "types": ["nobody"] }), 422, "unknown_job_type"),
        (json!({ "types": ["work", "echo"] }), 422, "local_job_type"),
    ] {
        hand.say("lease", body).await.refused(status, code);
    }
    for (route, body) in [
        ("complete", json!({ "lease": "nonsense" })),
        ("release", json!({ "lease": "nonsense" })),
        ("park", json!({ "lease": "nonsense", "seen": 0 })),
    ] {
        hand.say(route, body).await.refused(409, "lease_lost");
    }
    // What was seen is not guessed: a job that was woken once would be due at once for ever.
    hand.say("park", json!({ "lease": "nonsense", "forMs": 60_000 })).await.refused(400, "invalid_request");
    hand.say("heartbeat", json!({ "leases": [] })).await.refused(400, "invalid_request");
    hand.say("progress", json!({ "lease": "x", "percent": 101 })).await.refused(400, "invalid_request");
    let viewer = server.narrowed("p", "viewer").await;
    let body = json!({ "types": ["work"] });
    server.ask_as(&viewer, "POST", "/api/v1/worker/lease", &body).await.refused(403, "forbidden");
    server.ask_as(&hand.key, "GET", "/api/v1/lanes", &json!({})).await.refused(403, "forbidden");
}

async fn only_the_key_that_leased_can_say_something(server: &Server) {
    let (hand, other) = (server.hand().await, server.hand().await);
    server.enqueue(job("work")).await;
    let lease = hand.one("work").await.lease;
    assert_eq!(other.beat(&[&lease]).await.lost, std::slice::from_ref(&lease));
    for (route, body) in [
        ("complete", json!({ "lease": lease })),
        ("fail", json!({ "lease": lease, "code": "x" })),
        ("park", json!({ "lease": lease, "seen": 0 })),
        ("ask", json!({ "lease": lease, "question": { "prompt": "?" } })),
        ("release", json!({ "lease": lease })),
        ("progress", json!({ "lease": lease, "percent": 1 })),
    ] {
        other.say(route, body).await.refused(409, "lease_lost");
    }
    assert_eq!(hand.settled("complete", json!({ "lease": lease })).await, "now");
}

async fn failures_are_tried_again_as_their_class_says(server: &Server) {
    server.put_type("flaky", json!({ "maxAttempts": 3, "retry": { "base": "1ms", "max": "1ms" } })).await;
    let hand = server.hand().await;
    let made = server.enqueue(job("flaky")).await;
    let lease = hand.one("flaky").await.lease;
    assert_eq!(hand.settled("fail", json!({ "lease": lease, "code": "unavailable", "message": "later" })).await, "now");
    let again = hand.one("flaky").await;
    assert_eq!((again.job.attempt, again.job.failures), (2, 1));
    let fatal = json!({ "lease": again.lease, "code": "unavailable", "message": "never", "class": "fatal" });
    assert_eq!(hand.settled("fail", fatal).await, "now");
    let ended = server.job(made.id).await;
    assert_eq!((ended.state, ended.error.as_deref()), (JobState::Failed, Some("unavailable: never")));
}

async fn a_job_parks_and_is_woken_and_a_wake_up_between_is_not_lost(server: &Server) {
    let hand = server.hand().await;
    let made = server.enqueue(job("work")).await;
    let first = hand.one("work").await;
    assert_eq!(hand.settled("park", json!({ "lease": first.lease, "seen": 0 })).await, "now");
    let parked = server.job(made.id).await;
    assert_eq!((parked.state, parked.waiting_for), (JobState::AwaitingTool, Some(WaitingFor::Tool)));
    assert!(hand.lease(json!({ "types": ["work"] })).await.is_empty());
    let wake = format!("/api/v1/jobs/{}/wake", made.id);
    assert_eq!(server.post(&wake, &json!({})).await.status, 200);
    let second = hand.one("work").await;
    assert_eq!((second.job.attempt, second.job.wakes), (1, 1), "it goes on, it does not begin anew");
    assert_eq!(server.post(&wake, &json!({})).await.status, 200);
    assert_eq!(hand.settled("park", json!({ "lease": second.lease, "seen": 1 })).await, "now");
    let third = hand.one("work").await;
    assert_eq!(third.job.wakes, 2, "woken between looking and parking");
    assert_eq!(hand.settled("park", json!({ "lease": third.lease, "forMs": 1, "seen": 2 })).await, "now");
    let fourth = hand.one("work").await;
    assert_eq!(hand.settled("complete", json!({ "lease": fourth.lease })).await, "now");
}

async fn a_job_asks_and_goes_on_with_the_answer(server: &Server) {
    let hand = server.hand().await;
    let made = server.enqueue(job("work")).await;
    let first = hand.one("work").await;
    let question = json!({ "prompt": "Go on?", "options": [{ "name": "yes" }, { "name": "no", "effect": "cancel" }] });
    assert_eq!(hand.settled("ask", json!({ "lease": first.lease, "question": question })).await, "now");
    assert_eq!(server.job(made.id).await.state, JobState::AwaitingUserConfirmation);
    let open: Value = server.get("/api/v1/decisions?state=open").await.ok();
    let id = open["decisions"][0]["id"].as_str().unwrap();
    let answer = json!({ "option": "yes", "comment": "fine" });
    assert_eq!(server.post(&format!("/api/v1/decisions/{id}/resolve"), &answer).await.status, 200);
    let second = hand.one("work").await;
    assert_eq!((second.job.attempt, &second.job.answer.unwrap()["option"]), (1, &json!("yes")));
    assert_eq!(hand.settled("complete", json!({ "lease": second.lease })).await, "now");
    // What nobody can answer is the job's fault.
    server.enqueue(job("work")).await;
    let bad = hand.one("work").await;
    let question = json!({ "options": "none" });
    assert_eq!(hand.settled("ask", json!({ "lease": bad.lease, "question": question })).await, "now");
    assert!(server.job(bad.job.id).await.error.unwrap().starts_with("invalid_question"));
}

async fn what_is_released_costs_no_attempt(server: &Server) {
    let hand = server.hand().await;
    let made = server.enqueue(job("work")).await;
    for attempt in 1..=4 {
        let got = hand.one("work").await;
        assert_eq!(got.job.attempt, attempt);
        assert_eq!(hand.settled("release", json!({ "lease": got.lease })).await, "now");
    }
    assert!(!server.job(made.id).await.state.is_ended());
}

async fn a_cancelled_job_is_lost_or_told_to_end(server: &Server) {
    let hand = server.hand().await;
    let made = server.enqueue(job("work")).await;
    let lease = hand.one("work").await.lease;
    assert_eq!(server.post(&format!("/api/v1/jobs/{}/cancel", made.id), &json!({})).await.status, 200);
    assert_eq!(hand.beat(&[&lease]).await.lost, std::slice::from_ref(&lease));
    hand.say("complete", json!({ "lease": lease })).await.refused(409, "lease_lost");

    let polite = json!({ "cancel": { "strategy": "interrupt_turn", "grace": "30s" } });
    server.put_type("polite", polite).await;
    let made = server.enqueue(job("polite")).await;
    let lease = hand.one("polite").await.lease;
    assert_eq!(server.post(&format!("/api/v1/jobs/{}/cancel", made.id), &json!({})).await.status, 200);
    let beaten = hand.beat(&[&lease]).await;
    assert_eq!((beaten.lost.len(), beaten.cancelled), (0, vec![lease.clone()]));
    let heard = hand.say("progress", json!({ "lease": lease, "percent": 9 })).await.ok::<Value>();
    assert_eq!(heard, json!({ "cancelRequested": true }));
    assert_eq!(hand.settled("complete", json!({ "lease": lease, "result": { "late": 1 } })).await, "now");
    assert_eq!(server.job(made.id).await.state, JobState::Cancelled, "whatever it came to is discarded");
}

async fn a_lease_that_is_not_beaten_for_runs_out(server: &Server) {
    let hand = server.hand().await;
    let made = server.enqueue(job("brief")).await;
    let first = hand.one("brief").await;
    assert_eq!(first.lease_ms, 1_000);
    server.until(made.id, "job.recovered").await;
    hand.say("complete", json!({ "lease": first.lease })).await.refused(409, "lease_lost");
    let second = hand.one("brief").await;
    assert_eq!(second.job.attempt, 2);
    assert_eq!(hand.settled("complete", json!({ "lease": second.lease })).await, "now");
    assert_eq!(hand.beat(&[&first.lease]).await.lost, [first.lease]);
}

async fn a_job_that_takes_too_long_is_lost_at_a_beat(server: &Server) {
    let hand = server.hand().await;
    let made = server.enqueue(job("slow")).await;
    let got = hand.one("slow").await;
    assert_eq!(got.timeout_ms, Some(1));
    // Its millisecond may not be over at the first beat.
    while hand.beat(&[&got.lease]).await.lost.is_empty() {}
    let failed = server.job(made.id).await;
    assert_eq!((failed.failures, failed.waiting_for), (1, Some(WaitingFor::Retry)));
    assert!(failed.last_error.unwrap().starts_with("timeout"));
}

async fn many_are_settled_at_once_each_judged_for_itself(server: &Server) {
    server.put_type("open", json!({ "lane": { "key": "open" } })).await;
    let hand = server.hand().await;
    for _ in 0..4 {
        server.enqueue(job("open")).await;
    }
    let got = hand.lease(json!({ "types": ["open"], "max": 10 })).await;
    let [a, b, c, d] = &got[..] else { panic!("{got:?}") };
    let outcomes = json!([
        { "lease": a.lease, "complete": { "result": { "n": 1 } } },
        { "lease": b.lease, "fail": { "code": "broken", "message": "x" } },
        { "lease": "nonsense", "release": {} },
        { "lease": c.lease, "park": { "forMs": 60_000, "seen": 0 } },
        { "lease": d.lease, "release": {} },
        { "lease": a.lease, "complete": {} },
    ]);
    let said: SettledJobs = hand.say("settle", json!({ "outcomes": outcomes })).await.ok();
    let words: Vec<_> = said.settled.iter().map(|s| serde_json::to_value(s.settled).unwrap()).collect();
    assert_eq!(words, [json!("now"), json!("now"), json!(null), json!("now"), json!("now"), json!("already")]);
    assert_eq!(said.settled[2].code.as_deref(), Some("lease_lost"));
    assert_eq!(server.job(b.job.id).await.error.as_deref(), Some("broken: x"));
    assert_eq!(server.job(c.job.id).await.state, JobState::AwaitingTool);
    let two = json!({ "outcomes": [{ "lease": d.lease, "release": {}, "complete": {} }] });
    hand.say("settle", two).await.refused(400, "invalid_request");
}

async fn settling_and_leasing_the_next_is_one_request(server: &Server) {
    let hand = server.hand().await;
    let ids = [server.enqueue(job("work")).await.id, server.enqueue(job("work")).await.id];
    let first = hand.one("work").await;
    assert_eq!(first.job.id, ids[0]);
    assert!(hand.lease(json!({ "types": ["work"] })).await.is_empty(), "its lane is full");
    let settle = json!([{ "lease": first.lease, "complete": { "result": {} } }]);
    let said: Value = hand.say("lease", json!({ "types": ["work"], "settle": settle })).await.ok();
    assert_eq!(said["settled"][0]["settled"], "now");
    assert_eq!(said["leases"][0]["job"]["id"], json!(ids[1]), "the slot was handed over");
}

async fn a_key_reaches_its_types_and_projects_only(server: &Server) {
    let narrow = server.hand_with(json!({ "types": ["work"], "projects": ["q"] })).await;
    narrow.say("lease", json!({ "types": ["brief"] })).await.refused(403, "out_of_scope");
    let foreign = json!({ "types": ["work"], "projects": ["p"] });
    narrow.say("lease", foreign).await.refused(403, "out_of_scope");
    server.enqueue(job("work")).await;
    assert!(narrow.lease(json!({ "types": ["work"], "max": 9 })).await.is_empty(), "it is another project's");
    let own = server.enqueue(json!({ "type": "work", "projectId": "q" })).await;
    assert_eq!(narrow.one("work").await.job.id, own.id);
}

async fn lanes_and_projects_narrow_what_is_leased(server: &Server) {
    server.put_type("lanes", json!({ "lane": { "key": "l:{payload.l}", "limit": 1 } })).await;
    let hand = server.hand().await;
    let mut made = Vec::new();
    for (project, lane) in [("p", "a"), ("q", "a"), ("p", "b"), ("q", "c")] {
        let body = json!({ "type": "lanes", "projectId": project, "payload": { "l": lane } });
        made.push(server.enqueue(body).await.id);
    }
    let ids = async |body: Value| hand.lease(body).await.into_iter().map(|got| got.job.id).collect::<Vec<_>>();
    assert_eq!(ids(json!({ "types": ["lanes"], "max": 9, "lanes": ["l:b", "nowhere"] })).await, [made[2]]);
    assert_eq!(ids(json!({ "types": ["lanes"], "max": 9, "lanes": ["l:a"], "projects": ["q"] })).await, [made[1]]);
    assert_eq!(ids(json!({ "types": ["lanes"], "max": 9, "projects": ["q"] })).await, [made[3]]);
    assert!(ids(json!({ "types": ["lanes"], "max": 9 })).await.is_empty(), "l:a is full, the others are empty");
}

async fn lanes_take_turns_from_one_ask_to_the_next(server: &Server) {
    server.put_type("turns", json!({ "lane": { "key": "t:{payload.l}" } })).await;
    let hand = server.hand().await;
    for lane in ["a", "a", "a", "b", "b"] {
        server.enqueue(json!({ "type": "turns", "projectId": "p", "payload": { "l": lane } })).await;
    }
    let mut lanes = Vec::new();
    for _ in 0..4 {
        lanes.push(hand.one("turns").await.job.lane);
    }
    assert_eq!(lanes, ["t:a", "t:b", "t:a", "t:b"], "the busy one does not starve the other");
}

async fn duplicates_are_told_inside_of_a_project(server: &Server) {
    server.put_type("same", json!({ "dedupe": { "mode": "drop_duplicate", "key": "{payload.id}" } })).await;
    let job = |project: &str| json!({ "type": "same", "projectId": project, "payload": { "id": 7 } });
    let first = server.enqueue(job("p")).await;
    assert_eq!(server.post("/api/v1/jobs", &job("p")).await.parse::<baton_wire::Job>().id, first.id);
    assert_ne!(server.enqueue(job("q")).await.id, first.id, "another project's job is not shown to whoever asks");
}

async fn a_result_that_does_not_fit_fails_the_job(server: &Server) {
    server.put_type("strict", json!({ "resultSchema": { "type": "object", "required": ["ok"] } })).await;
    let hand = server.hand().await;
    let made = server.enqueue(job("strict")).await;
    let lease = hand.one("strict").await.lease;
    assert_eq!(hand.settled("complete", json!({ "lease": lease, "result": {} })).await, "now");
    assert!(server.job(made.id).await.error.unwrap().starts_with("invalid_result"));
    let deep = (0..100).fold(json!({}), |inner, _| json!({ "a": inner }));
    hand.say("complete", json!({ "lease": lease, "result": deep })).await.refused(400, "invalid_request");
}

async fn whoever_waits_is_handed_the_job_when_it_comes(server: &Server) {
    let hand = server.hand().await;
    // Nothing says when somebody waits; whether it does or comes a moment later, it is handed the job.
    let (got, made) = tokio::join!(hand.one("work"), server.enqueue(job("work")));
    assert_eq!(got.job.id, made.id);
    let later = json!({ "type": "work", "projectId": "q", "notBefore": soon(server) });
    let (got, made) = tokio::join!(hand.one("work"), server.enqueue(later));
    assert_eq!(got.job.id, made.id, "also one that comes due while somebody waits");
}

/// A third of a second from now.
fn soon(server: &Server) -> baton_wire::Time {
    baton_wire::Time(server.engine.store().clock_now().plus(Span::millis(300)))
}

async fn those_who_wait_for_the_same_are_served_in_turn(server: &Server) {
    server.put_type("open", json!({ "lane": { "key": "open" } })).await;
    let hand = server.hand().await;
    let waiting = futures_util::future::join_all((0..8).map(|_| hand.one("open")));
    let enqueuing = async {
        for _ in 0..8 {
            server.enqueue(job("open")).await;
        }
    };
    let (got, ()) = tokio::join!(waiting, enqueuing);
    let ids: std::collections::BTreeSet<_> = got.iter().map(|got| got.job.id).collect();
    assert_eq!(ids.len(), 8, "each got one");
}

async fn whoever_hangs_up_leaves_no_job_behind(server: &Server) {
    let hand = server.hand().await;
    let made = server.enqueue(job("work")).await;
    let me: baton_wire::Me = server.ask_as(&hand.key, "GET", "/api/v1/me", &json!({})).await.ok();
    let wanted = Wanted {
        worker: Worker { org: me.org, key: me.key.id, name: None },
        types: [made.kind.clone()].into(),
        lanes: None,
        projects: None,
        max: 1,
        wait: std::time::Duration::ZERO,
    };
    // It has asked, and goes before it is answered.
    let mut asking = Box::pin(server.engine.workers().lease(&wanted, Vec::new()));
    assert!(futures_util::poll!(&mut asking).is_pending());
    drop(asking);
    let got = hand.one("work").await;
    assert_eq!((got.job.id, got.job.attempt), (made.id, 2), "given back, long before its lease could run out");
    assert_eq!(got.job.max_attempts, 4, "and nobody is blamed for it");
}

async fn only_so_many_wait_with_one_key(server: &Server) {
    let hand = server.hand().await;
    let wait = || hand.say("lease", json!({ "types": ["work"], "waitMs": 30_000 }));
    let mut waiting: futures_util::stream::FuturesUnordered<_> = (0..65).map(|_| wait()).collect();
    let first = futures_util::StreamExt::next(&mut waiting).await.unwrap();
    first.refused(429, "too_many_waiting");
    assert!(hand.lease(json!({ "types": ["work"] })).await.is_empty(), "who does not wait takes no place");
}

async fn whose_key_is_revoked_while_it_waits_is_handed_nothing(server: &Server) {
    let (hand, other) = (server.hand().await, server.hand().await);
    let me: baton_wire::Me = server.ask_as(&hand.key, "GET", "/api/v1/me", &json!({})).await.ok();
    let wait = || hand.say("lease", json!({ "types": ["work"], "waitMs": 30_000 }));
    let mut waiting: futures_util::stream::FuturesUnordered<_> = (0..65).map(|_| wait()).collect();
    // When one is too many, all others have come in.
    futures_util::StreamExt::next(&mut waiting).await.unwrap().refused(429, "too_many_waiting");
    let revoke = format!("/api/v1/keys/{}/revoke", me.key.id);
    assert_eq!(server.post(&revoke, &json!({})).await.status, 200);
    let made = server.enqueue(job("work")).await;
    futures_util::StreamExt::next(&mut waiting).await.unwrap().refused(401, "unauthenticated");
    drop(waiting);
    let got = other.one("work").await.job;
    assert_eq!((got.id, got.max_attempts - got.attempt), (made.id, 2), "and nobody is blamed for it");
}

#[tokio::test]
async fn a_worker_may_lease_at_one_node_and_settle_at_another() {
    let Some(first) = Server::start_with(Database::Postgres, setup()).await else { return };
    let second = first.join(setup()).await;
    let hand = first.hand().await;
    let there = crate::support::workers::Hand { server: &second, key: hand.key.clone() };
    let made = first.enqueue(job("work")).await;
    let (got, _) = tokio::join!(there.one("work"), async {});
    assert_eq!(got.job.id, made.id);
    assert!(hand.beat(&[&got.lease]).await.lost.is_empty());
    assert_eq!(hand.settled("complete", json!({ "lease": got.lease })).await, "now");
    assert_eq!(there.settled("complete", json!({ "lease": got.lease })).await, "already");
    second.stop().await;
    first.stop().await;
}
