//! The real binary: how soon it is ready, and how much memory it takes while nothing happens.

use anyhow::{Context, Result, ensure};
use baton_sim::lab::Lab;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

const PATIENCE: Duration = Duration::from_secs(30);
/// Until what a start needs has been given back.
const IDLE: Duration = Duration::from_secs(3);
const ROUNDS: usize = 3;

/// Ended when dropped.
pub struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub struct Idle {
    /// The first start of an empty directory, which makes the database.
    pub first_ms: f64,
    pub ready_ms: f64,
    pub rss_mb: f64,
}

/// Beside this program, if somebody built it: `cargo xtask bench queue` does.
pub fn binary() -> Result<Option<PathBuf>> {
    let path = std::env::current_exe()?.with_file_name("baton");
    Ok(path.exists().then_some(path))
}

pub async fn measure(lab: &Lab) -> Result<Option<Idle>> {
    let Some(binary) = binary()? else { return Ok(None) };
    let mut rounds = Vec::new();
    for _ in 0..=ROUNDS {
        rounds.push(start(lab, &binary).await?);
    }
    let first_ms = rounds.remove(0).0;
    let ready_ms = crate::figure::median(rounds.iter().map(|(ready, _)| *ready).collect());
    let rss_mb = crate::figure::median(rounds.iter().map(|(_, rss)| *rss).collect());
    Ok(Some(Idle { first_ms, ready_ms, rss_mb }))
}

async fn start(lab: &Lab, binary: &Path) -> Result<(f64, f64)> {
    let began = Instant::now();
    let (server, _) = begin(lab, binary, &lab.data_dir("server"), &[]).await?;
    let ready = began.elapsed().as_secs_f64() * 1e3;
    tokio::time::sleep(IDLE).await;
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.0.id()))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS")?;
    let kib: f64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
    Ok((ready, kib / 1024.0))
}

/// A server that is ready, and where.
pub async fn begin(lab: &Lab, binary: &Path, dir: &Path, env: &[(&str, &str)]) -> Result<(Server, SocketAddr)> {
    let address = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
    let mut command = Command::new(binary);
    command.args(["serve", "--listen", &address.to_string(), "--data-dir"]).arg(dir).env_clear();
    command.env("XDG_STATE_HOME", dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.envs(env.iter().copied());
    if let Some(url) = lab.url() {
        command.env("BATON_DATABASE_URL", url);
    }
    let began = Instant::now();
    let mut server = Server(command.spawn()?);
    while !is_ready(address).await {
        ensure!(server.0.try_wait()?.is_none(), "the server ended");
        ensure!(began.elapsed() < PATIENCE, "the server does not get ready");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok((server, address))
}

async fn is_ready(address: SocketAddr) -> bool {
    let asked = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await?;
        anyhow::Ok(answer.ends_with(b" 200"))
    };
    asked.await.unwrap_or(false)
}
