//! Hundreds of requests that no decent client sends, to every route there is: each gets a clean answer
//! that the document knows, none a 5xx, none hangs, and the server is as well afterwards as before.
//!
//! Elsewhere: what is sent (`baton_sim::chaos`), the same against the real binary, in thousands
//! (`baton/tests/binary/malformed.rs`).

use crate::support::{Database, Server, described, understand};
use baton_api::{document, limits, routes};
use baton_sim::chaos::{Aim, Plan, Then, Waits, drip, drips, shout, targets};
use baton_wire::{DecisionList, MadeKey, MadeWebhook};
use serde_json::json;
use std::collections::BTreeSet;

/// Requests, unless told otherwise: three rounds through all routes.
const REQUESTS: u64 = 600;

on_both_databases!(crate::support::runs::working => nothing_that_is_sent_breaks_or_hangs_the_server);

/// A server with something of everything, to be shouted at.
async fn aim(server: &Server) -> Aim {
    let asking = json!({ "type": "echo", "projectId": "q", "payload": { "ask": true } });
    let job = server.enqueue(asking).await;
    server.until(job.id, "job.asked").await;
    let decisions: DecisionList = server.get("/api/v1/decisions").await.ok();
    let key = json!({ "label": "to be rotated", "role": "admin" });
    let key: MadeKey = server.post("/api/v1/keys", &key).await.parse();
    let hook = json!({ "label": "nobody", "url": "https://127.0.0.1:1/", "types": ["key.rotated"] });
    let hook: MadeWebhook = server.post("/api/v1/webhooks", &hook).await.parse();
    let run = server.start_run(&baton_wire::run::example()).await;
    server.until_waiting(&run, "answer").await;
    let agents: baton_wire::AgentList = server.part(&run, "agents").await;
    let known = [
        ("jobId", job.id.to_string()),
        ("decisionId", decisions.decisions[0].id.to_string()),
        ("keyId", key.key.id.to_string()),
        ("webhookId", hook.webhook.id.to_string()),
        ("runId", run.id.to_string()),
        ("agentId", agents.agents[0].id.to_string()),
        ("id", job.id.to_string()),
        ("projectId", "p".to_owned()),
        ("name", "s".to_owned()),
        ("lane", "project:p".to_owned()),
    ];
    Aim { targets: targets(document()), key: server.admin.clone(), known: known.into() }
}

async fn nothing_that_is_sent_breaks_or_hangs_the_server(server: &Server) {
    let aim = aim(server).await;
    let plan = Plan::new(REQUESTS);
    assert!(aim.round() <= REQUESTS, "{} requests are needed to ask every route", aim.round());
    for number in plan.numbers.clone() {
        let said = plan.shout(&aim, number);
        let heard = shout(server.address, &said).await;
        let heard = heard.unwrap_or_else(|broken| panic!("{}", plan.lament(number, &said, &broken)));
        if said.then == Then::Listen {
            understand(&heard.0).iter().for_each(|reply| described::check(&said.bytes, reply));
        }
    }
    assert_eq!(server.get("/readyz").await.status, 200);
    let job = server.enqueue(json!({ "type": "echo", "projectId": "after", "payload": { "message": 1 } })).await;
    server.until(job.id, "job.completed").await;
}

#[test]
fn every_route_of_the_table_is_shouted_at() {
    let table: BTreeSet<_> =
        routes().into_iter().map(|route| (route.method.to_string(), route.path.to_owned())).collect();
    let aimed: BTreeSet<_> = targets(document()).into_iter().map(|target| (target.method, target.path)).collect();
    assert_eq!(aimed, table);
}

#[tokio::test]
async fn whoever_takes_their_time_is_given_up() {
    crate::support::run(Database::Sqlite, async |server| {
        let aim = Aim { targets: Vec::new(), key: server.admin.clone(), known: Vec::new() };
        let waits = Waits { head: limits::HEAD_WAIT, body: limits::BODY_WAIT };
        for slow in drips(&aim, waits) {
            // Known for a second of real time, so that nobody waits for the store where time jumps.
            assert_eq!(server.get("/api/v1/me").await.status, 200);
            // Time stands still until there is nothing left to do, and then jumps to the next timer.
            tokio::time::pause();
            drip(server.address, &slow).await.unwrap_or_else(|broken| panic!("{}: {broken}", slow.what));
            tokio::time::resume();
        }
    })
    .await;
}
