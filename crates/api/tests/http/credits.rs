//! Money over HTTP: grants, the balance, and every entry.

use crate::support::runs::{document, step};
use crate::support::{JSON, Server};
use baton_wire::{Balance, Granted, LedgerList};
use serde_json::{Value, json};

on_both_databases!(crate::support::runs::working =>
    credits_are_given_once_under_one_key,
    a_balance_tells_what_runs_hold,
    a_ledger_is_read_page_by_page,
);

async fn balance(server: &Server) -> (String, String, i64) {
    let Balance { available, reserved, entries } = server.get("/api/v1/credits/balance").await.ok();
    (available.to_string(), reserved.to_string(), entries)
}

async fn credits_are_given_once_under_one_key(server: &Server) {
    assert_eq!(balance(server).await, ("0".to_owned(), "0".to_owned(), 0));
    let first = server.grant("12.5", "k").await;
    let again = server.grant("12.5", "k").await;
    assert!(again.replayed() && (first.status, again.status) == (201, 200));
    let given: Granted = first.parse();
    let entry = given.entry.unwrap();
    assert_eq!((given.balance.to_string(), entry.n, entry.account.as_str()), ("12.5".to_owned(), 1, "org"));
    assert_eq!(balance(server).await, ("12.5".to_owned(), "0".to_owned(), 1));
    server.grant("13", "k").await.refused(422, "idempotency_key_reused");
    server.post("/api/v1/credits/grants", &json!({ "amount": "1" })).await.refused(400, "idempotency_key_required");
    server.grant("0", "zero").await.refused(422, "invalid_amount");
    server.grant("1000000000", "all").await.refused(409, "balance_too_large");
    for bad in [json!({}), json!({ "amount": 1 }), json!({ "amount": "-1" }), json!({ "amount": "1", "to": "me" })] {
        let reply = server.post_keyed("/api/v1/credits/grants", &bad.to_string(), "bad").await;
        reply.refused(400, "invalid_request");
    }
    let operator = json!({ "label": "op", "role": "operator" });
    let operator: baton_wire::MadeKey = server.post("/api/v1/keys", &operator).await.parse();
    let body = json!({ "amount": "1" }).to_string();
    let headers = [JSON, ("Idempotency-Key", "mine")];
    let ask = crate::support::Ask {
        method: "POST",
        path: "/api/v1/credits/grants",
        headers: &headers,
        body: body.as_bytes(),
    };
    server.send_as(&operator.secret.unwrap(), ask).await.refused(403, "forbidden");
    server.is_clean().await;
}

async fn a_balance_tells_what_runs_hold(server: &Server) {
    server.grant("20", "g").await;
    let steps = [step("note", json!({})), step("wait", json!({ "signal": "go" }))];
    let run = server.start_run(&document("p", &steps)).await;
    server.until_waiting(&run, "signal").await;
    // Three are reserved until it ends, whatever was spent of them.
    assert_eq!(balance(server).await, ("17".to_owned(), "3".to_owned(), 2));
    let now = server.run_of(&run).await;
    assert_eq!((now.credits_reserved.to_string(), now.credits_charged.to_string()), ("3".to_owned(), "1".to_owned()));
    server.post(&format!("/api/v1/runs/{}/signals/go", run.id), &json!({})).await.ok::<Value>();
    server.run_until(&run, "completed").await;
    assert_eq!(balance(server).await, ("19".to_owned(), "0".to_owned(), 3));
    server.is_clean().await;
}

async fn a_ledger_is_read_page_by_page(server: &Server) {
    for n in 0..5 {
        server.grant("1", &format!("g{n}")).await;
    }
    let newest: LedgerList = server.get("/api/v1/ledger").await.ok();
    assert_eq!(newest.entries.iter().map(|entry| entry.n).collect::<Vec<_>>(), [5, 4, 3, 2, 1]);
    let mut path = "/api/v1/ledger?order=asc&limit=2".to_owned();
    let mut seen = Vec::new();
    loop {
        let page: LedgerList = server.get(&path).await.ok();
        seen.extend(page.entries.iter().map(|entry| entry.n));
        let Some(cursor) = page.next_cursor else { break };
        path = format!("/api/v1/ledger?order=asc&limit=2&cursor={cursor}");
    }
    assert_eq!(seen, [1, 2, 3, 4, 5]);
    let run = server.start_run(&document("p", &[step("note", json!({}))])).await;
    server.run_until(&run, "completed").await;
    let account: LedgerList = server.get(&format!("/api/v1/ledger?account={}/1&order=asc", run.id)).await.ok();
    let kinds: Vec<_> = account.entries.iter().map(|entry| entry.kind.as_str()).collect();
    assert_eq!(kinds, ["reserved", "allocate", "returned", "release"]);
    assert_eq!(account.entries.last().unwrap().balance_after.to_string(), "0");
    let mut money = 0;
    let all: LedgerList = server.part(&run, "ledger").await;
    for entry in &all.entries {
        let sign = if entry.direction == baton_wire::Direction::In { 1 } else { -1 };
        money += sign * entry.amount.micros();
        assert_eq!(entry.run_id, Some(run.id));
    }
    assert_eq!(money, 0, "what came in went out again: spent, or given back");
    server.get("/api/v1/ledger?account=nobody").await.refused(400, "invalid_request");
    server.get(&format!("/api/v1/ledger?account={}/2", run.id)).await.refused(404, "run_not_found");
    server.get(&format!("/api/v1/ledger?account=agt_{}", "0".repeat(32))).await.refused(404, "agent_not_found");
    server.is_clean().await;
}
