//! SIGKILL under load: whatever was acknowledged is there afterwards, once, and gets done.
//!
//! Several clients send jobs, each under its own key, and repeat what was not answered under
//! the same key after the restart. The kill comes after a number of acknowledgements, so that
//! it falls where the load is, on a fast machine as on a slow one.

use crate::support::{Door, PATIENCE, Schema, Server, get, http, run};
use baton_core::rng::Rng;
use baton_sim::seed::seed;
use baton_wire::{EventList, Job, JobList, JobState};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

const CLIENTS: usize = 8;
const PROJECTS: usize = 3;
/// Acknowledgements between two kills.
const FEWEST: u64 = 40;
const MOST: u64 = 160;

#[test]
fn a_kill_loses_nothing_acknowledged_and_repeats_nothing_on_sqlite() {
    check(None);
}

#[test]
fn a_kill_loses_nothing_acknowledged_and_repeats_nothing_on_postgresql() {
    let Some(schema) = Schema::create() else { return };
    check(Some(schema.url()));
    schema.remove();
}

fn kills() -> u64 {
    std::env::var("BATON_KILLS").map_or(3, |text| text.parse().expect("BATON_KILLS is a number"))
}

fn check(database: Option<&str>) {
    let dir = tempfile::tempdir().unwrap();
    let mut rng = Rng::new(seed());
    let database: Vec<_> = database.into_iter().flat_map(|url| ["--database", url]).collect();
    // Room for everything that is sent, none of it forgotten before it was compared, and as many
    // attempts as there may be kills: a job that was running at each of them still completes.
    let room = ["--max-per-project", "1000000", "--max-global", "1000000", "--retained-jobs", "1000000"];
    let settings = [&room[..], &["--max-attempts", "1000"], &database].concat();
    let load = Load::default();
    let kills = kills();
    for _ in 0..kills {
        let server = Server::serve(dir.path(), &settings);
        load.until(server, FEWEST + rng.below(MOST - FEWEST));
    }
    let server = Server::serve(dir.path(), &settings);
    let door = server.door();
    load.finish(&door);
    let book = load.book.into_inner().unwrap();
    assert!(book.unanswered.is_empty());
    eprintln!("{kills} kills, {} jobs, {} sent more than once", book.acknowledged.len(), book.repeated);
    repeat_everything(&door, &book);
    wait_for_the_end(&door, book.acknowledged.len());
    compare(&door, &book);
    let audit = server.ask(&["audit", "--json"]).ok().json();
    assert_eq!(audit["clean"], true, "{audit}");
    server.stop();
    let dir = dir.path().to_str().unwrap();
    run(&[&["audit", "--offline", "--data-dir", dir], &database[..]].concat()).ok();
}

/// What the clients know.
#[derive(Default)]
struct Book {
    next: usize,
    acknowledged: BTreeMap<usize, String>,
    /// Sent, and no answer: done or not, nobody knows.
    unanswered: Vec<usize>,
    repeated: usize,
}

#[derive(Default)]
struct Load {
    book: Mutex<Book>,
}

impl Load {
    /// Loads a server until it has acknowledged so many, then kills it.
    fn until(&self, server: Server, acknowledgements: u64) {
        let goal = self.book.lock().unwrap().acknowledged.len() + acknowledgements as usize;
        let door = &server.door();
        let (reached, is_reached) = channel();
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                let reached = reached.clone();
                scope.spawn(move || while self.send_one(door, true, goal, &reached) {});
            }
            is_reached.recv_timeout(PATIENCE).expect("the load gets through");
            server.kill();
        });
    }

    /// Repeats what was not answered, until everything is.
    fn finish(&self, door: &Door) {
        let (reached, _is_reached) = channel();
        while self.send_one(door, false, usize::MAX, &reached) {}
    }

    /// False if there is nobody to send to, or nothing to send.
    fn send_one(&self, door: &Door, more: bool, goal: usize, reached: &Sender<()>) -> bool {
        let n = {
            let mut book = self.book.lock().unwrap();
            match book.unanswered.pop() {
                Some(n) => {
                    book.repeated += 1;
                    n
                }
                None if more => {
                    book.next += 1;
                    book.next
                }
                None => return false,
            }
        };
        let answer = post(door, n);
        let mut book = self.book.lock().unwrap();
        let Some((status, body)) = answer else {
            book.unanswered.push(n);
            return false;
        };
        assert!([200, 201].contains(&status), "{status} {body}");
        book.acknowledged.insert(n, body);
        if book.acknowledged.len() == goal {
            reached.send(()).unwrap();
        }
        true
    }
}

fn project(n: usize) -> String {
    format!("p{}", n % PROJECTS)
}

fn post(door: &Door, n: usize) -> Option<(u16, String)> {
    let body = format!(r#"{{"type":"echo","projectId":"{}","payload":{{"message":"m{n}"}}}}"#, project(n));
    let headers = format!("Content-Type: application/json\r\nIdempotency-Key: key-{n}\r\n");
    http(door, "POST", "/api/v1/jobs", &headers, &body).map(|(status, _, body)| (status, body))
}

/// Every key is still known, with the very answer that was given first.
fn repeat_everything(door: &Door, book: &Book) {
    for (n, first) in &book.acknowledged {
        let (status, body) = post(door, *n).unwrap();
        assert_eq!((status, &body), (200, first), "key-{n}");
    }
}

/// Follows the history until so many jobs have ended.
fn wait_for_the_end(door: &Door, jobs: usize) {
    let mut ended = BTreeSet::new();
    let mut after = String::new();
    while ended.len() < jobs {
        let list: EventList = get(door, &format!("/api/v1/events?limit=1000&wait_ms=30000{after}"));
        assert!(!list.events.is_empty(), "{} of {jobs} have ended, and nothing more happens", ended.len());
        after = format!("&after={}", list.next);
        for event in list.events {
            if ["job.completed", "job.failed"].contains(&event.kind.as_str()) {
                assert!(ended.insert(event.subject.clone()), "{} ended twice", event.subject);
            }
        }
    }
}

/// The jobs that are there are those that were acknowledged: each once, each with its result.
fn compare(door: &Door, book: &Book) {
    let mut jobs: BTreeMap<String, Job> = BTreeMap::new();
    for p in 0..PROJECTS {
        let mut cursor = String::new();
        loop {
            let path = format!("/api/v1/projects/{}/jobs?limit=200{cursor}", project(p));
            let list: JobList = get(door, &path);
            for job in list.jobs {
                assert!(jobs.insert(job.id.to_string(), job).is_none(), "a job is listed twice");
            }
            let Some(next) = list.next_cursor else { break };
            cursor = format!("&cursor={next}");
        }
    }
    for (n, accepted) in &book.acknowledged {
        let accepted: Job = serde_json::from_str(accepted).unwrap();
        let job = jobs.remove(&accepted.id.to_string()).unwrap_or_else(|| panic!("key-{n} is lost: {accepted:?}"));
        assert_eq!(job.payload["message"], format!("m{n}"));
        assert_eq!(job.state, JobState::Completed, "key-{n} did not complete: {job:?}");
        assert_eq!(job.result.unwrap()["message"], format!("m{n}"));
    }
    assert!(jobs.is_empty(), "jobs that nobody asked for: {jobs:?}");
}

#[test]
fn a_killed_server_leaves_an_address_behind_that_the_next_one_replaces() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("address");
    Server::serve(dir.path(), &[]).kill();
    assert!(file.exists(), "nobody was there to take it away");
    let server = Server::serve(dir.path(), &[]);
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), server.address.to_string());
    server.stop();
    assert!(!file.exists());
}
