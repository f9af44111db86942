//! Runs on the command line: what is printed, for whom, and how it exits.

use crate::support::{PATIENCE, Server, command, lines, run, run_with, signal};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc::Receiver;

const NOBODY: &str = "run_018bcfe568007001800000000000002a";

fn started() -> (Server, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    (Server::serve(&dir.path().join("data"), &[]), dir)
}

fn written(dir: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path: PathBuf = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

const SHORT: &str = "name: short\nplan:\n  agents:\n  - name: a\n    tasks:\n    - name: t\n      steps:\n      - { name: s, tool: sleep, input: { for: 1ms } }\n";
const WAITS: &str = "name: waits\nplan:\n  agents:\n  - name: a\n    tasks:\n    - name: t\n      steps:\n      - { name: s, tool: wait, input: { signal: go } }\n";
/// Nothing can be called here that would fail: a person says no.
const ASKS: &str = "name: asks\nplan:\n  agents:\n  - name: a\n    tasks:\n    - name: t\n      steps:\n      - name: s\n        tool: ask\n        input: { prompt: 'Go on?', options: [{ name: go }, { name: no, effect: fail }] }\n";

/// A command that goes on, with what it says on both sides.
struct Going {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
}

impl Going {
    fn start(args: &[&str]) -> Self {
        let mut child = command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, err) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        Self { child, out, err }
    }

    #[track_caller]
    fn until(from: &Receiver<String>, part: &str) -> String {
        std::iter::from_fn(|| from.recv_timeout(PATIENCE).ok()).find(|line| line.contains(part)).unwrap()
    }

    fn code(mut self) -> Option<i32> {
        while self.out.recv_timeout(PATIENCE).is_ok() {}
        while self.err.recv_timeout(PATIENCE).is_ok() {}
        self.child.wait().unwrap().code()
    }
}

/// A run of `WAITS` that has come to its waiting, and its id.
fn waiting(args: &[&str]) -> (Going, String) {
    let going = Going::start(args);
    let head = Going::until(&going.err, "run_");
    let id = head.split(' ').next().unwrap().to_owned();
    Going::until(&going.out, "t.s waits for the signal go");
    (going, id)
}

#[test]
fn a_run_is_followed_in_words_and_shown_as_a_tree() {
    let (server, dir) = started();
    let file = written(&dir, "short.yaml", SHORT);
    let more = ["--label", "team=search", "--project", "shop", "--name", "renamed", "--budget", "0"];
    let ran = server.ask(&[&["run", &file], &more[..]].concat()).ok();
    assert!(ran.err.starts_with("run_") && ran.err.contains("renamed"), "{ran:#?}");
    for part in [
        "run  is running with 1 agents",
        "a  t.s sleeps until 20",
        "a  t.s completed",
        "✓ renamed  completed  1/1 steps",
    ] {
        assert!(ran.out.contains(part), "{part}: {ran:#?}");
    }
    assert!(ran.out.contains("0 credits charged, 0 given back"), "{ran:#?}");
    assert!(!ran.out.contains('\u{1b}'), "colours are for terminals: {ran:#?}");

    let list = server.ask(&["runs", "list", "--project", "shop", "--status", "completed", "--json"]).ok().json();
    let found = &list["runs"][0];
    assert_eq!((&found["labels"], &found["name"]), (&json!({ "team": "search" }), &json!("renamed")));
    assert_eq!(server.ask(&["runs", "list", "--project", "nobody"]).ok().out, "no runs\n");
    let table = server.ask(&["runs", "list"]).ok().out;
    assert!(table.starts_with("RUN ") && table.contains("renamed") && table.contains("shop"), "{table}");
    let id = found["id"].as_str().unwrap();
    let tree = server.ask(&["runs", "show", id]).ok().out;
    for part in ["✓ renamed  completed", "  ✓ a  1/1 steps", "    ✓ t", "      ✓ s  sleep", "team=search", "budget 0"]
    {
        assert!(tree.contains(part), "{part}: {tree}");
    }
    // What has ended is not waited for.
    assert!(server.ask(&["runs", "show", id, "--watch"]).ok().out.contains("completed"));
    let logs = server.ask(&["runs", "logs", id]).ok().out;
    assert!(logs.lines().next().unwrap().ends_with("run  was created"), "{logs}");
    let followed = server.ask(&["runs", "logs", id, "--follow"]).ok().out;
    assert_eq!(followed, logs);
    let events = server.ask(&["runs", "logs", id, "--json"]).ok().out;
    let kinds: Vec<Value> =
        events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["kind"].clone()).collect();
    assert_eq!((&kinds[0], kinds.last().unwrap()), (&json!("run.created"), &json!("run.completed")));
    let said = server.ask(&["runs", "delete", id]).ok().out;
    assert_eq!(said, format!("{id} is deleted\n"));
    assert_eq!(server.ask(&["runs", "list"]).ok().out, "no runs\n");
    server.stop();
}

