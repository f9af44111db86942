//! A real server on a real port with a real database, and a client that can also misbehave.

pub mod described;
pub mod endpoint;
pub mod runs;
pub mod workers;

use baton_api::door::{Rate, first};
use baton_api::{App, Listening, Secrets};
use baton_core::access::session::Sessions;
use baton_core::rules::Rules;
use baton_core::webhook::sign::Signer;
use baton_engine::{Chronicler, Engine, JsonShapes, Options, OsEntropy, Registry, SystemClock, node};
use baton_sim::schema::Schema;
use baton_store::{Backend, OpenOptions, Store};
use baton_wire::{Event, EventList, Job};
use serde_json::Value;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Nothing that a test asks takes longer; a hang is a failure with a name.
/// What webhooks are signed with.
pub const SIGNER: [u8; 32] = [9; 32];
/// What sessions are opened with.
pub const SESSIONS: [u8; 32] = [7; 32];

pub const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Database {
    Sqlite,
    Postgres,
}

/// Declares each test twice: once on each database. `setup` may come first, with an arrow.
macro_rules! on_both_databases {
    ($setup:path => $($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $name() {
                $crate::support::run_with($crate::support::Database::Sqlite, $setup(), super::$name).await;
            })*
        }
        mod postgres {
            $(#[tokio::test]
            async fn $name() {
                $crate::support::run_with($crate::support::Database::Postgres, $setup(), super::$name).await;
            })*
        }
    };
    ($($name:ident),* $(,)?) => {
        on_both_databases!($crate::support::Setup::default => $($name),*);
    };
}

/// What a server may be given of a test's own.
pub struct Setup {
    pub rules: Rules,
    pub registry: Registry,
    pub rate: Option<Rate>,
    pub listening: Listening,
    /// Little is on its way to whoever does not read.
    pub narrow: bool,
}

impl Default for Setup {
    fn default() -> Self {
        let listening = Listening::default();
        Self { rules: Rules::default(), registry: Registry::builtin(), rate: None, listening, narrow: false }
    }
}

pub async fn run(database: Database, test: impl AsyncFnOnce(&Server)) {
    run_with(database, Setup::default(), test).await;
}

pub async fn run_with(database: Database, setup: Setup, test: impl AsyncFnOnce(&Server)) {
    let Some(server) = Server::start_with(database, setup).await else { return };
    test(&server).await;
    server.stop().await;
}

pub struct Server {
    pub address: SocketAddr,
    pub engine: Engine,
    /// The first admin key.
    pub admin: String,
    tell: oneshot::Sender<()>,
    serving: JoinHandle<()>,
    schema: Option<Schema>,
    _dir: TempDir,
}

impl Server {
    pub async fn start(database: Database) -> Option<Self> {
        Self::start_with(database, Setup::default()).await
    }

    pub async fn start_with(database: Database, setup: Setup) -> Option<Self> {
        let schema = match database {
            Database::Sqlite => None,
            Database::Postgres => Some(Schema::create().await.unwrap()?),
        };
        Some(Self::open(schema, None, setup).await)
    }

    /// Another node on the same PostgreSQL.
    pub async fn join(&self, setup: Setup) -> Self {
        let schema = self.schema.as_ref().expect("only PostgreSQL has several nodes");
        Self::open(None, Some((schema.url.clone(), self.admin.clone())), setup).await
    }

