//! The other end of a webhook: takes what is sent, and answers what it is told to.

use super::PATIENCE;
use baton_core::webhook::sign::Secret;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

pub struct Endpoint {
    pub url: String,
    requests: mpsc::Receiver<(TcpStream, Received)>,
    connections: Arc<AtomicUsize>,
}

#[derive(Debug)]
pub struct Received {
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Endpoint {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/in?token=t0psecret", listener.local_addr().unwrap());
        let (tell, requests) = mpsc::channel(16);
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(take(stream, tell.clone()));
            }
        });
        Self { url, requests, connections }
    }

    /// Waits for the next request, and answers it with this.
    pub async fn receive(&mut self, status: u16) -> Received {
        let taken = tokio::time::timeout(PATIENCE, self.requests.recv()).await;
        let (mut stream, received) = taken.expect("nothing was sent").unwrap();
        let answer = format!("HTTP/1.1 {status} Told\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        let _ = stream.write_all(answer.as_bytes()).await;
        received
    }

    pub fn is_untouched(&self) -> bool {
        self.connections.load(Ordering::Relaxed) == 0
    }
}

async fn take(mut stream: TcpStream, tell: mpsc::Sender<(TcpStream, Received)>) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(n) => bytes.extend_from_slice(&buffer[..n]),
        }
        let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let lines = head.split("\r\n").skip(1).filter_map(|line| line.split_once(": "));
        let headers = lines.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect::<Vec<_>>();
        let length = headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, n)| n.parse().unwrap());
        if bytes.len() >= end + 4 + length {
            let received = Received { headers, body: bytes[end + 4..end + 4 + length].to_vec() };
            let _ = tell.send((stream, received)).await;
            return;
        }
    }
}

impl Received {
    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(given, _)| given == name);
        found.map_or_else(|| panic!("no {name} in {self:?}"), |(_, value)| value)
    }

    /// As a receiver does it, who knows the secret and nothing else.
    pub fn is_signed_by(&self, secret: &str) -> bool {
        let secret = Secret::read(secret).expect("a secret");
        let seconds: i64 = self.header("webhook-timestamp").parse().unwrap();
        let at = baton_core::Micros(seconds * 1_000_000);
        let expected = secret.sign(self.header("webhook-id"), at, &self.body);
        self.header("webhook-signature").split(' ').any(|given| given == expected)
    }

    #[track_caller]
    pub fn verify(&self, secret: &str) {
        assert!(self.is_signed_by(secret), "{self:?}");
        assert_eq!(self.header("content-type"), "application/json");
    }
}