#[test]
fn programs_get_events_and_the_run_as_the_last_line() {
    let (server, dir) = started();
    let file = written(&dir, "short.json", &json!({
        "name": "short", "plan": { "agents": [{ "tasks": [{ "steps": [{ "tool": "sleep", "input": { "for": "1ms" } }] }] }] },
    }).to_string());
    let ran = server.ask(&["run", &file, "--json"]).ok();
    let told: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (last, events) = told.split_last().unwrap();
    assert!(events.iter().all(|event| event["kind"].is_string()) && events.len() >= 5, "{ran:#?}");
    assert_eq!((&last["status"], &last["credits_charged"]), (&json!("completed"), &json!("0")));
    assert_eq!(ran.err, "");
    // From standard input, and with a key that makes it one run.
    let url = server.url();
    let args = ["run", "-", "--server", &url, "--json", "--detach", "--idempotency-key", "once"];
    let first = run_with(&args, SHORT, &[]).ok().json();
    let again = run_with(&args, SHORT, &[]).ok();
    assert_eq!(again.json()["id"], first["id"]);
    assert!(again.err.contains("used before"), "{again:#?}");
    server.ask(&["runs", "show", first["id"].as_str().unwrap(), "--watch"]).ok();
    server.stop();
}

#[test]
fn what_is_wrong_with_a_document_is_shown_where_it_stands() {
    let (server, dir) = started();
    let file = written(
        &dir,
        "bad.yaml",
        "name: x\nplan:\n  agents:\n  - tasks:\n    - steps:\n      - tool: slep\n        inpt: {}\n",
    );
    let ran = server.ask(&["run", &file]);
    let said = ran.failed(1, "invalid_run");
    assert!(said.contains("bad.yaml:6:9: ") && said.contains("(unknown_tool)"), "{said}");
    assert!(said.contains("bad.yaml:7:9: ") && said.contains("(unknown_field)"), "{said}");
    assert!(said.contains("  6 |       - tool: slep\n    |         ^\n"), "{said}");
    assert!(said.contains("bad.yaml has 2 problems [invalid_run]"), "{said}");
    assert!(said.contains("hint: tools are declared under [tools.NAME]"), "{said}");
    let ran = server.ask(&["run", &file, "--json", "--label", "a=b"]);
    let problem: Value = serde_json::from_str(&ran.err).unwrap();
    let places: Vec<_> =
        problem["problems"].as_array().unwrap().iter().map(|one| (&one["line"], &one["column"])).collect();
    assert!(places.contains(&(&json!(6), &json!(9))), "{problem:#}");
    assert_eq!(server.ask(&["runs", "list"]).ok().out, "no runs\n");
    server.stop();

    // What is no YAML at all needs no server to say so.
    let file = written(&dir, "torn.yaml", "name: [x\nplan: 1\n");
    let ran = run(&["run", &file, "--server", "http://127.0.0.1:1"]);
    let said = ran.failed(1, "document_invalid");
    assert!(said.contains("torn.yaml:") && said.contains('^'), "{said}");
    run(&["run", "/nowhere.yaml"]).failed(1, "file_unusable");
    assert_eq!(run(&["run", "x.yaml", "--label", "nothing"]).code, Some(2));
}

