//! Two servers on one database, of which one is killed while it works: the other finishes what both
//! had begun, in time and once.

use crate::support::{Door, Schema, Server, get, http};
use baton_core::time::Span;
use baton_wire::{Event, EventList, Job, JobState};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What each server runs at once: with twice as many jobs, each has its hands full.
const SLOTS: usize = 4;
/// Long enough to be under way when the kill comes, even on a slow machine.
const WORK_MS: u32 = 8_000;
/// How long the leases of the built-in types last, and how long after that a job has a new holder.
const LEASE: Span = Span::secs(30);
const TAKE_OVER: Span = Span::secs(5);
/// Looks of ten seconds in a row that find nothing new: with more, nothing will come. A lease takes
/// three or four.
const QUIET_MAX: u32 = 6;

#[test]
fn what_a_killed_server_held_is_finished_by_the_other_in_time_and_once() {
    let Some(schema) = Schema::create() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (victim, survivor) = (serve(dir.path(), "victim", &schema), serve(dir.path(), "survivor", &schema));
    // The first of them made the key that opens both.
    let door = Door { key: victim.key.clone(), ..survivor.door() };
    let mut jobs = BTreeSet::new();
    for n in 0..2 * SLOTS {
        let to = if n % 2 == 0 { &victim } else { &survivor };
        let to = Door { address: to.address, ..door.clone() };
        jobs.insert(post(&to, n, WORK_MS).id.to_string());
    }
    let mut history = History::new(door.clone());
    history.until(|seen| seen.of("job.started").count() == jobs.len());
    let name = std::fs::read_to_string(dir.path().join("victim").join("node")).unwrap();
    let by_victim = history.of("job.started").filter(|event| event.data["worker"] == name.trim());
    let held = by_victim.map(|event| event.subject.clone()).collect::<BTreeSet<_>>();
    assert_eq!(held.len(), SLOTS, "both have their hands full");
    // The moment by the clock that dates everything else; it waits behind a job that is under way.
    let last_seen_alive = post(&door, 0, 0);
    victim.kill();
    jobs.insert(last_seen_alive.id.to_string());
    // Who comes now waits in the same lanes, behind jobs of the living and of the dead.
    for n in 0..2 * SLOTS {
        jobs.insert(post(&door, n, 0).id.to_string());
    }
    history.until(|seen| seen.of("job.completed").count() >= jobs.len());
    let in_time = last_seen_alive.created_at.0.plus(Span(LEASE.0 + TAKE_OVER.0));
    let taken =
        history.of("job.recovered").map(|event| (event.subject.clone(), event.at.0)).collect::<BTreeMap<_, _>>();
    assert_eq!(taken.keys().collect::<Vec<_>>(), held.iter().collect::<Vec<_>>(), "these and no others");
    assert!(taken.values().all(|at| *at <= in_time), "by {in_time:?}: {taken:?}");
    let completed = history.of("job.completed").map(|event| event.subject.clone()).collect::<Vec<_>>();
    assert_eq!(completed.iter().cloned().collect::<BTreeSet<_>>(), jobs);
    assert_eq!(completed.len(), jobs.len(), "none completes twice");
    for id in &jobs {
        let job: Job = get(&door, &format!("/api/v1/jobs/{id}"));
        let attempts = if held.contains(id) { 2 } else { 1 };
        assert_eq!((job.state, job.attempts, job.failures), (JobState::Completed, attempts, 0), "{job:?}");
    }
    let audit = survivor.ask(&["audit", "--json", "--key", &door.key]).ok().json();
    assert_eq!(audit["clean"], true, "{audit}");
    survivor.stop();
    schema.remove();
}

/// A node of its own that shares the database and the key with the other.
fn serve(dir: &Path, node: &str, schema: &Schema) -> Server {
    std::fs::write(dir.join("seal.key"), "5".repeat(64)).unwrap();
    let config = dir.join("baton.toml");
    std::fs::write(&config, format!("slots = {SLOTS}\nseal_key_file = \"seal.key\"\n")).unwrap();
    Server::serve(&dir.join(node), &["--config", config.to_str().unwrap(), "--database", schema.url()])
}

/// An echo in a project of its number.
fn post(door: &Door, n: usize, work_ms: u32) -> Job {
    let order = json!({ "type": "echo", "projectId": format!("p{n}"), "payload": { "work_ms": work_ms } });
    let headers = "Content-Type: application/json\r\n";
    let (status, _, body) = http(door, "POST", "/api/v1/jobs", headers, &order.to_string()).unwrap();
    assert_eq!(status, 201, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// All that has happened, as far as it was read.
struct History {
    door: Door,
    after: String,
    events: Vec<Event>,
}

impl History {
    const fn new(door: Door) -> Self {
        Self { door, after: String::new(), events: Vec::new() }
    }

    fn of(&self, kind: &str) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |event| event.kind == kind)
    }

    /// Reads on until there is enough.
    fn until(&mut self, enough: impl Fn(&Self) -> bool) {
        let mut quiet = 0;
        while !enough(self) {
            assert!(quiet < QUIET_MAX, "nothing more happens after {:#?}", self.events.last());
            let path = format!("/api/v1/events?limit=1000&wait_ms=10000{}", self.after);
            let list: EventList = get(&self.door, &path);
            quiet = if list.events.is_empty() { quiet + 1 } else { 0 };
            self.after = format!("&after={}", list.next);
            self.events.extend(list.events);
        }
    }
}
