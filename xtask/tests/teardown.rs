//! However `xtask` ends, the cluster it started ends too.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "waits for real processes, which know no virtual time")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn after_success() {
    check("success", "exit 0", None, 0);
}

#[test]
fn after_failure() {
    check("failure", "exit 7", None, 7);
}

#[test]
fn after_an_interrupt() {
    check("interrupt", "sleep 60", Some("INT"), 128 + 2);
}

#[test]
fn after_a_request_to_end() {
    check("request", "sleep 60", Some("TERM"), 128 + 15);
}

#[test]
fn after_a_kill() {
    check("kill", "sleep 60", Some("KILL"), 128 + 9);
}

/// Runs `script` beside a cluster, sends `signal` once it runs, and expects `code` and no trace.
fn check(name: &str, script: &str, signal: Option<&str>, code: i32) {
    if !postgres_is_installed() {
        // A test must not install anything; `cargo xtask test` does, before it gets here.
        return;
    }
    let directory = PathBuf::from(format!("/var/tmp/baton-teardown-{name}-{}", std::process::id()));
    fs::create_dir(&directory).unwrap();

    // An interrupt is ignored by whoever inherits that from a script's background job.
    let mut xtask = Command::new("env")
        .args(["--default-signal=INT", env!("CARGO_BIN_EXE_xtask")])
        .args(["with-postgres", "--", "sh", "-c"])
        .arg(format!("echo \"$BATON_TEST_DATABASE_URL\"; echo $$; {script}"))
        .env_remove("BATON_TEST_DATABASE_URL")
        .env("TMPDIR", &directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(xtask.stdout.take().unwrap()).lines();
    let url = lines.next().unwrap().unwrap();
    let program = lines.next().unwrap().unwrap();
    let server = address(&url);
    if let Some(signal) = signal {
        assert!(TcpStream::connect(server).is_ok(), "{url} does not answer");
        assert!(fs::read_dir(&directory).unwrap().next().is_some());
        let sent = Command::new("sh").args(["-c", &format!("kill -s {signal} {}", xtask.id())]).status();
        assert!(sent.unwrap().success());
    }
    let status = xtask.wait().unwrap();
    let ended = status.code().or(status.signal().map(|signal| 128 + signal));
    assert_eq!(ended, Some(code));

    let is_running = |id: &str| fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
    wait_until("the program ended", || !is_running(&program));
    wait_until("the server ended", || TcpStream::connect(server).is_err());
    // Fails until the directory is empty.
    wait_until("its files are gone", || fs::remove_dir(&directory).is_ok());
}

fn address(url: &str) -> &str {
    let (_, rest) = url.split_once('@').unwrap();
    rest.strip_suffix("/baton").unwrap()
}

fn postgres_is_installed() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let debian = debian.map(|version| version.unwrap().path().join("bin"));
    debian.chain(std::env::split_paths(&path)).any(|bin| bin.join("initdb").is_file())
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LIMIT, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
