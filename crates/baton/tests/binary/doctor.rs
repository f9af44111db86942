//! `baton doctor`: the healthy, and what it says about the others.

use crate::support::{Ran, Schema, Server, run, run_with};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// A port that nobody has.
const FREE: &str = "127.0.0.1:0";

fn private() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
    dir
}

fn doctor(dir: &Path, more: &[&str]) -> Ran {
    let args = ["doctor", "--data-dir", dir.to_str().unwrap(), "--json"];
    let listen = if more.contains(&"--listen") { &[][..] } else { &["--listen", FREE] };
    run(&[&args[..], listen, more].concat())
}

/// What is said about one thing, as verdict and detail.
#[track_caller]
fn about(ran: &Ran, check: &str) -> Vec<(String, String)> {
    let report = ran.json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = report["findings"].as_array().unwrap().iter().inspect(|finding| {
        assert_eq!(finding["verdict"] == "ok", finding["advice"].is_null(), "what is wrong can be mended: {finding}");
    });
    let found = all.filter(|finding| finding["check"] == check).map(|f| (text(&f["verdict"]), text(&f["detail"])));
    found.collect()
}

#[track_caller]
fn only(ran: &Ran, check: &str) -> (String, String) {
    let mut found = about(ran, check);
    assert_eq!(found.len(), 1, "{check}: {ran:#?}");
    found.remove(0)
}

#[track_caller]
fn is_ok(ran: &Ran, check: &str, part: &str) {
    let (verdict, detail) = only(ran, check);
    assert!(verdict == "ok" && detail.contains(part), "{verdict} {detail}");
}

#[track_caller]
fn is_problem(ran: &Ran, check: &str, part: &str) {
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert_eq!(ran.json()["healthy"], false);
    let problem: Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!(problem["code"], "unhealthy");
    let found = about(ran, check);
    assert!(found.iter().any(|(verdict, detail)| verdict == "problem" && detail.contains(part)), "{found:#?}");
}

#[test]
fn a_place_where_nothing_was_started_yet_is_healthy_and_stays_empty() {
    let dir = private();
    let data = dir.path().join("data");
    let ran = doctor(&data, &[]).ok();
    is_ok(&ran, "configuration", "can be used");
    is_ok(&ran, "data_directory", "made by the first start");
    is_ok(&ran, "database", "none yet");
    is_ok(&ran, "server", "none is running");
    is_ok(&ran, "clock", "the system's clock says 20");
    assert!(!data.exists());
}

#[test]
fn a_running_server_is_asked_and_not_disturbed() {
    let dir = private();
    let server = Server::serve(dir.path(), &[]);
    let ran = doctor(dir.path(), &[]).ok();
    assert_eq!(ran.json()["healthy"], true);
    is_ok(&ran, "database", "in use by a running server");
    is_ok(&ran, "port", &format!("{} is in use by the server of this data directory", server.address));
    is_ok(&ran, "server", "is ready");
    is_ok(&ran, "version", "here and at the server");
    is_ok(&ran, "key", "is accepted as admin of default");
    is_ok(&ran, "secrets", "admin.key");
    assert_eq!(about(&ran, "clock").len(), 2);
    let text = run(&["doctor", "--listen", FREE, "--data-dir", dir.path().to_str().unwrap()]).ok().out;
    // A full disk or a slow clock of this machine may be warned of; nothing is wrong with the server.
    assert!(!text.contains("problem") && text.contains("data directory"), "{text}");
    let secret = server.key.rsplit('_').next().unwrap();
    assert!(!ran.out.contains(secret) && !text.contains(secret));

    // A key that opens nothing, and a port that this server has.
    let mut wrong = server.key.clone();
    wrong.replace_range(99.., if wrong.ends_with('0') { "1" } else { "0" });
    is_problem(&doctor(dir.path(), &["--key", &wrong]), "key", "is not accepted");
    let other = private();
    let taken = doctor(other.path(), &["--listen", &server.address.to_string()]).ok();
    assert_eq!(only(&taken, "port").0, "warning");
    server.ask(&["jobs", "enqueue", "noop", "--project", "p", "--wait"]).ok();
    server.stop();

    let ran = doctor(dir.path(), &[]).ok();
    is_ok(&ran, "database", "every page is sound; schema ");
    is_ok(&ran, "server", "none is running");
    Server::serve(dir.path(), &[]).stop();
}

#[test]
fn a_server_that_was_killed_is_not_taken_for_a_running_one() {
    let dir = private();
    let server = Server::serve(dir.path(), &[]);
    server.ask(&["jobs", "enqueue", "noop", "--project", "p", "--wait"]).ok();
    server.kill();
    let ran = doctor(dir.path(), &[]).ok();
    is_ok(&ran, "database", "every page is sound");
    let server = Server::serve(dir.path(), &[]);
    assert_eq!(server.ask(&["audit", "--json"]).ok().json()["clean"], true);
    server.stop();
}

#[test]
fn what_others_may_read_or_write_is_told() {
    let dir = private();
    Server::serve(dir.path(), &[]).stop();
    let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    set(dir.path(), 0o755);
    assert_eq!(only(&doctor(dir.path(), &[]).ok(), "data_directory").0, "warning");
    set(dir.path(), 0o777);
    is_problem(&doctor(dir.path(), &[]), "data_directory", "may be written to by others");
    set(dir.path(), 0o700);
    set(&dir.path().join("admin.key"), 0o644);
    let ran = doctor(dir.path(), &[]);
    is_problem(&ran, "secrets", "admin.key may be read by others");
    assert!(ran.out.contains("chmod 600 "), "{ran:?}");
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    is_problem(&doctor(&file, &[]), "data_directory", "is no directory");
}

