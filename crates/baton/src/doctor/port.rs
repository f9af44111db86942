//! Whether the address to listen on is free, or a Baton has it.

use super::finding::{Check, Finding};
use super::server::{self, Health};
use crate::config::Listen;
use std::net::SocketAddr;
use tokio::net::TcpListener;

pub async fn look(listens: &Listen, running: Option<SocketAddr>) -> Finding {
    let listen = listens.address;
    if let Some(address) = running.filter(|address| *address == listen || listen.port() == 0) {
        return Finding::ok(Check::Port, format!("{address} is in use by the server of this data directory"));
    }
    if listen.port() == 0 {
        return Finding::ok(Check::Port, "a free one is chosen at the start");
    }
    if let Some(Health { version }) = server::health_at(listens).await {
        let detail = format!("{listen} is in use by a Baton {version} of another data directory");
        return Finding::warning(Check::Port, detail, "use that one, or choose another port with --listen");
    }
    // Given back at once; nobody can have connected to it.
    match TcpListener::bind(listen).await {
        Ok(_) => Finding::ok(Check::Port, format!("{listen} is free")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            let detail = format!("{listen} is in use by another program");
            Finding::problem(
                Check::Port,
                detail,
                "end that program, or choose another port with --listen 127.0.0.1:PORT",
            )
        }
        Err(error) => {
            let detail = format!("{listen} cannot be listened on: {error}");
            Finding::problem(Check::Port, detail, "choose another address with --listen 127.0.0.1:PORT")
        }
    }
}
