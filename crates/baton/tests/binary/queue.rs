//! The queue on the command line, against a running server: many jobs, watching, cancelling,
//! repeating, lanes and schedules.

use crate::support::{Ran, Server, command, lines, run_with};
use serde_json::{Value, json};

fn started(more: &[&str]) -> (Server, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    (Server::serve(dir.path(), more), dir)
}

/// Enqueues an echo and gives its id.
fn echo(server: &Server, project: &str, payload: &Value) -> String {
    let payload = payload.to_string();
    let args = ["jobs", "enqueue", "echo", "--project", project, "--json", "--payload", &payload];
    server.ask(&args).ok().json()["id"].as_str().unwrap().to_owned()
}

/// Waits for something to happen to a job.
fn until(server: &Server, id: &str, kind: &str) {
    let url = server.url();
    let mut tail = command(&["events", "tail", "--from-start", "--json", "--server", &url]);
    let mut child = tail.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let heard = lines(child.stdout.take().unwrap());
    loop {
        let line = heard.recv_timeout(crate::support::PATIENCE).unwrap();
        let event: Value = serde_json::from_str(&line).unwrap();
        if event["subject"] == id && event["kind"] == kind {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_file_of_jobs_is_taken_whole() {
    let (server, dir) = started(&[]);
    let file = dir.path().join("jobs.jsonl");
    let line = |n: usize| json!({ "type": "echo", "projectId": "p", "payload": { "message": n } }).to_string();
    std::fs::write(&file, format!("{}\n\n{}\n", line(1), line(2))).unwrap();
    let taken = server.ask(&["jobs", "batch", file.to_str().unwrap(), "--json"]).ok().json();
    assert_eq!((taken["jobs"].as_array().unwrap().len(), &taken["enqueued"]), (2, &json!(2)));
    let url = server.url();
    let piped = |input: &str| run_with(&["jobs", "batch", "-", "--server", &url], input, &[]);
    let table = piped(&line(3)).ok().out;
    assert!(table.starts_with("JOB ") && table.ends_with("1 of 1 are new\n"), "{table}");
    let wrong = piped(&format!("{}\n{{\"type\":\"moon\",\"projectId\":\"p\"}}", line(4)));
    assert!(wrong.failed(1, "unknown_job_type").contains("error: line 2: no job type is called moon"), "{wrong:?}");
    let deep = format!(
        "{{\"type\":\"noop\",\"projectId\":\"p\",\"payload\":{{\"x\":{}1{}}}}}",
        "[".repeat(70),
        "]".repeat(70)
    );
    let wrong = piped(&format!("\n{}\n{deep}", line(4)));
    assert!(wrong.failed(1, "invalid_request").contains("error: line 3: payload: "), "{wrong:?}");
    let many = vec![line(4); 1001].join("\n");
    assert!(piped(&many).failed(1, "batch_size").contains("hint: "));
    piped("nonsense").failed(2, "usage");
    piped("").failed(2, "usage");
    let list = server.ask(&["jobs", "list", "--project", "p", "--json"]).ok().json();
    assert_eq!(list["jobs"].as_array().unwrap().len(), 3);
    server.stop();
}

#[test]
fn a_list_is_read_on_until_there_is_as_much_as_was_asked_for() {
    let (server, _dir) = started(&["--max-per-project", "1000"]);
    let parked = echo(&server, "p", &json!({ "wait": true }));
    until(&server, &parked, "job.parked");
    let many = vec![json!({ "type": "noop", "projectId": "p" }).to_string(); 250].join("\n");
    run_with(&["jobs", "batch", "-", "--server", &server.url()], &many, &[]).ok();
    let list = |args: &[&str]| {
        let list = server.ask(&[&["jobs", "list", "--project", "p", "--json"], args].concat()).ok().json();
        (list["jobs"].as_array().unwrap().len(), list["nextCursor"].as_str().map(str::to_owned))
    };
    assert_eq!(list(&["--limit", "251"]), (251, None), "more than one page holds");
    let (jobs, cursor) = list(&["--limit", "230"]);
    assert_eq!(jobs, 230);
    assert_eq!(list(&["--cursor", &cursor.unwrap()]), (21, None));
    // A whole page of others stands before it.
    assert_eq!(list(&["--state", "awaiting_tool", "--limit", "1"]).0, 1);
    let table = server.ask(&["jobs", "list", "--project", "p", "--state", "awaiting_tool,executing"]).ok().out;
    assert!(table.contains(&parked) && table.contains("awaiting_tool (tool)"), "{table}");
    assert_eq!(list(&["--state", "running,canceled"]).0, 1);
    let wrong = server.ask(&["jobs", "list", "--project", "p", "--state", "asleep"]);
    assert!(wrong.failed(1, "invalid_request").contains("awaiting_user_confirmation"), "{wrong:?}");
    server.stop();
}

#[test]
fn a_duplicate_is_said_to_be_one() {
    let (server, _dir) = started(&[]);
    let args = ["jobs", "enqueue", "noop", "--project", "p", "--message-id", "mail-42"];
    let first = server.ask(&args).ok();
    assert_eq!(first.err, "");
    let again = server.ask(&args).ok();
    assert!(again.err.contains("the same message"), "{again:?}");
    assert_eq!(first.out.split(' ').next(), again.out.split(' ').next());
    let json = server.ask(&[&args[..], &["--json"]].concat()).ok().json();
    assert_eq!(json["dedupe"], "same_message");
    for (asked, number) in [("interactive", 100), ("7", 7)] {
        let args = ["jobs", "enqueue", "noop", "--project", "p", "--json", "--priority", asked];
        assert_eq!(server.ask(&args).ok().json()["priorityNumber"], number);
    }
    assert_eq!(server.ask(&["jobs", "enqueue", "noop", "--project", "p", "--priority", "1000"]).code, Some(2));
    server.stop();
}

#[test]
fn a_full_queue_is_unavailable_and_says_so() {
    let (server, _dir) = started(&["--max-per-project", "1"]);
    let held = echo(&server, "p", &json!({ "wait": true }));
    until(&server, &held, "job.parked");
    echo(&server, "p", &json!({}));
    let full = server.ask(&["jobs", "enqueue", "echo", "--project", "p"]);
    let err = full.failed(69, "queue_full");
    assert!(err.contains("project:p") && err.contains("hint: "), "{err}");
    server.stop();
}

#[test]
fn a_queue_that_is_off_refuses_jobs() {
    let dir = tempfile::tempdir().unwrap();
    let mut off = command(&["serve", "--listen", "127.0.0.1:0", "--log", "json", "--data-dir"]);
    off.arg(dir.path()).env("ORCHESTRATOR_QUEUE_ENABLED", "false");
    let server = Server::start(off).unwrap_or_else(|seen| panic!("{seen:?}"));
    let refused = server.ask(&["jobs", "enqueue", "echo", "--project", "p"]);
    assert!(refused.failed(69, "queue_disabled").contains("ORCHESTRATOR_QUEUE_ENABLED"), "{refused:?}");
    server.stop();
    // What failed while it was on stays failed, and whole sentences say so.
    let server = Server::serve(dir.path(), &[]);
    let failed = echo(&server, "p", &json!({ "fail": "deterministic" }));
    until(&server, &failed, "job.failed");
    server.stop();
    let server = Server::serve(dir.path(), &["--queue-enabled", "0"]);
    let refused = server.ask(&["jobs", "requeue", &failed]);
    let err = refused.failed(69, "queue_disabled");
    assert!(err.contains("cannot be requeued: the queue is switched off"), "{err}");
    server.stop();
}

#[test]
fn settings_of_the_queue_come_from_the_file_and_wrong_ones_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("baton.toml");
    let serve = |text: &str, env: &[(&str, &str)]| {
        std::fs::write(&file, format!("data_dir = \"state\"\nlisten = \"127.0.0.1:0\"\n{text}")).unwrap();
        run_with(&["serve", "--config", file.to_str().unwrap()], "", env)
    };
    let wrong = serve("[queue]\nmax_attempts = 0\n", &[]);
    assert!(wrong.failed(78, "config_invalid").contains("ORCHESTRATOR_QUEUE_MAX_ATTEMPTS"), "{wrong:?}");
    let wrong = serve("[queue]\nmax_atempts = 1\n", &[]);
    assert!(wrong.failed(78, "config_invalid").contains("line 4"), "{wrong:?}");
    serve("slots = 1\n[queue]\nglobal_concurrency = 2\n", &[]).failed(78, "config_invalid");
    let wrong = serve("", &[("ORCHESTRATOR_QUEUE_MAX_GLOBAL", "many")]);
    assert!(wrong.failed(78, "config_invalid").contains("\"many\""), "{wrong:?}");
    serve("", &[("BATON_RETAINED_JOBS", "-1")]).failed(78, "config_invalid");
    let wrong = serve("", &[("ORCHESTRATOR_QUEUE_GLOBAL_CONCURRENCY", "many")]);
    let err = wrong.failed(78, "config_invalid");
    assert!(err.contains("\"many\"") && err.contains("hint: it is set by --slots"), "{err}");
    let wrong = serve("", &[("ORCHESTRATOR_QUEUE_ENABLED", "yes")]);
    assert!(wrong.failed(78, "config_invalid").contains("true or false, or 1 or 0"), "{wrong:?}");

    std::fs::write(
        &file,
        "data_dir = \"state\"\nlisten = \"127.0.0.1:0\"\nlog = \"json\"\n[queue]\nmax_attempts = 3\nglobal_concurrency = 1\n",
    )
    .unwrap();
    let start = |env: &[(&str, &str)]| {
        let mut serve = command(&["serve", "--config", file.to_str().unwrap()]);
        serve.envs(env.iter().copied());
        Server::start(serve).unwrap_or_else(|seen| panic!("{seen:?}"))
    };
    let attempts = |server: &Server| {
        let args = ["jobs", "enqueue", "echo", "--project", "p", "--json"];
        server.ask(&args).ok().json()["maxAttempts"].clone()
    };
    let server = start(&[]);
    assert_eq!(attempts(&server), 3);
    server.stop();
    let empty = ("ORCHESTRATOR_QUEUE_GLOBAL_CONCURRENCY", "");
    let server = start(&[("ORCHESTRATOR_QUEUE_MAX_ATTEMPTS", "5"), empty]);
    assert_eq!(attempts(&server), 5, "the environment wins over the file");
    server.stop();
}

#[test]
fn watching_follows_jobs_to_their_ends() {
    let (server, _dir) = started(&[]);
    let good = echo(&server, "p", &json!({ "progress": true, "wait": true }));
    until(&server, &good, "job.parked");
    let url = server.url();
    let mut watch = command(&["jobs", "watch", &good, "--server", &url]);
    let mut child = watch.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let said = lines(child.stdout.take().unwrap());
    let first = said.recv_timeout(crate::support::PATIENCE).unwrap();
    assert!(first.contains(&good) && first.contains("awaiting_tool"), "{first}");
    server.ask(&["jobs", "wake", &good]).ok();
    let rest: Vec<String> = said.iter().collect();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest:#?}");
    let text = rest.join("\n");
    for part in ["woken", "resumed", "50 % half way", "completed", "1 of 1 completed"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(!text.contains('\u{1b}'), "colours are for terminals: {text:?}");

    let bad = echo(&server, "p", &json!({ "fail": "deterministic" }));
    let watched = server.ask(&["jobs", "watch", &good, &bad]);
    let err = watched.failed(3, "jobs_not_completed");
    assert!(err.contains(&format!("1 of 2 jobs did not complete: {bad} (failed)")), "{err}");
    assert!(watched.out.contains("1 of 2 completed"), "{watched:?}");
    let json = server.ask(&["jobs", "watch", &bad, "--json"]);
    assert_eq!((json.code, &json.json()["state"]), (Some(3), &json!("failed")));
    let gone = server.ask(&["jobs", "watch", "job_018bcfe568007001800000000000002a"]);
    assert!(gone.failed(1, "job_not_found").contains("hint: "), "{gone:?}");
    assert_eq!(server.ask(&["jobs", "watch"]).code, Some(2));
    server.stop();
}

#[test]
fn watching_a_project_ends_when_nothing_is_left() {
    let (server, _dir) = started(&[]);
    assert_eq!(server.ask(&["jobs", "watch", "--project", "p"]).ok().out, "0 of 0 completed\n");
    let first = echo(&server, "p", &json!({ "wait": true }));
    until(&server, &first, "job.parked");
    let url = server.url();
    let mut watch = command(&["jobs", "watch", "--project", "p", "--server", &url]);
    let mut child = watch.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let said = lines(child.stdout.take().unwrap());
    assert!(said.recv_timeout(crate::support::PATIENCE).unwrap().contains(&first));
    // One that comes meanwhile is watched too.
    let second = echo(&server, "p", &json!({ "message": 2 }));
    server.ask(&["jobs", "cancel", &first, "--reason", "enough"]).ok();
    let text = said.iter().collect::<Vec<_>>().join("\n");
    assert_eq!(child.wait().unwrap().code(), Some(3), "{text}");
    assert!(text.contains("cancelled") && text.contains("enough"), "{text}");
    assert!(text.contains(&second) && text.ends_with("1 of 2 completed"), "{text}");
    server.stop();
}

#[test]
fn a_job_is_cancelled_with_a_reason() {
    let (server, _dir) = started(&[]);
    let id = echo(&server, "p", &json!({ "wait": true }));
    let job = server.ask(&["jobs", "cancel", &id, "--reason", "wrong customer", "--json"]).ok().json();
    assert_eq!((&job["state"], &job["cancelReason"]), (&json!("cancelled"), &json!("wrong customer")));
    let text = server.ask(&["jobs", "get", &id]).ok().out;
    assert!(text.contains("cancelled for") && text.contains("wrong customer"), "{text}");
    server.ask(&["jobs", "cancel", &id]).ok();
    let done = echo(&server, "p", &json!({}));
    until(&server, &done, "job.completed");
    let late = server.ask(&["jobs", "cancel", &done]);
    assert!(late.failed(1, "invalid_transition").contains("hint: see how it stands"), "{late:?}");
    server.stop();
}

#[test]
fn a_question_is_shown_and_answered() {
    let (server, _dir) = started(&[]);
    let id = echo(&server, "p", &json!({ "ask": true, "message": "pay?" }));
    until(&server, &id, "job.asked");
    let text = server.ask(&["jobs", "get", &id]).ok().out;
    assert!(text.contains("awaiting_user_confirmation (person)") && text.contains("question"), "{text}");
    let open = server.ask(&["decisions", "list", "--json"]).ok().json();
    assert_eq!((&open["decisions"][0]["subject"], &open["decisions"][1]), (&json!(id), &Value::Null));
    let decision = open["decisions"][0]["id"].as_str().unwrap();
    let table = server.ask(&["decisions", "list", "--subject", &id, "--project", "p"]).ok().out;
    assert!(
        table.starts_with("DECISION ") && table.contains(decision) && table.contains("confirm, decline"),
        "{table}"
    );
    assert_eq!(server.ask(&["decisions", "list", "--project", "q"]).ok().out, "nothing is to be decided\n");
    let text = server.ask(&["decisions", "show", decision]).ok().out;
    assert!(text.contains("open") && text.contains("option") && text.contains("pay?"), "{text}");

    let resolve = ["decisions", "resolve", decision];
    let unknown = server.ask(&[&resolve[..], &["perhaps"]].concat());
    assert!(unknown.failed(1, "unknown_option").contains("confirm"), "{unknown:?}");
    assert_eq!(server.ask(&[&resolve[..], &["confirm", "--data", "{"]].concat()).code, Some(2));
    let answer = ["decline", "--comment", "too much", "--data", r#"{"limit":5}"#, "--idempotency-key", "a-1", "--json"];
    let closed = server.ask(&[&resolve[..], &answer].concat()).ok().json();
    assert_eq!((&closed["state"], &closed["resolution"]["option"]), (&json!("resolved"), &json!("decline")));
    // The same answer again is the same; another one comes too late.
    assert_eq!(server.ask(&[&resolve[..], &answer].concat()).ok().json(), closed);
    let late = server.ask(&[&resolve[..], &["confirm"]].concat());
    assert!(late.failed(1, "decision_closed").contains("hint: see how it was decided"), "{late:?}");
    server.ask(&["jobs", "watch", &id]).ok();
    let job = server.ask(&["jobs", "get", &id, "--json"]).ok().json();
    let told = &job["result"]["answer"];
    assert_eq!(
        (&told["option"], &told["comment"], &told["data"]["limit"]),
        (&json!("decline"), &json!("too much"), &json!(5))
    );
    let text = server.ask(&["decisions", "show", decision]).ok().out;
    assert!(text.contains("resolved") && text.contains("chosen") && text.contains("too much"), "{text}");
    let all = server.ask(&["decisions", "list", "--all", "--json"]).ok().json();
    assert_eq!(all["decisions"][0]["id"], decision);
    let gone = server.ask(&["decisions", "show", "dec_018bcfe568007001800000000000002a"]);
    assert!(gone.failed(1, "decision_not_found").contains("hint: "), "{gone:?}");
    server.stop();
}

#[test]
fn dead_letters_are_listed_and_requeued() {
    let (server, _dir) = started(&[]);
    assert_eq!(server.ask(&["jobs", "dead-letters"]).ok().out, "no dead letters\n");
    let fail = |project: &str| {
        let id = echo(&server, project, &json!({ "fail": "deterministic" }));
        until(&server, &id, "job.failed");
        id
    };
    let (first, second, other) = (fail("p"), fail("p"), fail("q"));
    let table = server.ask(&["jobs", "dead-letters", "--project", "p"]).ok().out;
    assert!(table.starts_with("JOB ") && table.contains("asked_to_fail"), "{table}");
    assert!(table.contains(&first) && table.contains(&second) && !table.contains(&other), "{table}");
    let said = server.ask(&["jobs", "requeue", &first]).ok().out;
    assert!(said.contains(&format!("repeats {first}")), "{said}");
    server.ask(&["jobs", "requeue", &first]).failed(1, "already_requeued");
    let requeued = |args: &[&str]| server.ask(&[&["jobs", "requeue", "--json"], args].concat()).ok().json();
    let made = requeued(&["--project", "q", "--type", "echo"]);
    assert_eq!((&made["requeued"], &made["jobs"][0]["requeuedFrom"]), (&json!(1), &json!(other)));
    assert_eq!(requeued(&["--type", "noop"])["requeued"], 0);
    let wrong: [&[&str]; 3] = [&[], &["--limit", "1"], &[&first, "--all"]];
    for args in wrong {
        assert_eq!(server.ask(&[&["jobs", "requeue"], args].concat()).code, Some(2), "{args:?}");
    }
    server.stop();
}

#[test]
fn lanes_are_shown_paused_and_resumed() {
    let (server, _dir) = started(&[]);
    assert_eq!(server.ask(&["lanes", "list"]).ok().out, "no lanes\n");
    let id = echo(&server, "demo", &json!({ "wait": true }));
    until(&server, &id, "job.parked");
    let lane = server.ask(&["lanes", "show", "project:demo", "--json"]).ok().json();
    let expected = json!({ "lane": "project:demo", "limit": 1, "running": 1, "waiting": 0, "paused": false });
    assert_eq!(lane, expected);
    let paused = server.ask(&["lanes", "pause", "project:demo"]).ok().out;
    assert!(paused.lines().last().unwrap().ends_with("paused"), "{paused}");
    let table = server.ask(&["lanes", "list"]).ok().out;
    assert!(table.starts_with("LANE ") && table.contains("project:demo") && table.contains("paused"), "{table}");
    assert_eq!(server.ask(&["lanes", "resume", "project:demo", "--json"]).ok().json()["paused"], false);
    let gone = server.ask(&["lanes", "show", "some/where ü"]);
    assert!(gone.failed(1, "lane_not_found").contains("project:PROJECT"), "{gone:?}");
    let typo = server.ask(&["lanes", "pause", "demo"]).ok();
    assert!(typo.err.contains("project:demo"), "{typo:?}");
    assert_eq!(server.ask(&["lanes", "pause", "project:later"]).ok().err, "");
    server.stop();
}

#[test]
fn schedules_are_set_listed_paused_and_deleted() {
    let (server, _dir) = started(&[]);
    assert_eq!(server.ask(&["schedules", "list"]).ok().out, "no schedules\n");
    let set = |more: &[&str]| -> Ran {
        let args = ["schedules", "set", "yearly", "--project", "demo", "--type", "echo"];
        server.ask(&[&args[..], more].concat())
    };
    let text = set(&["--cron", "30 5 1 1 *", "--time-zone", "Europe/Berlin", "--payload", r#"{"message":1}"#]).ok().out;
    assert!(text.contains("yearly of demo") && text.contains("in words"), "{text}");
    let shown = server.ask(&["schedules", "show", "yearly", "--project", "demo", "--json"]).ok().json();
    assert_eq!((&shown["timeZone"], &shown["catchUp"]), (&json!("Europe/Berlin"), &json!("one")));
    let table = server.ask(&["schedules", "list", "--project", "demo"]).ok().out;
    assert!(table.starts_with("PROJECT ") && table.contains("yearly"), "{table}");
    let paused = server.ask(&["schedules", "pause", "yearly", "--project", "demo", "--json"]).ok().json();
    assert_eq!((&paused["paused"], &paused["nextAt"]), (&json!(true), &Value::Null));
    assert!(server.ask(&["schedules", "resume", "yearly", "--project", "demo"]).ok().out.contains("-01-01T04:30:00Z"));
    set(&["--cron", "never"]).failed(1, "invalid_schedule");
    server.ask(&["schedules", "delete", "yearly", "--project", "demo"]).ok();
    let gone = server.ask(&["schedules", "delete", "yearly", "--project", "demo"]);
    assert!(gone.failed(1, "schedule_not_found").contains("hint: "), "{gone:?}");
    let args = ["schedules", "set", "x", "--project", "demo", "--type", "moon", "--cron", "* * * * *"];
    let unknown = server.ask(&args);
    assert!(unknown.failed(1, "unknown_job_type").contains("known types: echo, noop"), "{unknown:?}");
    server.stop();
}
