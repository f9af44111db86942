//! The real binary: started, talked to, told to stop, killed.

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Nothing that a test waits for takes longer.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Where servers note under their ports whose key opens them: so commands find it by themselves.
pub const STATE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/state");

/// The binary with an environment of its own: nothing that a developer has set leaks in.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
    command.env_clear().env("XDG_STATE_HOME", STATE).args(args).stdin(Stdio::null());
    command
}

/// Events that a first start leaves behind: an org is founded, and its first key made.
pub const FOUNDING: usize = 2;

/// The first admin key, as it is kept in a data directory.
pub fn admin_key(data_dir: &Path) -> String {
    std::fs::read_to_string(data_dir.join("admin.key")).unwrap_or_default().trim().to_owned()
}

/// What a finished command left behind.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

pub fn run(args: &[&str]) -> Ran {
    run_with(args, "", &[])
}

pub fn run_with(args: &[&str], input: &str, env: &[(&str, &str)]) -> Ran {
    let mut command = command(args);
    command.envs(env.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It need not read what it was given.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let (out, err) = (whole(child.stdout.take().unwrap()), whole(child.stderr.take().unwrap()));
    let (Ok(out), Ok(err)) = (out.recv_timeout(PATIENCE), err.recv_timeout(PATIENCE)) else {
        child.kill().unwrap();
        child.wait().unwrap();
        panic!("baton {args:?} does not end");
    };
    Ran { code: child.wait().unwrap().code(), out, err }
}

/// Everything up to the end, when it has come.
fn whole(mut from: impl Read + Send + 'static) -> Receiver<String> {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        from.read_to_string(&mut text).unwrap();
        let _ = tell.send(text);
    });
    told
}

impl Ran {
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// Failed with this exit code, and said why on two lines.
    #[track_caller]
    pub fn failed(&self, exit: i32, code: &str) -> &str {
        assert_eq!(self.code, Some(exit), "{self:#?}");
        let said = self.err.lines().any(|line| line.starts_with("error: ") && line.ends_with(&format!("[{code}]")));
        assert!(said, "{self:#?}");
        &self.err
    }
}

/// A server that runs until it is told to stop, or dropped.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    /// The key that its data directory keeps; empty if another node has it.
    pub key: String,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Server {
    /// `baton serve` on a free port.
    pub fn serve(data_dir: &Path, more: &[&str]) -> Self {
        Self::serve_on("127.0.0.1:0", data_dir, more)
    }

    /// The same where another one was before.
    pub fn serve_on(address: &str, data_dir: &Path, more: &[&str]) -> Self {
        let mut args = vec!["serve", "--listen", address, "--log", "json", "--data-dir"];
        args.push(data_dir.to_str().unwrap());
        args.extend(more);
        Self::start(command(&args)).unwrap_or_else(|seen| panic!("it did not start: {seen:#?}"))
    }

    /// Waits for the log line that says where it listens; what it said instead, if it ended.
    pub fn start(mut command: Command) -> Result<Self, Vec<String>> {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = lines(child.stderr.take().unwrap());
        let (address, key) = (([127, 0, 0, 1], 0).into(), String::new());
        let mut server = Self { child, address, key, lines, seen: Vec::new() };
        while let Some(line) = server.next_line() {
            if let Ok(line) = serde_json::from_str::<Value>(&line)
                && line["message"] == "listening"
            {
                server.address = line["address"].as_str().unwrap().parse().unwrap();
                server.key = admin_key(Path::new(line["data_dir"].as_str().unwrap()));
                return Ok(server);
            }
        }
        server.child.wait().unwrap();
        Err(std::mem::take(&mut server.seen))
    }

    /// The next thing it logs; None when it has ended.
    pub fn next_line(&mut self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                self.seen.push(line.clone());
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("it says nothing and does not end; so far: {:#?}", self.seen),
        }
    }

    pub fn wait_for_line(&mut self, part: &str) {
        while let Some(line) = self.next_line() {
            if line.contains(part) {
                return;
            }
        }
        panic!("it ended without saying {part:?}: {:#?}", self.seen);
    }

    /// Whether this was logged so far, up to where it is.
    pub fn said(&self, part: &str) -> bool {
        self.seen.iter().any(|line| line.contains(part))
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// For requests without the command line.
    pub fn door(&self) -> Door {
        Door { address: self.address, key: self.key.clone() }
    }

    /// A client command that talks to this server.
    pub fn ask(&self, args: &[&str]) -> Ran {
        let url = self.url();
        run(&[args, &["--server", &url]].concat())
    }

    /// Waits until so many things have happened since the first start, and prints them.
    pub fn heard(&self, events: usize, more: &[&str]) -> Ran {
        let limit = (FOUNDING + events).to_string();
        self.ask(&[&["events", "tail", "--from-start", "--limit", &limit], more].concat())
    }

    pub fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Until it has ended by itself.
    pub fn ended(mut self) -> (ExitStatus, Vec<String>) {
        while self.next_line().is_some() {}
        (self.child.wait().unwrap(), std::mem::take(&mut self.seen))
    }

    #[track_caller]
    pub fn stop(self) {
        self.signal("TERM");
        let (status, seen) = self.ended();
        assert_eq!(status.code(), Some(0), "{seen:#?}");
    }

    /// SIGKILL: no last words.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn signal(child: &Child, name: &str) {
    let command = format!("kill -{name} {}", child.id());
    assert!(Command::new("/bin/sh").args(["-c", &command]).status().unwrap().success());
}

/// Lines as they come, until the end.
pub fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines() {
            let Ok(line) = line else { return };
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    told
}

/// Where to ask, and the key to come in with.
#[derive(Clone)]
pub struct Door {
    pub address: SocketAddr,
    pub key: String,
}

/// A request over a connection of its own: status, head and body. None if no whole answer came.
pub fn http(door: &Door, method: &str, path: &str, headers: &str, body: &str) -> Option<(u16, String, String)> {
    let mut stream = TcpStream::connect(door.address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let bearer = if door.key.is_empty() { String::new() } else { format!("Authorization: Bearer {}\r\n", door.key) };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{bearer}{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let said = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let whole = if status == 204 { 0 } else { said?.parse::<usize>().ok()? };
    (body.len() == whole).then(|| (status, head.to_owned(), body.to_owned()))
}

/// What is there.
pub fn get<T: serde::de::DeserializeOwned>(door: &Door, path: &str) -> T {
    let (status, _, body) = http(door, "GET", path, "", "").unwrap();
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// A database of one test's own, for tests without a runtime.
pub struct Schema(baton_sim::schema::Schema);

impl Schema {
    pub fn create() -> Option<Self> {
        wait_for(baton_sim::schema::Schema::create()).unwrap().map(Self)
    }

    pub fn url(&self) -> &str {
        &self.0.url
    }

    pub fn dump(&self) -> String {
        wait_for(self.0.dump()).unwrap()
    }

    pub fn remove(self) {
        wait_for(self.0.remove()).unwrap();
    }
}

fn wait_for<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
