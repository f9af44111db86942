//! A caller that costs little: one kept connection, the same bytes again and again, and of each answer
//! only its status and its length are looked at.

use anyhow::{Context, Result, bail, ensure};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// An answer is shorter.
const ROOM: usize = 16 * 1024;

pub struct Caller {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Caller {
    pub async fn connect(address: SocketAddr, key: &str, body: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let request = format!(
            "POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        Ok(Self { stream, request: request.into_bytes(), answer: Vec::with_capacity(ROOM) })
    }

    /// Asks once and waits for the whole answer, which must say that a job was made.
    pub async fn ask(&mut self) -> Result<()> {
        self.stream.write_all(&self.request).await?;
        self.answer.clear();
        loop {
            ensure!(self.stream.read_buf(&mut self.answer).await? > 0, "the server hung up");
            let Some(head) = self.answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { continue };
            if self.answer.len() >= head + 4 + length(&self.answer[..head])? {
                break;
            }
        }
        if !self.answer.starts_with(b"HTTP/1.1 201") {
            bail!("answered with {}", String::from_utf8_lossy(&self.answer));
        }
        Ok(())
    }
}

fn length(head: &[u8]) -> Result<usize> {
    const NAME: &[u8] = b"content-length: ";
    let at = head.windows(NAME.len()).position(|bytes| bytes == NAME).context("an answer without a length")?;
    let digits = head[at + NAME.len()..].split(|byte| *byte == b'\r').next().unwrap_or_default();
    Ok(std::str::from_utf8(digits)?.parse()?)
}