#[test]
fn a_broken_configuration_is_named_with_its_line() {
    let dir = private();
    let file = dir.path().join("baton.toml");
    let look = |text: &str| {
        fs::write(&file, text).unwrap();
        run(&["doctor", "--json", "--config", file.to_str().unwrap()])
    };
    is_problem(
        &look("listen = \"127.0.0.1:0\"\ndatabsae = \"postgres://me:hunter2@db/x\"\n"),
        "configuration",
        "line 2",
    );
    is_problem(&look("listen = "), "configuration", "line 1");
    is_problem(&look("slots = 1\n[queue]\nglobal_concurrency = 2\n"), "configuration", "same setting");
    is_problem(&look("[queue]\nmax_attempts = 0\n"), "configuration", "max_attempts");
    let ran = look("databsae = \"postgres://me:hunter2@db/x\"");
    assert!(!ran.out.contains("hunter2") && !ran.err.contains("hunter2"), "{ran:?}");
    is_problem(&run(&["doctor", "--json", "--config", "/nowhere.toml"]), "configuration", "cannot read");
    let off = run_with(
        &["doctor", "--json", "--listen", FREE],
        "",
        &[("ORCHESTRATOR_QUEUE_ENABLED", "false"), ("BATON_DATA_DIR", dir.path().to_str().unwrap())],
    );
    assert!(about(&off.ok(), "configuration").iter().any(|(verdict, _)| verdict == "warning"));
}

#[test]
fn contexts_that_cannot_be_used_are_told() {
    let dir = private();
    let home = dir.path().join("home");
    fs::create_dir_all(home.join("baton")).unwrap();
    let file = home.join("baton/contexts.toml");
    let look = |text: &str, mode| {
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        let data = dir.path().join("data");
        let args = ["doctor", "--json", "--listen", FREE, "--data-dir", data.to_str().unwrap()];
        run_with(&args, "", &[("XDG_CONFIG_HOME", home.to_str().unwrap())])
    };
    let one = "[contexts.here]\nserver = \"http://127.0.0.1:1\"\n";
    is_ok(&look(one, 0o600).ok(), "contexts", "1 in ");
    is_problem(&look(one, 0o644), "contexts", "may be read by others");
    is_problem(&look("current = \"there\"\n", 0o600), "contexts", "no context called there");
    is_problem(&look("nonsense", 0o600), "contexts", "not understood");
}

#[test]
fn a_damaged_database_is_told_and_left_alone() {
    let dir = private();
    Server::serve(dir.path(), &[]).stop();
    let file = dir.path().join("baton.db");
    let whole = fs::read(&file).unwrap();
    // The first page is sound; what comes after it is not.
    let mut torn = whole.clone();
    for byte in &mut torn[4096..] {
        *byte = 0x5a;
    }
    fs::write(&file, &torn).unwrap();
    is_problem(&doctor(dir.path(), &[]), "database", "is damaged");
    assert_eq!(fs::read(&file).unwrap(), torn, "it looks and does not touch");
    fs::write(&file, "this was a database".repeat(500)).unwrap();
    is_problem(&doctor(dir.path(), &[]), "database", "is damaged");
    fs::remove_file(&file).unwrap();
    is_problem(&doctor(dir.path(), &[]), "database", "is gone");
    run(&["serve", "--listen", FREE, "--data-dir", dir.path().to_str().unwrap()]).failed(65, "database_gone");
    fs::create_dir(dir.path().join("corrupt-1")).unwrap();
    fs::remove_file(dir.path().join("seal.heads")).unwrap();
    is_problem(&doctor(dir.path(), &[]), "database", "corrupt-1");
    fs::write(&file, &whole).unwrap();
    let mended = doctor(dir.path(), &[]).ok();
    assert!(about(&mended, "database").iter().any(|(verdict, _)| verdict == "warning"), "it is still kept");
}

#[test]
fn a_port_that_another_program_has_is_a_problem() {
    let dir = private();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    // It hangs up on whoever comes.
    std::thread::spawn(move || other.incoming().for_each(drop));
    is_problem(&doctor(dir.path(), &["--listen", &address]), "port", "in use by another program");
    let gone = doctor(dir.path(), &["--server", &format!("http://{address}")]);
    is_problem(&gone, "server", "no answer");
}

#[test]
fn a_database_server_that_does_not_answer_is_a_problem_and_its_password_stays_secret() {
    let dir = private();
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("postgres://me:hunter2@127.0.0.1:{port}/baton");
    let ran = doctor(dir.path(), &["--database", &url]);
    is_problem(&ran, "database", "cannot open the database");
    assert!(!ran.out.contains("hunter2") && !ran.err.contains("hunter2"), "{ran:?}");
    is_problem(&doctor(dir.path(), &["--database", "mysql://x"]), "configuration", "postgres://");
}

#[test]
fn a_database_server_is_looked_at_beside_the_node_that_uses_it() {
    let Some(schema) = Schema::create() else { return };
    let dir = private();
    let url = ["--database", schema.url()];
    is_ok(&doctor(dir.path(), &url).ok(), "database", "none yet");
    let server = Server::serve(dir.path(), &url);
    let ran = doctor(dir.path(), &url).ok();
    let database = about(&ran, "database");
    assert!(database[0].1.starts_with("PostgreSQL ") && database[0].1.contains("; schema "), "{database:?}");
    assert!(database[1].1.contains("connections are taken"), "{database:?}");
    assert!(about(&ran, "clock").iter().any(|(_, detail)| detail == "the database's server has the same time"));
    is_ok(&ran, "server", "is ready");
    server.stop();
    schema.remove();
}
