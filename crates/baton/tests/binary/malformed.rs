//! Requests that no decent client sends, to the real binary in a process of its own: it never says
//! that it is to blame, never panics, lives on, and does not grow.
//!
//! Some hundreds here; `cargo xtask soak` sends thousands, and some that really take their time.
//! Elsewhere: what is sent (`baton_sim::chaos`), whether each answer is described (`api/tests`).

use crate::support::{Door, PATIENCE, Server, get, http};
use baton_api::limits;
use baton_sim::chaos::{Aim, Plan, Waits, drip, drips, shout, targets};
use baton_wire::{DecisionList, Job, MadeKey, MadeWebhook};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::task::JoinSet;

/// Requests, unless told otherwise.
const REQUESTS: u64 = 300;
/// Callers at once: fewer than batches that are read at once, so that nobody is turned away for others.
const CALLERS: usize = 6;
/// Requests after which everything that is kept in memory on purpose is there, but for the database's
/// own cache: what is known of keys and jobs, a series per route and status, the allocator's arenas.
const WARM_UP: u64 = 2_000;
/// What the server may have grown by since then, beside that cache. Refused requests keep nothing at all;
/// this is for the allocator, which keeps the pages of the largest bodies for each thread. With the
/// usual ten thousand requests a leak of half a KiB for each would be found.
const GROWTH_KIB: u64 = 4 * 1024;
/// How often each page of the database may be kept. Every connection of the store, the writer and three
/// readers, has a cache that fills up to 16 MiB as the file grows; not every reader reads every page.
const CACHED: u64 = 2;

#[tokio::test]
async fn nothing_that_is_sent_breaks_the_server_or_makes_it_grow() {
    let plan = Arc::new(Plan::new(REQUESTS));
    let dir = tempfile::tempdir().unwrap();
    let server = Server::serve(dir.path(), &["--rate-limit", "0"]);
    let door = server.door();
    let aim = Arc::new(aim(&door));
    let soaking = plan.numbers.end > 2 * WARM_UP;
    let mut slow = JoinSet::new();
    if soaking {
        let waits = Waits { head: limits::HEAD_WAIT, body: limits::BODY_WAIT };
        for one in drips(&aim, waits) {
            let address = door.address;
            slow.spawn(async move {
                drip(address, &one).await.unwrap_or_else(|broken| panic!("{}: {broken}", one.what));
            });
        }
    }
    let warm = if soaking { WARM_UP } else { plan.numbers.end };
    send(&door, &aim, &plan, plan.numbers.start..warm).await;
    let before = memory(&server);
    send(&door, &aim, &plan, warm..plan.numbers.end).await;
    slow.join_all().await;
    let after = memory(&server);
    let (ready, ..) = http(&door, "GET", "/readyz", "", "").unwrap();
    assert_eq!(ready, 200);
    let job: Job = post(&door, "/api/v1/jobs", r#"{"type":"echo","projectId":"after","payload":{"message":1}}"#);
    server.ask(&["jobs", "watch", &job.id.to_string()]).ok();
    server.signal("TERM");
    let (status, log) = server.ended();
    assert_eq!(status.code(), Some(0), "{log:#?}");
    // Now that it has ended, the file is all there is.
    let file = std::fs::metadata(dir.path().join("baton.db")).unwrap().len() / 1024;
    let count = plan.numbers.end;
    eprintln!("{count} requests; {before} KiB of memory after {warm}, {after} KiB at the end; a file of {file} KiB");
    assert!(after <= before + GROWTH_KIB + CACHED * file, "it grew from {before} to {after} KiB");
    for line in &log {
        assert!(!is_bad(line), "{line}");
    }
}

/// All of these, by several callers, each of whom takes the next.
async fn send(door: &Door, aim: &Arc<Aim>, plan: &Arc<Plan>, numbers: Range<u64>) {
    let next = Arc::new(AtomicU64::new(numbers.start));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (aim, plan, next, address) = (aim.clone(), plan.clone(), next.clone(), door.address);
        let end = numbers.end;
        callers.spawn(async move {
            let mut statuses: BTreeMap<u16, u64> = BTreeMap::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    return statuses;
                }
                let said = plan.shout(&aim, number);
                match shout(address, &said).await {
                    Ok(heard) => *statuses.entry(heard.statuses().last().copied().unwrap_or(0)).or_default() += 1,
                    Err(broken) => panic!("{}", plan.lament(number, &said, &broken)),
                }
            }
        });
    }
    let mut sum: BTreeMap<u16, u64> = BTreeMap::new();
    while let Some(statuses) = callers.join_next().await {
        for (status, count) in statuses.unwrap() {
            *sum.entry(status).or_default() += count;
        }
    }
    eprintln!("answers by status, 0 for none: {sum:?}");
}

/// Something of everything, to be shouted at.
fn aim(door: &Door) -> Aim {
    let asking: Job = post(door, "/api/v1/jobs", r#"{"type":"echo","projectId":"q","payload":{"ask":true}}"#);
    let decision = (0..PATIENCE.as_secs()).find_map(|_| {
        let open: DecisionList = get(door, "/api/v1/decisions");
        // Waits for something to happen, and looks again.
        open.decisions.first().map(|one| one.id).or_else(|| {
            get::<Value>(door, "/api/v1/events?after=tail&wait_ms=1000");
            None
        })
    });
    let key: MadeKey = post(door, "/api/v1/keys", r#"{"label":"to be rotated","role":"admin"}"#);
    let hook = r#"{"label":"nobody","url":"https://127.0.0.1:1/","types":["key.rotated"]}"#;
    let hook: MadeWebhook = post(door, "/api/v1/webhooks", hook);
    let known = [
        ("jobId", asking.id.to_string()),
        ("decisionId", decision.expect("the job asks").to_string()),
        ("keyId", key.key.id.to_string()),
        ("webhookId", hook.webhook.id.to_string()),
        ("projectId", "p".to_owned()),
        ("name", "s".to_owned()),
        ("lane", "project:p".to_owned()),
    ];
    let document: Value = get(door, "/openapi.json");
    Aim { targets: targets(&document), key: door.key.clone(), known: known.into() }
}

fn post<T: DeserializeOwned>(door: &Door, path: &str, body: &str) -> T {
    let (status, _, said) = http(door, "POST", path, "Content-Type: application/json\r\n", body).unwrap();
    assert_eq!(status, 201, "{said}");
    serde_json::from_str(&said).unwrap()
}

/// What the process has taken for itself, in KiB. Files that it looks into belong to the system.
fn memory(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// A line of the log that tells of a fault of ours.
fn is_bad(line: &str) -> bool {
    if line.contains("panicked") {
        return true;
    }
    let said: Value = serde_json::from_str(line).unwrap_or_default();
    let blamed = said["status"].as_u64().is_some_and(|status| status >= 500);
    said["level"] == "ERROR" || (blamed && said["code"] != "overloaded")
}

#[test]
fn a_fault_is_told_from_what_is_only_said() {
    assert!(is_bad("thread 'tokio-runtime-worker' panicked at src/x.rs:1:1:"));
    assert!(is_bad(r#"{"level":"ERROR","message":"x"}"#));
    assert!(is_bad(r#"{"level":"WARN","message":"answered","status":500,"code":"internal"}"#));
    // One history is verified at a time; who asks meanwhile is told so.
    assert!(!is_bad(r#"{"level":"WARN","message":"answered","status":503,"code":"overloaded"}"#));
    assert!(!is_bad(r#"{"level":"INFO","message":"listening"}"#));
}
