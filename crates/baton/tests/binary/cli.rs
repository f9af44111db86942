//! The command line against a running server.

use crate::support::{Server, command, http, run, run_with};
use serde_json::{Value, json};
use std::io::Read as _;
use std::process::Stdio;

fn started() -> (Server, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    (Server::serve(dir.path(), &[]), dir)
}

#[test]
fn help_and_version_are_no_errors_and_a_wrong_word_is_one() {
    assert!(run(&["--help"]).ok().out.contains("Examples:"));
    assert!(run(&["jobs", "enqueue", "--help"]).ok().out.contains("--payload-file -"));
    assert!(run(&["version"]).ok().out.starts_with("baton 0."));
    assert_eq!(run(&["version", "--json"]).ok().json()["name"], "baton");
    assert_eq!(run(&["jbos"]).code, Some(2));
    assert_eq!(run(&[]).code, Some(2));
    let wrong = run(&["jobs", "get", "nonsense", "--json"]);
    assert_eq!(wrong.code, Some(2));
    let problem: Value = serde_json::from_str(&wrong.err).unwrap();
    assert_eq!(problem["code"], "usage");
    assert!(problem["detail"].as_str().unwrap().starts_with("invalid value 'nonsense'"), "{problem}");
    assert_eq!(run(&["jobs", "list", "--project", "p", "--limit", "0"]).code, Some(2));
}

#[test]
fn the_help_never_shows_a_password() {
    let env = [("BATON_DATABASE_URL", "postgres://me:hunter2@db/b")];
    for args in [["serve", "--help"], ["up", "-h"], ["audit", "--help"]] {
        assert!(!run_with(&args, "", &env).ok().out.contains("hunter2"), "{args:?}");
    }
}

#[test]
fn a_job_is_enqueued_waited_for_shown_and_listed() {
    let (server, _dir) = started();
    let payload = r#"{"message":"grüße"}"#;
    let enqueue = ["jobs", "enqueue", "echo", "--project", "p", "--payload", payload];
    let job = server.ask(&[&enqueue[..], &["--wait", "--json"]].concat()).ok().json();
    assert_eq!(job["state"], "completed");
    assert_eq!(job["result"], json!({ "message": "grüße" }));
    let id = job["id"].as_str().unwrap();
    assert_eq!(server.ask(&["jobs", "get", id, "--json"]).ok().json(), job);
    let text = server.ask(&["jobs", "get", id]).ok().out;
    assert!(text.contains(id) && text.contains("completed") && text.contains("grüße"), "{text}");

    let said = server.ask(&enqueue).ok().out;
    assert!(said.starts_with("job_") && said.ends_with("is queued\n"), "{said}");
    let list = server.ask(&["jobs", "list", "--project", "p", "--json"]).ok().json();
    assert_eq!((list["jobs"].as_array().unwrap().len(), &list["nextCursor"]), (2, &Value::Null));
    let page = server.ask(&["jobs", "list", "--project", "p", "--limit", "1", "--json"]).ok().json();
    let cursor = page["nextCursor"].as_str().unwrap();
    let table = server.ask(&["jobs", "list", "--project", "p", "--limit", "1", "--cursor", cursor]).ok().out;
    assert!(table.starts_with("JOB ") && table.contains(id), "{table}");
    assert!(!table.contains('\u{1b}'), "colours are for terminals: {table:?}");
    assert!(table.lines().all(|line| line.trim_end() == line), "{table:?}");
    assert_eq!(server.ask(&["jobs", "list", "--project", "nobody"]).ok().out, "no jobs\n");
    let failed = server.ask(&["jobs", "list", "--project", "p", "--state", "failed,cancelled", "--json"]).ok().json();
    assert_eq!(failed["jobs"], json!([]));
    server.stop();
}

