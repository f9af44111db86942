//! Connections: how many, how slow, and how they end.

use crate::app::App;
use crate::limits;
use crate::router::router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

type Service = TowerToHyperService<axum::Router>;

/// Answers requests until `shutdown`, then lets those under way finish, for a bounded time.
pub async fn serve(listener: TcpListener, app: App, shutdown: impl Future<Output = ()>) {
    let service = TowerToHyperService::new(router(app.clone()));
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
                let talk = talk(stream, service.clone(), app.clone());
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
    let drained = tokio::time::timeout(limits::DRAIN, async { while connections.join_next().await.is_some() {} }).await;
    if drained.is_err() {
        tracing::warn!(connections = connections.len(), "closing connections that did not end in time");
        connections.shutdown().await;
    }
}

async fn talk(stream: TcpStream, service: Service, app: App) {
    // Answers are small and whole; waiting to fill a packet only delays them.
    let _ = stream.set_nodelay(true);
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits::HEAD_WAIT)
        .max_headers(limits::HEADERS)
        .max_buf_size(limits::HEAD_BYTES);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
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
