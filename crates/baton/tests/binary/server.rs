//! Starting, refusing to start, and stopping.

use crate::support::{PATIENCE, STATE, Schema, Server, command, lines, run, run_with, signal};
use serde_json::json;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::Receiver;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// `baton up`, with what it prints up to its last line.
fn up(dir: &Path, more: &[&str]) -> (Child, String, Receiver<String>) {
    let args = [&["up", "--listen", "127.0.0.1:0", "--data-dir", text(dir)], more].concat();
    let mut child = command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (out, err) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
    let mut banner = String::new();
    while !banner.contains("Ctrl-C") {
        banner.push_str(&out.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{banner} {:?}", err.try_iter().last())));
        banner.push('\n');
    }
    (child, banner, err)
}

#[test]
fn up_says_where_it_is_and_what_to_try_and_that_works() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let (mut child, banner, _err) = up(&data, &[]);
    let address = std::fs::read_to_string(data.join("address")).unwrap();
    assert!(banner.contains(&format!("http://{}", address.trim())), "{banner}");
    assert!(banner.contains(text(&data)), "{banner}");
    assert!(!banner.contains('\u{1b}'), "colours are for terminals: {banner:?}");
    let tries: Vec<_> = banner.lines().filter(|line| line.contains(" --server ")).map(str::trim).collect();
    assert!(banner.contains("1000 credits to try things out"), "{banner}");
    assert_eq!(tries.len(), 4, "{banner}");
    // As somebody would paste them; the last one would follow for ever.
    for line in &tries[..3] {
        let output =
            std::process::Command::new("/bin/sh").args(["-c", line]).env("XDG_STATE_HOME", STATE).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("completed"), "{line}: {output:?}");
    }
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!data.join("address").exists(), "nobody listens there any more");
}

#[test]
fn other_machines_are_not_listened_to() {
    let dir = tempfile::tempdir().unwrap();
    for command in ["up", "serve"] {
        for open in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
            let ran = run(&[command, "--listen", open, "--data-dir", text(dir.path())]);
            assert!(ran.failed(78, "listen_not_loopback").contains("hint: "), "{ran:?}");
        }
    }
    let env = [("BATON_LISTEN", "0.0.0.0:80"), ("BATON_DATA_DIR", text(dir.path()))];
    run_with(&["serve"], "", &env).failed(78, "listen_not_loopback");
    run(&["serve", "--listen", "nonsense", "--data-dir", text(dir.path())]).failed(78, "config_invalid");
    assert!(!dir.path().join("baton.db").exists(), "refused before anything was made");
}

#[test]
fn a_taken_port_is_said_to_be_taken() {
    let dir = tempfile::tempdir().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let ran = run(&["serve", "--listen", &address, "--data-dir", text(dir.path())]);
    let err = ran.failed(1, "address_in_use");
    assert!(err.contains(&address) && err.contains("--listen"), "{err}");
    // And the data directory is free again.
    Server::serve(dir.path(), &[]).stop();
}

#[test]
fn two_servers_do_not_share_a_data_directory() {
    let dir = tempfile::tempdir().unwrap();
    let first = Server::serve(dir.path(), &[]);
    let ran = run(&["serve", "--listen", "127.0.0.1:0", "--data-dir", text(dir.path())]);
    assert!(ran.failed(1, "data_dir_in_use").contains("--data-dir"));
    let offline = run(&["audit", "--offline", "--data-dir", text(dir.path())]);
    let err = offline.failed(1, "data_dir_in_use");
    assert!(err.contains(&format!("baton audit --server {}", first.url())), "{err}");
    first.ask(&["jobs", "enqueue", "noop", "--project", "p", "--wait"]).ok();
    first.stop();
}

#[test]
fn being_told_once_ends_it_well_and_twice_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::serve(dir.path(), &[]);
    server.signal("TERM");
    let (status, seen) = server.ended();
    assert_eq!(status.code(), Some(0), "{seen:#?}");
    assert!(seen.last().unwrap().contains("stopped"), "{seen:#?}");
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let mut server = Server::serve(dir.path(), &[]);
        // A request whose body does not come keeps it from ending for a while.
        let mut slow = TcpStream::connect(server.address).unwrap();
        let head = format!(
            "POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n",
            server.key
        );
        slow.write_all(head.as_bytes()).unwrap();
        // The server asks for it: so it is waiting.
        let mut asked = [0; 12];
        std::io::Read::read_exact(&mut slow, &mut asked).unwrap();
        assert_eq!(&asked, b"HTTP/1.1 100");
        server.signal(name);
        server.wait_for_line("stopping");
        server.signal(name);
        let (status, seen) = server.ended();
        assert_eq!(status.code(), Some(code), "{seen:#?}");
    }
}

#[test]
fn what_was_accepted_is_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::serve(dir.path(), &[]);
    let args =
        ["jobs", "enqueue", "echo", "--project", "p", "--json", "--payload", r#"{"wait":true,"message":"still"}"#];
    let job = server.ask(&args).ok().json();
    let id = job["id"].as_str().unwrap().to_owned();
    server.heard(3, &[]).ok();
    server.stop();
    let server = Server::serve(dir.path(), &[]);
    server.ask(&["jobs", "wake", &id]).ok();
    server.heard(6, &[]).ok();
    let job = server.ask(&["jobs", "get", &id, "--json"]).ok().json();
    assert_eq!((&job["state"], &job["result"]["message"]), (&json!("completed"), &json!("still")));
    server.stop();
}