#[test]
fn lists_are_turned_around_and_go_on_in_their_order() {
    let (server, _dir) = started();
    for kind in ["noop", "echo", "noop"] {
        server.ask(&["jobs", "enqueue", kind, "--project", "p"]).ok();
    }
    let ids = |more: &[&str]| -> (Vec<String>, Option<String>) {
        let list = server.ask(&[&["jobs", "list", "--project", "p", "--json"], more].concat()).ok().json();
        let ids = list["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned()).collect();
        (ids, list["nextCursor"].as_str().map(str::to_owned))
    };
    let (newest, _) = ids(&[]);
    let (mut oldest, cursor) = ids(&["--order", "asc", "--limit", "2"]);
    let cursor = cursor.unwrap();
    let table = server.ask(&["jobs", "list", "--project", "p", "--order", "asc", "--limit", "2"]).ok().out;
    assert!(table.ends_with(&format!("more: --order asc --cursor {cursor}\n")), "{table}");
    oldest.extend(ids(&["--order", "asc", "--cursor", &cursor]).0);
    oldest.reverse();
    assert_eq!((newest.len(), newest), (3, oldest));
    assert_eq!(ids(&["--type", "echo"]).0.len(), 1);
    let turned = server.ask(&["jobs", "list", "--project", "p", "--cursor", &cursor]);
    assert!(turned.code == Some(1) && turned.err.contains("[invalid_cursor]"), "{turned:?}");
    assert_eq!(server.ask(&["lanes", "list", "--order", "up"]).code, Some(2));
    for list in
        [&["lanes", "list"][..], &["schedules", "list"], &["decisions", "list"], &["keys", "list"], &["orgs", "list"]]
    {
        server.ask(&[list, &["--order", "desc", "--limit", "1"]].concat()).ok();
    }
    server.stop();
}

#[test]
fn a_line_about_a_request_says_which_one_and_nothing_that_it_brought() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::serve(dir.path(), &["--log-filter", "info,baton_api=debug"]);
    let (job, trace) = ("job_0193a1b2c3d47001800000000000002a", "4bf92f3577b34da6a3ce929d0e0e4736");
    let headers = format!("X-Request-Id: mine-1\r\ntraceparent: 00-{trace}-00f067aa0ba902b7-01\r\n");
    let (status, head, body) =
        http(&server.door(), "GET", &format!("/api/v1/jobs/{job}?word=hush"), &headers, "").unwrap();
    assert!(
        status == 400 && head.contains("x-request-id: mine-1") && body.contains("\"requestId\":\"mine-1\""),
        "{body}"
    );
    assert!(head.contains(&format!("traceparent: 00-{trace}-")), "{head}");
    let line = std::iter::from_fn(|| server.next_line()).find(|line| line.contains("mine-1")).unwrap();
    let key = server.door().key;
    assert!(!line.contains("hush") && !line.contains(&key), "{line}");
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (&line["message"], &line["status"], &line["code"]),
        (&json!("answered"), &json!(400), &json!("invalid_request"))
    );
    assert!(line["ms"].is_u64(), "{line}");
    let span = &line["span"];
    assert_eq!((&span["requestId"], &span["traceId"]), (&json!("mine-1"), &json!(trace)));
    assert_eq!((&span["method"], &span["route"]), (&json!("GET"), &json!("/api/v1/jobs/{jobId}")));
    assert!(
        span["org"] == "default" && span["key"].as_str().unwrap().starts_with(baton_core::id::KeyId::PREFIX),
        "{line}"
    );

    let missing = server.ask(&["jobs", "get", job, "--json"]);
    let problem: Value = serde_json::from_str(&missing.err).unwrap();
    let id = problem["requestId"].as_str().unwrap();
    assert!(id.starts_with("cli-"), "{problem}");
    server.wait_for_line(id);
    server.stop();
}

#[test]
fn the_same_key_gives_the_same_job() {
    let (server, _dir) = started();
    let args = ["jobs", "enqueue", "noop", "--project", "p", "--json", "--idempotency-key", "invoice-4711"];
    let first = server.ask(&args).ok();
    assert!(first.err.is_empty(), "{first:?}");
    let again = server.ask(&args).ok();
    assert_eq!(again.json()["id"], first.json()["id"]);
    assert!(again.err.contains("used before"), "{again:?}");
    let other = server.ask(&["jobs", "enqueue", "echo", "--project", "p", "--idempotency-key", "invoice-4711"]);
    other.failed(1, "idempotency_key_reused");
    let mine = ["jobs", "enqueue", "noop", "--project", "p", "--json"];
    assert_ne!(server.ask(&mine).ok().json()["id"], server.ask(&mine).ok().json()["id"]);
    assert_eq!(server.ask(&["jobs", "enqueue", "noop", "--project", "p", "--idempotency-key", "ü"]).code, Some(2));
    server.stop();
}

