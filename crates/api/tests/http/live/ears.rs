//! Clients that listen: one over a WebSocket, one over a stream, and what both have in common.

use crate::support::{Ask, PATIENCE, Reply, Server, described, read};
use baton_wire::{Envelope, Event, EventList, FoundedOrg, LISTENING, MadeKey};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use std::net::SocketAddr;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Socket,
    Stream,
}

pub const BOTH: [By; 2] = [By::Socket, By::Stream];

/// How somebody asks to listen.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// A key, or the cookie of a session.
    pub key: &'a str,
    pub query: &'a str,
    /// `Last-Event-ID`.
    pub back: Option<&'a str>,
    /// Little is buffered for it.
    pub narrow: bool,
}

impl<'a> Call<'a> {
    pub fn new(key: &'a str, query: &'a str) -> Self {
        Self { key, query, back: None, narrow: false }
    }
}

/// What one hears.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// Something happened: its position, its type, all of it.
    News(String, String, Value),
    /// Where one stands.
    Standing(String),
    /// A sign of life.
    Beat,
    /// It is over: a number if there is one, and why.
    Over(Option<u16>, String),
    /// It broke off.
    Cut,
}

pub enum Ear {
    Socket(Box<WebSocketStream<TcpStream>>),
    Stream { lines: BufReader<TcpStream>, rest: String },
}

impl Ear {
    pub async fn open(by: By, server: &Server, call: Call<'_>) -> Result<Self, Reply> {
        timeout(PATIENCE, Self::try_open(by, server.address, call)).await.expect("an answer")
    }

    /// As admin.
    pub async fn listen(by: By, server: &Server, query: &str) -> Self {
        let opened = Self::open(by, server, Call::new(&server.admin, query)).await;
        opened.unwrap_or_else(|reply| panic!("{query}: {reply:?}"))
    }

