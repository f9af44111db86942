//! Every document in `examples/` does what it says, through the real binary.

use crate::support::{PATIENCE, Ran, Server, command, lines, run_with};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::Receiver;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn example(name: &str) -> String {
    examples().join(name).to_str().unwrap().to_owned()
}

/// A server that knows the tools of the examples and has credits to spend.
struct Stage {
    server: Server,
    _dir: tempfile::TempDir,
}

impl Stage {
    fn set() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (data, config) = (dir.path().join("data"), example("baton.toml"));
        let args = ["serve", "--listen", "127.0.0.1:0", "--log", "json", "--config", &config, "--data-dir"];
        let mut command = command(&[&args[..], &[data.to_str().unwrap()]].concat());
        command.env("TMPDIR", dir.path());
        let server = Server::start(command).unwrap();
        server.ask(&["credits", "grant", "100"]).ok();
        Self { server, _dir: dir }
    }

    fn run(&self, name: &str) -> Ran {
        self.server.ask(&["run", &example(name)])
    }

    /// The last run, with its parts and their results.
    fn last(&self) -> Value {
        let list = self.server.ask(&["runs", "list", "--limit", "1", "--json"]).ok().json();
        let id = list["runs"][0]["id"].as_str().unwrap().to_owned();
        self.server.ask(&["runs", "show", &id, "--json"]).ok().json()
    }

    /// Nothing is left undone, unpaid or unexplained.
    #[track_caller]
    fn strike(self) {
        let audit = self.server.ask(&["audit", "--json"]).ok().json();
        assert_eq!(audit["clean"], true, "{audit}");
        let balance = self.server.ask(&["credits", "balance", "--json"]).ok().json();
        assert_eq!(balance["reserved"], "0", "{balance}");
        self.server.stop();
    }
}

/// `baton run` while it goes on.
struct Following {
    child: Child,
    out: Receiver<String>,
    seen: Vec<String>,
}

impl Following {
    fn start(stage: &Stage, name: &str) -> Self {
        let mut command = command(&["run", &example(name), "--server", &stage.server.url()]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let out = lines(child.stdout.take().unwrap());
        Self { child, out, seen: Vec::new() }
    }

    /// The first line from here on that says this.
    #[track_caller]
    fn until(&mut self, part: &str) -> String {
        loop {
            let Ok(line) = self.out.recv_timeout(PATIENCE) else { panic!("{part:?} was not said: {:#?}", self.seen) };
            self.seen.push(line.clone());
            if line.contains(part) {
                return line;
            }
        }
    }

    #[track_caller]
    fn completed(mut self) {
        self.until("credits charged");
        while self.out.recv_timeout(PATIENCE).is_ok() {}
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{:#?}", self.seen);
    }
}

/// What a step came to, by its agent, task and name.
fn step<'a>(run: &'a Value, agent: &str, task: &str, name: &str) -> &'a Value {
    let mut steps = run["steps"].as_array().unwrap().iter().rev();
    steps
        .find(|step| step["agent_name"] == agent && step["task"] == task && step["name"] == name)
        .unwrap_or_else(|| panic!("there is no step {agent}.{task}.{name}: {run:#}"))
}

#[test]
fn research_runs_from_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join(".baton");
    let data = data.to_str().unwrap();
    let env = [("TMPDIR", dir.path().to_str().unwrap()), ("BATON_DATA_DIR", data)];
    let ran = run_with(&["run", &example("research.yaml")], "", &env).ok();
    assert!(ran.err.contains("no server is running; this run has its own"), "{ran:#?}");
    assert!(ran.err.contains("examples/baton.toml"), "{ran:#?}");
    assert!(ran.out.contains("✓ Research on durable work  completed  9/9 steps"), "{ran:#?}");
    assert!(!ran.out.contains('\u{1b}') && !ran.err.contains('\u{1b}'), "{ran:#?}");
    let audit = run_with(&["audit", "--offline", "--json"], "", &env).ok().json();
    assert_eq!(audit["clean"], true, "{audit}");
    // What was kept is there for the next server, and so are the credits that were left.
    let server = Server::serve(Path::new(data), &[]);
    let list = server.ask(&["runs", "list", "--json"]).ok().json();
    assert_eq!(list["runs"][0]["status"], "completed");
    let balance = server.ask(&["credits", "balance", "--json"]).ok().json();
    assert_eq!((&balance["available"], &balance["reserved"]), (&"996.15".into(), &"0".into()), "{balance}");
    server.stop();
}