#[test]
fn a_payload_comes_from_a_file_or_standard_input() {
    let (server, dir) = started();
    let file = dir.path().join("payload.json");
    std::fs::write(&file, r#"{"message":"from a file"}"#).unwrap();
    let url = server.url();
    let enqueue = |from: &str, input: &str| {
        let args = ["jobs", "enqueue", "echo", "--project", "p", "--wait", "--json", "--server", &url];
        run_with(&[&args[..], &["--payload-file", from]].concat(), input, &[])
    };
    assert_eq!(enqueue(file.to_str().unwrap(), "").ok().json()["result"]["message"], "from a file");
    assert_eq!(enqueue("-", r#"{"message":"from a pipe"}"#).ok().json()["result"]["message"], "from a pipe");
    assert_eq!(enqueue("-", "[1]").code, Some(2));
    assert_eq!(enqueue("/nowhere", "").code, Some(1));
    server.stop();
}

#[test]
fn waiting_for_a_job_that_does_not_complete_exits_with_three() {
    let (server, _dir) = started();
    let args = ["jobs", "enqueue", "echo", "--project", "p", "--wait", "--payload"];
    let failed = server.ask(&[&args[..], &[r#"{"fail":"deterministic"}"#]].concat());
    assert!(failed.failed(3, "job_not_completed").contains("ended as failed: asked_to_fail"), "{failed:?}");
    server.ask(&[&args[..], &[r#"{"delay_ms":"soon"}"#]].concat()).failed(1, "invalid_payload");
    let refused = server.ask(&["jobs", "enqueue", "moon", "--project", "p"]);
    let err = refused.failed(1, "unknown_job_type");
    assert!(err.contains("known types: echo, noop") && err.contains("hint: "), "{err}");
    server.stop();
}

#[test]
fn times_can_be_given_as_a_delay_or_as_a_moment() {
    let (server, _dir) = started();
    let enqueue = ["jobs", "enqueue", "noop", "--project", "p", "--json"];
    let job = server.ask(&[&enqueue[..], &["--delay", "200ms", "--wait"]].concat()).ok().json();
    assert!(job["startedAt"].as_str() > job["createdAt"].as_str());
    server.ask(&[&enqueue[..], &["--not-before", "2001-01-01T00:00:00Z", "--wait"]].concat()).ok();
    let past = server.ask(&["jobs", "enqueue", "noop", "--project", "p", "--deadline", "2001-01-01T00:00:00Z"]);
    past.failed(1, "invalid_time");
    assert_eq!(server.ask(&[&enqueue[..], &["--delay", "soon"]].concat()).code, Some(2));
    server.stop();
}

#[test]
fn a_parked_job_is_woken() {
    let (server, _dir) = started();
    let args = ["jobs", "enqueue", "echo", "--project", "p", "--json", "--payload", r#"{"wait":true,"message":"up"}"#];
    let job = server.ask(&args).ok().json();
    let id = job["id"].as_str().unwrap().to_owned();
    // Until it is parked: queued, started, parked.
    server.heard(3, &["--json"]).ok();
    assert_eq!(server.ask(&["jobs", "wake", &id, "--json"]).ok().json()["id"], id.as_str());
    let rest = server.heard(6, &[]).ok().out;
    assert!(rest.lines().last().unwrap().contains("job.completed"), "{rest}");
    server.ask(&["jobs", "wake", &id]).failed(1, "invalid_transition");
    let unknown = server.ask(&["jobs", "wake", "job_018bcfe568007001800000000000002a"]);
    unknown.failed(1, "job_not_found");
    server.stop();
}

#[test]
fn events_are_printed_one_a_line_and_resumed() {
    let (server, _dir) = started();
    server.ask(&["jobs", "enqueue", "noop", "--project", "p", "--wait"]).ok();
    let all = server.ask(&["events", "tail", "--no-follow", "--json"]).ok().out;
    let events: Vec<Value> = all.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["org.founded", "key.created", "job.queued", "job.started", "job.completed"]);
    let cursor = events[2]["cursor"].as_str().unwrap();
    let rest = server.ask(&["events", "tail", "--no-follow", "--json", "--after", cursor]).ok().out;
    assert_eq!(rest.lines().count(), 2);
    let text = server.ask(&["events", "tail", "--no-follow"]).ok().out;
    assert_eq!(text.lines().count(), 5);
    server.ask(&["events", "tail", "--no-follow", "--after", "nonsense"]).failed(1, "invalid_cursor");
    server.stop();
}

#[test]
fn a_tail_whose_reader_left_ends_quietly() {
    let (server, _dir) = started();
    let url = server.url();
    let mut tail = command(&["events", "tail", "--from-start", "--server", &url])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(tail.stdout.take());
    server.ask(&["jobs", "enqueue", "noop", "--project", "p", "--wait"]).ok();
    let mut said = String::new();
    tail.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(tail.wait().unwrap().code(), Some(0), "{said}");
    assert_eq!(said, "");
    server.stop();
}

#[test]
fn an_audit_asks_the_server() {
    let (server, _dir) = started();
    server.ask(&["jobs", "enqueue", "noop", "--project", "p", "--wait"]).ok();
    let audit = server.ask(&["audit", "--json"]).ok().json();
    assert_eq!((&audit["clean"], &audit["violations"]), (&json!(true), &json!([])));
    assert!(audit["events"].as_u64().unwrap() >= 3, "{audit}");
    assert!(server.ask(&["audit"]).ok().out.starts_with("the history is as it was written\n"));
    server.stop();
}

#[test]
fn a_server_that_is_not_there_is_unavailable() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    let get = ["jobs", "get", "job_018bcfe568007001800000000000002a", "--server", &url];
    let gone = run(&get);
    assert!(gone.failed(69, "server_unreachable").contains("hint: start one with `baton up`"));
    let gone = run(&[&get[..], &["--json"]].concat());
    assert_eq!((gone.code, gone.out.as_str()), (Some(69), ""));
    let problem: Value = serde_json::from_str(&gone.err).unwrap();
    assert_eq!(problem["code"], "server_unreachable");
    assert!(problem["hint"].is_string() && problem.get("status").is_none(), "{problem}");
    run(&["audit", "--server", "ftp://127.0.0.1:1"]).failed(2, "usage");
    run(&["audit", "--server", "nonsense"]).failed(2, "usage");
}