    async fn try_open(by: By, address: SocketAddr, call: Call<'_>) -> Result<Self, Reply> {
        let socket = TcpSocket::new_v4().unwrap();
        if call.narrow {
            socket.set_recv_buffer_size(4_096).unwrap();
        }
        let mut stream = socket.connect(address).await.unwrap();
        let path = if by == By::Socket { "/api/ws" } else { "/api/v1/events/stream" };
        let mut head = format!("GET {path}?{} HTTP/1.1\r\nHost: localhost\r\n", call.query);
        head += &match call.key.strip_prefix("baton_session=") {
            Some(_) => format!("Cookie: {}\r\nOrigin: http://localhost\r\n", call.key),
            None => format!("Authorization: Bearer {}\r\n", call.key),
        };
        if let Some(back) = call.back {
            head += &format!("Last-Event-ID: {back}\r\n");
        }
        head += match by {
            By::Socket => {
                "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                 Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            }
            By::Stream => "\r\n",
        };
        stream.write_all(head.as_bytes()).await.unwrap();
        let asked = head;
        let head = head_of(&mut stream).await;
        let (status, expected) = (head.split(' ').nth(1).unwrap(), if by == By::Socket { "101" } else { "200" });
        if status != expected {
            let reply = refusal(&head, &mut stream).await;
            described::check(asked.as_bytes(), &reply);
            return Err(reply);
        }
        Ok(match by {
            By::Socket => Self::Socket(Box::new(WebSocketStream::from_raw_socket(stream, Role::Client, None).await)),
            By::Stream => {
                assert!(head.contains("content-type: text/event-stream\r\n"), "{head}");
                Self::Stream { lines: BufReader::new(stream), rest: String::new() }
            }
        })
    }

    pub async fn next(&mut self) -> Heard {
        timeout(PATIENCE, self.hear()).await.expect("something to hear")
    }

    async fn hear(&mut self) -> Heard {
        match self {
            Self::Socket(socket) => hear_socket(socket).await,
            Self::Stream { lines, rest } => hear_stream(lines, rest).await,
        }
    }

    /// The next thing that happened.
    pub async fn news(&mut self) -> (String, String, Value) {
        loop {
            match self.next().await {
                Heard::News(position, kind, body) => return (position, kind, body),
                Heard::Standing(_) | Heard::Beat => {}
                over => panic!("{over:?}"),
            }
        }
    }

    /// Positions up to this one.
    pub async fn until(&mut self, last: &str) -> Vec<String> {
        let mut heard = Vec::new();
        while heard.last().map(String::as_str) != Some(last) {
            heard.push(self.news().await.0);
        }
        heard
    }

    /// All that there is for it up to this position, which it may be told of or have passed over.
    pub async fn through(&mut self, last: &str) -> Vec<(String, String, Value)> {
        let mut heard = Vec::new();
        loop {
            match self.next().await {
                Heard::News(position, kind, body) => {
                    let done = position == last;
                    heard.push((position, kind, body));
                    if done {
                        return heard;
                    }
                }
                Heard::Standing(place) if place.as_str() >= last => return heard,
                Heard::Standing(_) | Heard::Beat => {}
                over => panic!("{over:?}"),
            }
        }
    }

    /// All that is heard up to the end, and the end.
    pub async fn rest(&mut self) -> (Vec<String>, Heard) {
        let mut heard = Vec::new();
        loop {
            match self.next().await {
                Heard::News(position, ..) => heard.push(position),
                Heard::Standing(_) | Heard::Beat => {}
                over => return (heard, over),
            }
        }
    }

    /// The end, and nothing before it.
    pub async fn over(&mut self) -> Heard {
        let (heard, over) = self.rest().await;
        assert!(heard.is_empty(), "{heard:?}");
        over
    }
}

async fn hear_socket(socket: &mut WebSocketStream<TcpStream>) -> Heard {
    match socket.next().await {
        Some(Ok(Message::Text(text))) => {
            let said: Envelope = serde_json::from_str(&text).unwrap();
            if said.kind == LISTENING {
                return Heard::Standing(said.position);
            }
            Heard::News(said.position, said.kind, serde_json::from_str(&text).unwrap())
        }
        Some(Ok(Message::Close(Some(why)))) => {
            // The other half of the farewell.
            let _ = socket.close(None).await;
            Heard::Over(Some(why.code.into()), why.reason.to_string())
        }
        Some(Ok(Message::Ping(_))) => {
            let _ = socket.flush().await;
            Heard::Beat
        }
        Some(Ok(other)) => panic!("{other:?}"),
        Some(Err(_)) | None => Heard::Cut,
    }
}

async fn hear_stream(lines: &mut BufReader<TcpStream>, rest: &mut String) -> Heard {
    loop {
        if let Some((block, after)) = rest.split_once("\n\n") {
            let heard = understand(block);
            *rest = after.to_owned();
            return heard;
        }
        // The next chunk.
        let mut size = String::new();
        if lines.read_line(&mut size).await.unwrap_or(0) == 0 {
            return Heard::Cut;
        }
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        let mut chunk = vec![0; size + 2];
        if lines.read_exact(&mut chunk).await.is_err() || size == 0 {
            return Heard::Cut;
        }
        rest.push_str(std::str::from_utf8(&chunk[..size]).unwrap());
    }
}

/// One block of a stream.
fn understand(block: &str) -> Heard {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    match (field("id"), field("event"), field("data")) {
        (Some(id), Some(event), Some(data)) => {
            let whole: Event = serde_json::from_str(data).unwrap();
            assert_eq!((whole.cursor.as_str(), whole.kind.as_str()), (id, event));
            Heard::News(id.to_owned(), event.to_owned(), serde_json::from_str(data).unwrap())
        }
        (None, Some(_), Some(data)) => {
            assert_eq!(field("retry"), Some("1000"));
            let said: Value = serde_json::from_str(data).unwrap();
            Heard::Over(None, said["code"].as_str().unwrap().to_owned())
        }
        (Some(id), None, None) => Heard::Standing(id.to_owned()),
        (None, None, None) if block.starts_with(": ") => Heard::Beat,
        _ => panic!("{block:?}"),
    }
}

async fn head_of(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

async fn refusal(head: &str, stream: &mut TcpStream) -> Reply {
    let field = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    let headers: Vec<_> = head.lines().skip(1).filter_map(field).collect();
    let length = headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, n)| n.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Reply { status, headers, body: String::from_utf8(body).unwrap() }
}

/// Every event there is, as the list has it.
pub async fn listed(server: &Server, after: Option<&str>) -> Vec<Event> {
    let mut events = Vec::new();
    let mut after = after.map(str::to_owned);
    loop {
        let from = after.map(|after| format!("&after={after}")).unwrap_or_default();
        let list: EventList = server.get(&format!("/api/v1/events?limit=1000{from}")).await.ok();
        after = Some(list.next);
        if list.events.is_empty() {
            return events;
        }
        events.extend(list.events);
    }
}

pub async fn positions(server: &Server, after: Option<&str>) -> Vec<String> {
    listed(server, after).await.into_iter().map(|event| event.cursor).collect()
}

pub async fn make_key(server: &Server, as_key: &str, body: Value) -> MadeKey {
    let body = body.to_string();
    let headers = [crate::support::JSON];
    let ask = Ask { method: "POST", path: "/api/v1/keys", headers: &headers, body: body.as_bytes() };
    let reply = server.send_as(as_key, ask).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    reply.parse()
}

/// The admin key of a new org.
pub async fn found_org(server: &Server, name: &str) -> String {
    let reply = server.post("/api/v1/orgs", &serde_json::json!({ "org": name })).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    reply.parse::<FoundedOrg>().key.secret.unwrap()
}

/// An answer to a request that is no call to listen.
pub async fn plain(server: &Server, bytes: &[u8]) -> Reply {
    let mut stream = server.connect().await;
    stream.write_all(bytes).await.unwrap();
    read(&mut stream).await.unwrap()
}
