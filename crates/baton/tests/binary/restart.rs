//! Following something while the server is restarted: whoever waits goes on where it was.

use crate::support::{FOUNDING, PATIENCE, Server, command, lines};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::Receiver;

const AWAY: &str = "the server does not answer; trying again for 30 s";

/// A command that follows something, with what it says.
struct Follower {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
}

impl Follower {
    fn start(server: &Server, args: &[&str]) -> Self {
        Self::start_at(&server.url(), args)
    }

    fn start_at(url: &str, args: &[&str]) -> Self {
        let mut follow = command(&[args, &["--server", url]].concat());
        let mut child = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, err) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        Self { child, out, err }
    }

    /// The next thing it prints that contains this.
    #[track_caller]
    fn says(&self, part: &str) -> String {
        loop {
            let line = self.out.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("it does not say {part}"));
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Waits until it has noticed that nobody answers, which it says once.
    fn notices(&self) {
        assert_eq!(self.err.recv_timeout(PATIENCE).unwrap(), AWAY);
    }

    /// Its exit code, with what else it said.
    fn ended(mut self) -> (Option<i32>, Vec<String>, Vec<String>) {
        let (out, err) = (self.out.iter().collect(), self.err.iter().collect());
        (self.child.wait().unwrap().code(), out, err)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn again(server: Server, dir: &Path, meanwhile: impl FnOnce()) -> Server {
    let address = server.address.to_string();
    server.kill();
    meanwhile();
    Server::serve_on(&address, dir, &[])
}

/// A job that waits until it is woken; whether it already does is of no importance.
fn waiting(server: &Server) -> String {
    let args =
        ["jobs", "enqueue", "echo", "--project", "p", "--json", "--payload", r#"{"wait":true,"message":"still"}"#];
    server.ask(&args).ok().json()["id"].as_str().unwrap().to_owned()
}

#[test]
fn watching_goes_on_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::serve(dir.path(), &[]);
    let id = waiting(&server);
    let watch = Follower::start(&server, &["jobs", "watch", &id]);
    watch.says(&id);
    let server = again(server, dir.path(), || watch.notices());
    server.ask(&["jobs", "wake", &id]).ok();
    watch.says("completed");
    let (code, out, err) = watch.ended();
    assert_eq!((code, err), (Some(0), Vec::new()), "{out:?}");
    server.stop();
}

#[test]
fn waiting_for_a_job_that_was_enqueued_goes_on_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::serve(dir.path(), &["--log-filter", "info,baton_api=debug"]);
    let payload = r#"{"wait":true,"message":"still"}"#;
    let enqueue = ["jobs", "enqueue", "echo", "--project", "p", "--payload", payload, "--wait", "--json"];
    let enqueued = Follower::start(&server, &enqueue);
    // It knows its job, because it asks how that is.
    server.wait_for_line("/api/v1/jobs/{jobId}");
    let server = again(server, dir.path(), || enqueued.notices());
    let list = server.ask(&["jobs", "list", "--project", "p", "--json"]).ok().json();
    server.ask(&["jobs", "wake", list["jobs"][0]["id"].as_str().unwrap()]).ok();
    let (code, out, err) = enqueued.ended();
    assert_eq!((code, err), (Some(0), Vec::new()), "{out:?}");
    let job: Value = serde_json::from_str(&out.join("\n")).unwrap();
    assert_eq!((&job["state"], &job["result"]["message"]), (&json!("completed"), &json!("still")));
    server.stop();
}

#[test]
fn a_tail_misses_nothing_and_repeats_nothing_across_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::serve(dir.path(), &[]);
    let first = waiting(&server);
    let tail = Follower::start(&server, &["events", "tail", "--from-start", "--json"]);
    let mut seen = vec![tail.says("job.queued"), tail.says("job.started"), tail.says("job.parked")];
    let server = again(server, dir.path(), || tail.notices());
    server.ask(&["jobs", "wake", &first]).ok();
    for kind in ["job.woken", "job.resumed", "job.completed"] {
        seen.push(tail.says(kind));
    }
    let whole = server.ask(&["events", "tail", "--no-follow", "--json"]).ok().out;
    assert_eq!(whole.lines().skip(FOUNDING).collect::<Vec<_>>(), seen);
    server.stop();
}

/// A server of one request: where it asks for, and whether it gets an answer.
fn asked(listener: &TcpListener, answer: Option<&Value>) -> String {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = BufReader::new(&stream).lines().map(Result::unwrap).next().unwrap();
    if let Some(answer) = answer.map(Value::to_string) {
        let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length:";
        write!(stream, "{head} {}\r\n\r\n{answer}", answer.len()).unwrap();
    }
    head
}

#[test]
fn a_tail_that_has_heard_nothing_yet_keeps_its_place() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let tail = Follower::start_at(&format!("http://{}", listener.local_addr().unwrap()), &["events", "tail"]);
    let end = json!({ "events": [], "next": "c10000000000000007" });
    assert!(asked(&listener, Some(&end)).contains("after=tail"));
    // The connection breaks while it waits: the end of the history may be elsewhere by now.
    for _ in 0..2 {
        assert!(asked(&listener, None).contains("after=c10000000000000007"));
    }
    drop(tail);
}

#[test]
fn a_server_that_was_never_there_is_not_waited_for() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    for args in [["jobs", "watch", "--project", "p"], ["events", "tail", "--from-start", "--json"]] {
        let gone = crate::support::run(&[&args[..], &["--server", &url]].concat());
        assert_eq!(gone.code, Some(69), "{gone:?}");
        assert!(!gone.err.contains(AWAY), "{gone:?}");
    }
}