    async fn open(schema: Option<Schema>, joined: Option<(String, String)>, setup: Setup) -> Self {
        let Setup { rules, registry, rate, listening, narrow } = setup;
        let dir = tempfile::tempdir().unwrap();
        let definitions = Arc::new(registry.definitions(rules));
        let entropy = Arc::new(OsEntropy::default());
        let mut options = OpenOptions::new(dir.path().to_owned(), Arc::new(SystemClock), entropy.clone(), definitions);
        options.observer = Some(Arc::new(Chronicler::new(rules)));
        options.shapes = Some(Arc::new(JsonShapes));
        let url = schema.as_ref().map(|schema| &schema.url).or(joined.as_ref().map(|(url, _)| url));
        if let Some(url) = url {
            options.backend = Backend::Postgres(url.clone());
        }
        let store = Store::open(options).await.unwrap();
        let key = node::load_seal_key(dir.path()).unwrap();
        let mut options = Options::new(node::load_node(dir.path()).unwrap());
        options.seal_key = Some(key);
        let engine = Engine::start(store, registry, options).await.unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        if narrow {
            socket.set_send_buffer_size(16 * 1024).unwrap();
        }
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1_024).unwrap();
        let address = listener.local_addr().unwrap();
        let token = first::draw(&*entropy, engine.store().clock_now());
        assert_eq!(first::found(engine.store(), &token).await.unwrap(), joined.is_none());
        let admin = joined.map_or_else(|| token.reveal(), |(_, admin)| admin);
        let secrets = Secrets { signer: Signer::new(SIGNER), sessions: Sessions::new(SESSIONS) };
        let app = App::with(engine.clone(), entropy, rate, secrets, listening);
        let (tell, told) = oneshot::channel();
        let serving = tokio::spawn(baton_api::serve(listener, app, async {
            let _ = told.await;
        }));
        Self { address, engine, admin, tell, serving, schema, _dir: dir }
    }

    pub async fn stop(self) {
        self.tell.send(()).unwrap();
        self.serving.await.unwrap();
        self.engine.stop(Duration::from_secs(5)).await;
        if let Some(schema) = self.schema {
            schema.remove().await.unwrap();
        }
    }

    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends these very bytes and reads until the server closes. None: closed without a word.
    pub async fn raw(&self, bytes: &[u8]) -> Option<Reply> {
        let talk = async {
            let mut stream = self.connect().await;
            // It may answer and close before it has read everything.
            let _ = stream.write_all(bytes).await;
            read(&mut stream).await
        };
        let Ok(reply) = tokio::time::timeout(PATIENCE, talk).await else {
            panic!("no answer to {}", bytes[..bytes.len().min(2_000)].escape_ascii());
        };
        if let Some(reply) = &reply {
            described::check(bytes, reply);
        }
        reply
    }

    /// As the first admin, unless the request says as whom.
    pub async fn send(&self, ask: Ask<'_>) -> Reply {
        self.send_as(&self.admin, ask).await
    }

    pub async fn send_as(&self, key: &str, ask: Ask<'_>) -> Reply {
        let bearer = format!("Bearer {key}");
        let named = ask.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        let mut headers = ask.headers.to_vec();
        if !named && !key.is_empty() {
            headers.push(("Authorization", &bearer));
        }
        self.raw(&Ask { headers: &headers, ..ask }.bytes()).await.expect("an answer")
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send(Ask { path, ..Ask::default() }).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        let body = body.to_string();
        self.send(Ask { method: "POST", path, headers: &[JSON], body: body.as_bytes() }).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Reply {
        let body = body.to_string();
        self.send(Ask { method: "PUT", path, headers: &[JSON], body: body.as_bytes() }).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.send(Ask { method: "DELETE", path, ..Ask::default() }).await
    }

    pub async fn post_keyed(&self, path: &str, body: &str, key: &str) -> Reply {
        let headers = [JSON, ("Idempotency-Key", key)];
        self.send(Ask { method: "POST", path, headers: &headers, body: body.as_bytes() }).await
    }

    pub async fn enqueue(&self, body: Value) -> Job {
        let reply = self.post("/api/v1/jobs", &body).await;
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.parse()
    }

    pub async fn job(&self, id: impl std::fmt::Display) -> Job {
        self.get(&format!("/api/v1/jobs/{id}")).await.ok()
    }

    /// Every event from the start until one that is wanted.
    pub async fn events_until(&self, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut events = Vec::new();
        let mut path = "/api/v1/events?wait_ms=30000".to_owned();
        loop {
            let list: EventList = self.get(&path).await.ok();
            assert!(!list.events.is_empty(), "nothing happened; so far: {events:?}");
            path = format!("/api/v1/events?wait_ms=30000&after={}", list.next);
            for event in list.events {
                let found = wanted(&event);
                events.push(event);
                if found {
                    return events;
                }
            }
        }
    }

    /// Waits for something to happen to a job.
    pub async fn until(&self, id: impl ToString, kind: &str) -> Job {
        let id = id.to_string();
        self.events_until(|event| event.subject == id && event.kind == kind).await;
        self.job(id).await
    }
}

pub const JSON: (&str, &str) = ("Content-Type", "application/json");

pub struct Ask<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub headers: &'a [(&'a str, &'a str)],
    pub body: &'a [u8],
}

impl Default for Ask<'_> {
    fn default() -> Self {
        Self { method: "GET", path: "/", headers: &[], body: b"" }
    }
}

impl Ask<'_> {
    /// A host is added unless one is given; a body says how long it is.
    pub fn bytes(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nConnection: close\r\n", self.method, self.path);
        if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push_str("Host: localhost\r\n");
        }
        for (name, value) in self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        if !self.body.is_empty() || self.method == "POST" {
            let _ = write!(head, "Content-Length: {}\r\n", self.body.len());
        }
        head.push_str("\r\n");
        [head.as_bytes(), self.body].concat()
    }
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    pub fn parse<T: serde::de::DeserializeOwned>(&self) -> T {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Answered from an idempotency record.
    pub fn replayed(&self) -> bool {
        self.header("idempotency-replayed") == Some("true")
    }

    #[track_caller]
    pub fn ok<T: serde::de::DeserializeOwned>(&self) -> T {
        assert_eq!(self.status, 200, "{self:?}");
        self.parse()
    }

    /// Checks that this is a whole problem, and gives its detail.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> String {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem: baton_wire::Problem = self.parse();
        assert_eq!(problem.code, code, "{self:?}");
        assert_eq!(problem.status, Some(status));
        assert_eq!(problem.kind, format!("/docs/errors#{code}"));
        assert_eq!(problem.request_id.as_deref(), self.header("x-request-id"));
        let soon = [429, 503].contains(&status) && !["queue_disabled", "feature_disabled"].contains(&code);
        assert_eq!(self.header("retry-after").is_some(), soon, "{self:?}");
        problem.detail
    }
}

/// Reads an answer up to the end of the connection.
pub async fn read(stream: &mut TcpStream) -> Option<Reply> {
    let mut bytes = Vec::new();
    // A reset after the answer is still an answer.
    let _ = stream.read_to_end(&mut bytes).await;
    understand(&bytes)
}

/// What was read up to the end. None: nothing.
pub fn understand(bytes: &[u8]) -> Option<Reply> {
    if bytes.is_empty() {
        return None;
    }
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or_else(|| panic!("{}", bytes.escape_ascii()));
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.map(|line| line.split_once(": ").unwrap());
    Some(Reply {
        status,
        headers: headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect(),
        body: String::from_utf8(bytes[end + 4..].to_vec()).unwrap(),
    })
}
