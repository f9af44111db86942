//! Connections: how many, how slow, and how they end.

use crate::app::App;
use crate::door::session::Secure;
use crate::guard::Hosts;
use crate::limits;
use crate::router::{plain, router};
use crate::unstalled::Unstalled;
use axum::Extension;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

type Service = TowerToHyperService<axum::Router>;

/// Where one comes in, and how.
pub struct Entrance {
    pub listener: TcpListener,
    /// Only over TLS, if there is one.
    pub tls: Option<Arc<ServerConfig>>,
    pub hosts: Hosts,
}

/// Plainly, and for this machine.
impl From<TcpListener> for Entrance {
    fn from(listener: TcpListener) -> Self {
        Self { listener, tls: None, hosts: Hosts::default() }
    }
}

/// How each connection is spoken with.
#[derive(Clone)]
struct Manner {
    app: App,
    tls: Option<TlsAcceptor>,
    service: Service,
    /// For those who speak plainly where TLS is spoken.
    plain: Service,
}

/// Answers requests until `shutdown`, then lets those under way finish, for a bounded time.
pub async fn serve(entrance: impl Into<Entrance>, app: App, shutdown: impl Future<Output = ()>) {
    let Entrance { listener, tls, hosts } = entrance.into();
    let manner = Manner {
        app: app.clone(),
        service: TowerToHyperService::new(router(app.clone(), Arc::new(hosts)).layer(Extension(Secure(tls.is_some())))),
        tls: tls.map(TlsAcceptor::from),
        plain: TowerToHyperService::new(plain(app.clone())),
    };
    let places = Arc::new(Semaphore::new(limits::CONNECTIONS));
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    let mut upkeep = pin!(app.recorder().upkeep());
    loop {
        // Not accepting is how a full house says so: who comes waits in the backlog.
        let place = tokio::select! {
            biased;
            () = &mut shutdown => break,
            place = places.clone().acquire_owned() => place,
            () = &mut upkeep => continue,
        };
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = listener.accept() => accepted,
            () = &mut upkeep => continue,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, _)) => {
                let talk = talk(stream, manner.clone());
                connections.spawn(async move {
                    talk.await;
                    drop(place);
                });
            }
            Err(error) => rest_after(&error).await,
        }
    }
    drop(listener);
    app.stop();
    let drain = async {
        while connections.join_next().await.is_some() {}
        // A socket is no connection of ours any more, but it is told to come again.
        app.live().deserted().await;
    };
    if timeout(limits::DRAIN, drain).await.is_err() {
        tracing::warn!(connections = connections.len(), "closing connections that did not end in time");
        connections.shutdown().await;
    }
}

async fn talk(stream: TcpStream, manner: Manner) {
    // Answers are small and whole; waiting to fill a packet only delays them.
    let _ = stream.set_nodelay(true);
    let Manner { app, tls, service, plain } = manner;
    let Some(tls) = tls else { return exchange(stream, service, &app, true).await };
    let greeted = tokio::select! {
        biased;
        greeted = greet(stream, tls) => greeted,
        () = app.stopped() => return,
    };
    match greeted {
        Ok(Greeted::Secret(stream)) => exchange(stream, service, &app, true).await,
        Ok(Greeted::Plain(stream)) => exchange(stream, plain, &app, false).await,
        Err(error) => tracing::debug!(cause = %error, "a connection did not agree on keys"),
    }
}

enum Greeted {
    Secret(Box<TlsStream<TcpStream>>),
    Plain(TcpStream),
}

/// Agrees on keys with those who speak TLS. That holds a place like everything else, so it must
/// come to an end.
async fn greet(stream: TcpStream, tls: TlsAcceptor) -> io::Result<Greeted> {
    let greet = async {
        let mut first = [0];
        // A request begins with a letter, TLS with a byte that is none.
        if stream.peek(&mut first).await? == 1 && first[0].is_ascii_alphabetic() {
            return Ok(Greeted::Plain(stream));
        }
        Ok(Greeted::Secret(Box::new(tls.accept(stream).await?)))
    };
    timeout(limits::HANDSHAKE_WAIT, greet).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Requests and their answers, until one side has enough.
async fn exchange<S>(stream: S, service: Service, app: &App, keep_alive: bool)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let stream = Unstalled::new(stream, limits::WRITE_WAIT);
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .keep_alive(keep_alive)
        .header_read_timeout(limits::HEAD_WAIT)
        .max_headers(limits::HEADERS)
        .max_header_size(limits::HEAD_BYTES)
        .max_buf_size(limits::HEAD_BYTES);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = app.stopped() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(cause = %error, "a connection ended early");
    }
}

/// A client that was gone before it was served is no news; being out of sockets is.
async fn rest_after(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        tracing::error!(cause = %error, "cannot accept connections");
        tokio::time::sleep(limits::ACCEPT_REST).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;
    use tokio::time::Instant;
    use tokio_rustls::rustls::crypto::ring;
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;

    fn acceptor() -> TlsAcceptor {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        TlsAcceptor::from(Arc::new(builder.with_single_cert(vec![made.cert.der().clone()], key).unwrap()))
    }

    /// What becomes of somebody who says this and then nothing more.
    async fn greeted(said: &[u8]) -> io::Result<Greeted> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        client.write_all(said).await.unwrap();
        greet(stream, acceptor()).await
    }

    #[tokio::test(start_paused = true)]
    async fn who_never_agrees_on_keys_is_given_up() {
        for said in [&b""[..], &b"\x16\x03\x01\x02"[..]] {
            let started = Instant::now();
            let error = greeted(said).await.err().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{said:?}");
            assert_eq!(started.elapsed().as_secs(), limits::HANDSHAKE_WAIT.as_secs(), "{said:?}");
        }
    }

    #[tokio::test]
    async fn plain_speech_is_told_from_nonsense() {
        assert!(matches!(greeted(b"GET / HTTP/1.1\r\n").await, Ok(Greeted::Plain(_))));
        assert!(greeted(b"\x16nonsense").await.is_err());
        assert!(greeted(b"\0\0\0\0\0\0\0\0").await.is_err());
    }
}
