//! One key, many requests at once.

use crate::support::{Ask, Database, JSON, Server, Setup};
use baton_wire::{EventList, Job};
use serde_json::json;
use std::collections::BTreeMap;

on_both_databases!(a_thousand_posts_with_one_key_have_one_effect, a_refusal_is_nobodys_answer_but_its_own);

const POSTS: usize = 1_000;

#[tokio::test]
async fn a_thousand_posts_at_two_nodes_have_one_effect() {
    let Some(one) = Server::start(Database::Postgres).await else { return };
    let two = one.join(Setup::default()).await;
    let body = json!({ "type": "noop", "projectId": "p" }).to_string();
    let headers = [JSON, ("Idempotency-Key", "one")];
    let ask = || Ask { method: "POST", path: "/api/v1/jobs", headers: &headers, body: body.as_bytes() };
    let nodes = [&one, &two];
    let all = (0..POSTS).map(|n| nodes[n % 2].send(ask()));
    let replies = futures_util::future::join_all(all).await;
    let made = replies.iter().filter(|reply| reply.status == 201).count();
    assert_eq!(made, 1);
    let mut jobs = std::collections::BTreeSet::new();
    for reply in &replies {
        match reply.status {
            409 => drop(reply.refused(409, "idempotency_in_flight")),
            200 | 201 => drop(jobs.insert(reply.parse::<Job>().id)),
            _ => panic!("{reply:?}"),
        }
    }
    assert_eq!(jobs.len(), 1);
    for server in [&one, &two] {
        assert_eq!(server.get("/readyz").await.status, 200);
    }
    two.stop().await;
    one.stop().await;
}

async fn a_thousand_posts_with_one_key_have_one_effect(server: &Server) {
    let body = json!({ "type": "noop", "projectId": "p" }).to_string();
    let headers = [JSON, ("Idempotency-Key", "one")];
    let post = || server.send(Ask { method: "POST", path: "/api/v1/jobs", headers: &headers, body: body.as_bytes() });
    let replies = futures_util::future::join_all((0..POSTS).map(|_| post())).await;
    let mut by_status = BTreeMap::<u16, usize>::new();
    for reply in &replies {
        *by_status.entry(reply.status).or_default() += 1;
        assert_eq!(reply.replayed(), reply.status == 200, "{reply:?}");
        if reply.status == 409 {
            reply.refused(409, "idempotency_in_flight");
        }
    }
    assert_eq!(by_status.get(&201), Some(&1), "{by_status:?}");
    assert!(by_status.keys().all(|status| [200, 201, 409].contains(status)), "{by_status:?}");
    let answers = replies.iter().filter(|reply| reply.status != 409).map(|reply| reply.parse::<Job>().id);
    let jobs = answers.collect::<std::collections::BTreeSet<_>>();
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    let events: EventList = server.get("/api/v1/events?limit=1000").await.ok();
    assert_eq!(events.events.iter().filter(|event| event.kind == "job.queued").count(), 1);
    // Another request under the same key is another matter.
    let other = json!({ "type": "noop", "projectId": "q" }).to_string();
    server.post_keyed("/api/v1/jobs", &other, "one").await.refused(422, "idempotency_key_reused");
}

async fn a_refusal_is_nobodys_answer_but_its_own(server: &Server) {
    let wrong = json!({ "type": "nothing", "projectId": "p" }).to_string();
    let right = json!({ "type": "noop", "projectId": "p" }).to_string();
    let post = |body| server.post_keyed("/api/v1/jobs", body, "one");
    let bad = (0..20).map(|_| post(wrong.as_str()));
    for reply in futures_util::future::join_all(bad).await {
        assert_eq!(reply.status, 422, "{reply:?}");
    }
    assert_eq!(post(right.as_str()).await.status, 201, "what was refused is not kept");
}