#[test]
fn a_run_that_fails_or_is_cancelled_says_so_by_its_exit_code() {
    let (server, dir) = started();
    let (asks, url) = (written(&dir, "asks.yaml", ASKS), server.url());
    let going = Going::start(&["run", &asks, "--server", &url]);
    let line = Going::until(&going.out, "t.s asks: baton decisions show dec_");
    server.ask(&["decisions", "resolve", line.rsplit(' ').next().unwrap(), "no"]).ok();
    Going::until(&going.out, "a.t.s  declined");
    let error = Going::until(&going.err, "[run_failed]");
    assert!(error.starts_with("error: run run_"), "{error}");
    assert!(Going::until(&going.err, "hint: ").contains("baton runs show run_"));
    assert_eq!(going.code(), Some(3));

    let waits = written(&dir, "waits.yaml", WAITS);
    let (going, id) = waiting(&["run", &waits, "--server", &url]);
    let id = id.as_str();
    let paused = server.ask(&["runs", "pause", id, "--json"]).ok().json();
    assert_eq!(paused["id"], id);
    Going::until(&going.out, "run  was paused");
    server.ask(&["runs", "resume", id]).ok();
    Going::until(&going.out, "run  goes on");
    let said = server.ask(&["runs", "cancel", id, "--reason", "not needed"]).ok().out;
    assert!(said.starts_with(id), "{said}");
    assert!(Going::until(&going.err, "[run_cancelled]").contains("not needed"));
    assert_eq!(going.code(), Some(4));
    server.ask(&["runs", "start", id]).failed(1, "invalid_transition");
    server.ask(&["runs", "show", NOBODY]).failed(1, "run_not_found");
    server.stop();
}

#[test]
fn one_ctrl_c_leaves_a_run_alone_and_two_cancel_it() {
    let (server, dir) = started();
    let (file, url) = (written(&dir, "waits.yaml", WAITS), server.url());
    let (going, id) = waiting(&["run", &file, "--server", &url]);
    signal(&going.child, "INT");
    assert!(Going::until(&going.err, "runs show").contains(&id));
    assert_eq!(going.code(), Some(130));
    let show = || server.ask(&["runs", "show", &id, "--json"]).ok().json()["run"]["status"].clone();
    assert_eq!(show(), "running");
    server.ask(&["runs", "signal", &id, "go"]).ok();
    server.ask(&["runs", "show", &id, "--watch"]).ok();

    let going = Going::start(&["run", &file, "--server", &url]);
    Going::until(&going.out, "t.s waits for the signal go");
    signal(&going.child, "INT");
    Going::until(&going.err, "Ctrl-C again");
    signal(&going.child, "INT");
    Going::until(&going.err, "[run_cancelled]");
    assert_eq!(going.code(), Some(4));
    server.stop();
}

#[test]
fn a_run_of_its_own_server_goes_on_with_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let (file, data) = (written(&dir, "waits.yaml", WAITS), dir.path().join("data"));
    let data = data.to_str().unwrap();
    let (going, id) = waiting(&["run", &file, "--data-dir", data]);
    // Another one uses the same server, and knows its way.
    let other = written(&dir, "short.yaml", SHORT);
    let ran = run(&["run", &other, "--data-dir", data]).ok();
    assert!(!ran.err.contains("no server is running"), "{ran:#?}");
    signal(&going.child, "INT");
    Going::until(&going.err, "goes on when a server is started");
    assert!(Going::until(&going.err, "baton up").contains(data));
    assert_eq!(going.code(), Some(130));
    let detached = run(&["run", &other, "--data-dir", data, "--detach"]);
    assert!(detached.failed(69, "server_unreachable").contains("baton up"), "{detached:#?}");
    let server = Server::serve(dir.path().join("data").as_path(), &[]);
    server.ask(&["runs", "signal", &id, "go"]).ok();
    server.ask(&["runs", "show", &id, "--watch"]).ok();
    assert_eq!(server.ask(&["audit", "--json"]).ok().json()["clean"], true);
    server.stop();
}