#[test]
fn sequential_parallel_dag_and_python_tools_complete() {
    let stage = Stage::set();
    stage.run("sequential.yaml").ok();
    let run = stage.last();
    assert!(step(&run, "reader", "measure", "count")["result"]["words"].as_u64().unwrap() > 10, "{run:#}");

    stage.run("parallel.yaml").ok();
    let run = stage.last();
    assert!(step(&run, "right", "both", "together")["result"]["report"].as_str().unwrap().contains("Sagas"));
    assert_eq!(step(&run, "last", "task-1", "step-1")["status"], "completed");

    stage.run("dag.yaml").ok();
    let run = stage.last();
    let ended = |task: &str, name: &str| step(&run, "graph", task, name)["ended_at"].as_str().unwrap().to_owned();
    assert!(ended("find", "search") < ended("sagas", "read") && ended("join", "report") < ended("publish", "out"));
    let published = step(&run, "graph", "publish", "out")["result"]["published"].as_str().unwrap().to_owned();
    assert!(std::fs::read_to_string(published).unwrap().contains("Leases"));

    stage.run("python-tools.yaml").ok();
    let run = stage.last();
    assert_eq!(step(&run, "python", "work", "flaky")["attempts"], 2, "{run:#}");
    stage.strike();
}

#[test]
fn failures_are_tried_again_left_out_or_final() {
    let stage = Stage::set();
    let ran = stage.run("retry-and-continue.yaml").ok();
    assert!(ran.out.contains("generous.some.broken  out_of_stock: this will not get better"), "{ran:#?}");
    let run = stage.last();
    assert_eq!(step(&run, "patient", "try", "third-time")["attempts"], 3);
    assert_eq!(step(&run, "generous", "some", "broken")["status"], "skipped");
    assert_eq!(step(&run, "generous", "some", "fine")["status"], "completed");
    let broken = step(&run, "hopeless", "again", "broken");
    assert_eq!((&broken["status"], &broken["task_attempt"]), (&"failed".into(), &2.into()), "{run:#}");
    assert_eq!(run["run"]["status"], "completed");
    stage.strike();
}

#[test]
fn a_person_approves() {
    let stage = Stage::set();
    let mut following = Following::start(&stage, "approval.yaml");
    let asked = following.until("approve.ask asks: baton decisions show dec_");
    let decision = asked.rsplit(' ').next().unwrap();
    let why = stage.server.ask(&["why", stage.last()["run"]["id"].as_str().unwrap()]).ok().out;
    assert!(why.contains("answer"), "{why}");
    let shown = stage.server.ask(&["decisions", "show", decision]).ok().out;
    assert!(shown.contains("Publish \"Leases\"?"), "{shown}");
    stage.server.ask(&["decisions", "resolve", decision, "publish", "--comment", "looks good"]).ok();
    following.completed();
    assert_eq!(step(&stage.last(), "publisher", "publish", "out")["status"], "completed");
    stage.strike();
}

#[test]
fn a_signal_lets_a_run_go_on() {
    let stage = Stage::set();
    let mut following = Following::start(&stage, "waiting.yaml");
    following.until("build.built waits for the signal built");
    let run = stage.last();
    let id = run["run"]["id"].as_str().unwrap();
    let tree = stage.server.ask(&["runs", "show", id]).ok().out;
    assert!(tree.contains(&format!("waits for the signal built: baton runs signal {id} built")), "{tree}");
    stage.server.ask(&["runs", "signal", id, "built", "--data", r#"{"version":"1.4"}"#]).ok();
    following.completed();
    assert_eq!(step(&stage.last(), "releaser", "tell", "count")["result"]["words"], 4);
    stage.strike();
}

#[test]
fn every_example_is_tested() {
    let tested = include_str!("examples.rs");
    for entry in std::fs::read_dir(examples()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.ends_with(".yaml") || tested.contains(&format!("\"{name}\"")), "{name} is not tested");
    }
}
