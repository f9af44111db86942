//! A server that says exactly what a test wrote down.

#![allow(clippy::unwrap_used, reason = "this is a test")]

use baton_tools::{Allow, Limits, Outgoing, Policy, Request, Trust};
use http::Method;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

#[derive(Clone)]
pub enum Reply {
    /// This, and then the next request.
    Text(String),
    /// This, and then nothing, without hanging up.
    Stall(&'static str),
    /// This, and then the other again and again, for as long as somebody reads.
    Endless(&'static str, &'static str),
    /// This, and then hang up.
    Break(&'static str),
}

pub struct Server {
    pub port: u16,
    /// Heads and bodies of requests as they came, each after the number of its connection.
    pub heard: mpsc::UnboundedReceiver<(usize, String)>,
}

impl Server {
    pub async fn start(reply: Reply) -> Self {
        Self::listen(reply, None).await
    }

    pub async fn start_tls(reply: Reply, acceptor: TlsAcceptor) -> Self {
        Self::listen(reply, Some(acceptor)).await
    }

    async fn listen(reply: Reply, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, heard) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            for number in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let (reply, tell, tls) = (reply.clone(), tell.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => talk(stream, number, reply, tell).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => talk(stream, number, reply, tell).await,
                            Err(_) => None,
                        },
                    }
                });
            }
        });
        Self { port, heard }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://localhost:{}{path}", self.port)
    }

    /// Reaches this server by its name, and nothing else inside.
    pub fn outgoing(&self) -> Outgoing {
        Outgoing::new(self.policy()).unwrap()
    }

    pub fn policy(&self) -> Policy {
        let allow = Allow::parse([format!("localhost:{}", self.port).as_str()]).unwrap();
        Policy { allow, trust: Trust::nobody(), ..Policy::public() }
    }
}

async fn talk<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    number: usize,
    reply: Reply,
    tell: mpsc::UnboundedSender<(usize, String)>,
) -> Option<()> {
    loop {
        let request = read(&mut stream).await?;
        tell.send((number, request)).ok()?;
        match &reply {
            Reply::Text(text) => stream.write_all(text.as_bytes()).await.ok()?,
            Reply::Stall(text) => {
                stream.write_all(text.as_bytes()).await.ok()?;
                stream.flush().await.ok()?;
                std::future::pending::<()>().await;
            }
            Reply::Endless(text, more) => {
                stream.write_all(text.as_bytes()).await.ok()?;
                loop {
                    stream.write_all(more.as_bytes()).await.ok()?;
                }
            }
            Reply::Break(text) => {
                stream.write_all(text.as_bytes()).await.ok()?;
                return stream.shutdown().await.ok();
            }
        }
        stream.flush().await.ok()?;
    }
}

/// One request, by its Content-Length.
async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> Option<String> {
    let mut text = String::new();
    loop {
        let byte = stream.read_u8().await.ok()?;
        text.push(char::from(byte));
        if let Some(head) = text.strip_suffix("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
            stream.read_exact(&mut body).await.ok()?;
            text.push_str(&String::from_utf8(body).unwrap());
            return Some(text);
        }
    }
}

/// A server's side of TLS, with the certificate that a client has to believe.
pub fn certificate(name: &str) -> (TlsAcceptor, String) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let config = rustls::ServerConfig::builder_with_provider(baton_tools::provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), made.cert.pem())
}

pub fn get(url: String) -> Request {
    Request::new(Method::GET, url)
}

/// Short enough for a test to wait for.
pub fn soon() -> Limits {
    Limits { total: Duration::from_millis(200), ..Limits::INHERITED }
}