#[test]
fn credits_are_given_once_and_every_move_is_listed() {
    let (server, dir) = started();
    let balance = |name: &str| server.ask(&["credits", "balance", "--json"]).ok().json()[name].clone();
    assert_eq!(balance("available"), "0");
    let grant = ["credits", "grant", "12.5", "--note", "to begin with", "--idempotency-key", "first"];
    assert_eq!(server.ask(&grant).ok().out, "12.5 credits given, 12.5 available\n");
    assert!(server.ask(&grant).ok().err.contains("used before"));
    assert_eq!(balance("available"), "12.5");
    let file = written(&dir, "waits.yaml", WAITS);
    server.ask(&["run", &file, "--detach", "--budget", "20"]).failed(1, "insufficient_credits");
    let run = server.ask(&["run", &file, "--detach", "--budget", "5", "--json"]).ok().json();
    assert_eq!((balance("available"), balance("reserved")), (json!("7.5"), json!("5")));
    let text = server.ask(&["credits", "balance"]).ok().out;
    assert!(text.contains("available") && text.contains("reserved for runs"), "{text}");
    server.ask(&["runs", "cancel", run["id"].as_str().unwrap()]).ok();
    server.ask(&["runs", "show", run["id"].as_str().unwrap(), "--watch"]).failed(4, "run_cancelled");
    assert_eq!(balance("available"), "12.5");
    let ledger = server.ask(&["credits", "ledger", "--order", "asc", "--json"]).ok().json();
    let kinds: Vec<_> = ledger["entries"].as_array().unwrap().iter().map(|entry| entry["kind"].clone()).collect();
    assert_eq!(kinds, ["grant", "reserve", "refund"]);
    let table = server.ask(&["credits", "ledger", "--limit", "1"]).ok().out;
    assert!(table.contains("refund") && table.contains("+5") && table.contains("more: "), "{table}");
    assert_eq!(server.ask(&["credits", "grant", "-1"]).code, Some(2));
    server.stop();
}

#[test]
fn why_says_what_is_waited_for_and_who_can_help() {
    let (server, dir) = started();
    let (file, url) = (written(&dir, "waits.yaml", WAITS), server.url());
    let (going, id) = waiting(&["run", &file, "--server", &url]);
    let why = server.ask(&["why", &id, "--json"]).ok().json();
    assert_eq!(why["waits_for"][0]["what"], "signal", "{why}");
    let words = server.ask(&["why", &id]).ok().out;
    assert!(words.starts_with(&id) && words.contains("signal") && !words.contains('\u{1b}'), "{words}");
    server.ask(&["runs", "signal", &id, "go", "--data", "nonsense"]).failed(2, "usage");
    server.ask(&["runs", "signal", &id, "go"]).ok();
    assert!(server.ask(&["runs", "signal", &id, "go"]).code.is_some());
    assert_eq!(going.code(), Some(0));
    let tools = server.ask(&["tools"]).ok().out;
    assert!(tools.starts_with("TOOL ") && tools.contains("sleep"), "{tools}");
    let names = server.ask(&["tools", "--json"]).ok().json();
    assert_eq!(names["tools"].as_array().unwrap().len(), 3);
    server.stop();
}

#[test]
fn declared_tools_are_checked_at_the_start_and_by_the_doctor() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let config = |text: &str| written(&dir, "baton.toml", text);
    let serve =
        |file: &str| run(&["serve", "--listen", "127.0.0.1:0", "--config", file, "--data-dir", data.to_str().unwrap()]);
    let bad = serve(&config("[tools.a]\nkind = \"process\"\nargv = [\"/bin/sh\"]\neffect = \"mild\"\n"));
    assert!(bad.failed(78, "config_invalid").contains("baton.toml: tools.a.effect"), "{bad:#?}");
    let bad = serve(&config("[tools.a]\nkind = \"process\"\nargv = []\n"));
    bad.failed(78, "config_invalid");
    let file = config("agent_slots = 3\n[tools.a]\nkind = \"process\"\nargv = [\"./a.sh\"]\n");
    let doctor = || {
        let args = ["doctor", "--json", "--listen", "127.0.0.1:0", "--config", &file, "--data-dir"];
        run(&[&args[..], &[data.to_str().unwrap()]].concat())
    };
    let about = |ran: &crate::support::Ran| {
        let report = ran.json();
        let found = report["findings"].as_array().unwrap().iter().find(|found| found["check"] == "tools").cloned();
        found.unwrap()
    };
    let missing = doctor();
    assert_eq!((missing.code, &about(&missing)["verdict"]), (Some(1), &json!("problem")), "{missing:#?}");
    written(&dir, "a.sh", "#!/bin/sh\ncat\n");
    std::fs::set_permissions(dir.path().join("a.sh"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(about(&doctor())["verdict"], "ok");
}