#[test]
fn an_audit_without_a_server_finds_what_was_changed() {
    let dir = tempfile::tempdir().unwrap();
    let offline = ["audit", "--offline", "--data-dir", text(dir.path())];
    let server = Server::serve(dir.path(), &[]);
    server.ask(&["jobs", "enqueue", "noop", "--project", "p", "--wait"]).ok();
    server.stop();
    let audit = run(&[&offline[..], &["--json"]].concat()).ok().json();
    assert_eq!(audit["clean"], true, "{audit}");
    assert!(audit["seals"].as_u64().unwrap() > 0, "stopping seals what is left: {audit}");
    assert_eq!(audit["macsChecked"], audit["seals"]);
    run(&offline).ok();

    // What somebody with access to the file could do.
    let db = rusqlite::Connection::open(dir.path().join("baton.db")).unwrap();
    let triggers: Vec<String> = db
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for trigger in triggers {
        db.execute_batch(&format!("DROP TRIGGER {trigger}")).unwrap();
    }
    let changed = db.execute("UPDATE event SET data = replace(data, 'noop', 'boom') WHERE kind = 'job.started'", []);
    assert_eq!(changed.unwrap(), 1);
    drop(db);

    let found = run(&offline);
    found.failed(65, "history_violated");
    assert!(found.out.contains("chain_broken"), "{found:?}");
    let found = run(&[&offline[..], &["--json"]].concat());
    assert_eq!(found.code, Some(65));
    assert_eq!(
        (&found.json()["clean"], &found.json()["violations"][0]["code"]),
        (&json!(false), &json!("chain_broken"))
    );

    // The same history under another key: every seal is foreign.
    let env = [("BATON_SEAL_KEY", "11".repeat(32))];
    let foreign = run_with(&offline, "", &[(env[0].0, &env[0].1)]);
    assert!(foreign.out.contains("seal_mac"), "{foreign:?}");
    run(&["audit", "--offline", "--data-dir", "/nowhere/at/all"]).failed(78, "config_invalid");
}

#[test]
fn a_damaged_database_stops_serve_and_not_up() {
    let dir = tempfile::tempdir().unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data-dir", text(dir.path())];
    let server = Server::serve(dir.path(), &[]);
    server.ask(&["jobs", "enqueue", "noop", "--project", "p", "--wait"]).ok();
    server.stop();
    let damage = || {
        // The log beside it would heal what it covers.
        for file in ["baton.db-wal", "baton.db-shm"] {
            let _ = std::fs::remove_file(dir.path().join(file));
        }
        std::fs::write(dir.path().join("baton.db"), "this was a database".repeat(500)).unwrap();
    };
    damage();
    assert!(run(&serve).failed(65, "database_corrupt").contains("--start-empty"));
    // A supervisor would start it again: it must not take the missing file for a first start.
    run(&serve).failed(65, "database_corrupt");
    Server::serve(dir.path(), &["--start-empty"]).stop();
    Server::serve(dir.path(), &[]).stop();
    damage();
    let (mut child, banner, _err) = up(dir.path(), &[]);
    assert!(banner.contains("DAMAGED") && banner.contains("corrupt-2"), "{banner}");
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(dir.path().join("corrupt-1/baton.db").exists(), "nothing is deleted");
}

#[test]
fn the_configuration_file_is_read_and_a_wrong_key_is_refused_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("baton.toml");
    std::fs::write(&file, "listen = \"127.0.0.1:0\"\ndata_dir = \"state\"\nlog = \"json\"\nslots = 1\n").unwrap();
    Server::start(command(&["serve", "--config", text(&file)])).unwrap_or_else(|seen| panic!("{seen:?}")).stop();
    assert!(dir.path().join("state/baton.db").exists());
    std::fs::write(&file, "listen = \"127.0.0.1:0\"\n\ndatabsae = \"postgres://me:hunter2@db/x\"\n").unwrap();
    let ran = run(&["serve", "--config", text(&file)]);
    let err = ran.failed(78, "config_invalid");
    assert!(err.contains("line 3") && err.contains("databsae") && !err.contains("hunter2"), "{err}");
    run_with(&["serve"], "", &[("BATON_CONFIG", "/nowhere.toml")]).failed(78, "config_invalid");
    run_with(&["serve"], "", &[("BATON_SEAL_KEY", "short")]).failed(78, "config_invalid");
    run_with(&["serve"], "", &[("BATON_LOG", "a=b=c")]).failed(78, "config_invalid");
}

#[test]
fn a_database_that_does_not_answer_is_unavailable_and_its_password_stays_secret() {
    let dir = tempfile::tempdir().unwrap();
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("postgres://me:hunter2@127.0.0.1:{port}/baton?password=hunter2");
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data-dir", text(dir.path()), "--database"];
    let ran = run_with(&[&serve[..], &[&url]].concat(), "", &[("BATON_LOG", "trace")]);
    ran.failed(69, "database_unavailable");
    assert!(!ran.err.contains("hunter2"), "{ran:?}");
    let ran = run(&[&serve[..], &["mysql://me:hunter2@db/x"]].concat());
    assert!(!ran.failed(78, "database_url").contains("hunter2"));
}

#[test]
fn everything_works_the_same_on_postgresql() {
    let Some(schema) = Schema::create() else { return };
    let dir = tempfile::tempdir().unwrap();
    let server = Server::serve(dir.path(), &["--database", schema.url()]);
    let args = ["jobs", "enqueue", "echo", "--project", "p", "--payload", r#"{"message":1}"#, "--wait", "--json"];
    assert_eq!(server.ask(&args).ok().json()["result"]["message"], 1);
    assert_eq!(server.ask(&["audit", "--json"]).ok().json()["clean"], true);
    server.stop();
    assert!(!dir.path().join("baton.db").exists());
    let offline = ["audit", "--offline", "--json", "--data-dir", text(dir.path()), "--database", schema.url()];
    let audit = run(&offline).ok().json();
    assert_eq!((&audit["clean"], &audit["macsChecked"]), (&json!(true), &audit["seals"]));
    schema.remove();
}
