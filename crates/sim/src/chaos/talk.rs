//! Shouting, and hearing what is said to it.

use super::{Drip, Shout, Then};
use std::fmt::{self, Display};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A server that takes longer has hung.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A request up to this size is read to its end, whatever is said to it.
const SHORT: usize = 32 * 1024;

/// Everything that was said, before either side hung up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard(pub Vec<u8>);

/// What a server must never do.
#[derive(Debug)]
pub enum Broken {
    /// Nobody is there.
    Gone(io::Error),
    /// Neither an answer nor an end.
    Hung,
    /// It was asked well enough to be answered, and was not.
    Silent,
    /// It says that it is to blame.
    Blamed(u16, String),
    /// What it says is no HTTP.
    Gibberish(String),
}

impl Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(error) => write!(f, "nobody is there: {error}"),
            Self::Hung => write!(f, "neither an answer nor an end within {} s", PATIENCE.as_secs()),
            Self::Silent => write!(f, "no answer"),
            Self::Blamed(status, said) => write!(f, "answered with {status}: {said}"),
            Self::Gibberish(said) => write!(f, "answered with what is no HTTP: {said}"),
        }
    }
}

impl Heard {
    /// Every status that was answered with, in order.
    pub fn statuses(&self) -> Vec<u16> {
        const START: &[u8] = b"HTTP/1.1 ";
        let starts = (0..self.0.len()).filter(|at| self.0[*at..].starts_with(START));
        let status =
            |at: usize| std::str::from_utf8(self.0.get(at + START.len()..at + START.len() + 3)?).ok()?.parse().ok();
        starts.filter_map(status).collect()
    }

    /// What comes before the first body.
    pub fn head(&self) -> Option<&[u8]> {
        self.0.windows(4).position(|bytes| bytes == b"\r\n\r\n").map(|end| &self.0[..end + 4])
    }

    fn shown(&self) -> String {
        self.0[..self.0.len().min(1_000)].escape_ascii().to_string()
    }

    /// Whether a decent server says so.
    fn check(self, must: bool) -> Result<Self, Broken> {
        if self.0.is_empty() {
            return if must { Err(Broken::Silent) } else { Ok(self) };
        }
        if !self.0.starts_with(b"HTTP/1.") {
            return Err(Broken::Gibberish(self.shown()));
        }
        match self.statuses().into_iter().find(|status| *status >= 500) {
            Some(status) => Err(Broken::Blamed(status, self.shown())),
            None => Ok(self),
        }
    }
}

/// Says it and hears what is said, to the end.
pub async fn shout(address: SocketAddr, shout: &Shout) -> Result<Heard, Broken> {
    let mut stream = TcpStream::connect(address).await.map_err(Broken::Gone)?;
    let talk = async {
        let mut heard = Heard::default();
        // It may answer and hang up before it has heard everything.
        let _ = stream.write_all(&shout.bytes).await;
        match &shout.then {
            Then::Listen => {}
            Then::HangUp { after_ms } => {
                let _ = timeout(Duration::from_millis(*after_ms), hear(&mut stream, &mut heard)).await;
                let _ = stream.shutdown().await;
            }
            Then::Frames(frames) => {
                hear_head(&mut stream, &mut heard).await;
                if heard.statuses() == [101] {
                    let _ = stream.write_all(frames).await;
                }
                let _ = stream.shutdown().await;
            }
        }
        hear(&mut stream, &mut heard).await;
        heard
    };
    let heard = timeout(PATIENCE, talk).await.map_err(|_| Broken::Hung)?;
    // A server that has heard enough of a long request hangs up, and the answer may be lost on the way.
    let must = shout.then == Then::Listen && shout.bytes.len() <= SHORT;
    match heard.clone().check(must) {
        // One history is verified at a time; whoever asks meanwhile is told so.
        Err(Broken::Blamed(503, said)) if said.contains("\"overloaded\"") && is_audit(&shout.bytes) => Ok(heard),
        checked => checked,
    }
}

fn is_audit(request: &[u8]) -> bool {
    request.windows(14).take(64).any(|bytes| bytes == b"/api/v1/audit ")
}

/// To the end, or to the beginning of what has none.
async fn hear(stream: &mut TcpStream, heard: &mut Heard) {
    // A reset after the answer is still an answer.
    while stream.read_buf(&mut heard.0).await.is_ok_and(|read| read > 0) {
        let endless = |head: &[u8]| head.windows(17).any(|bytes| bytes == b"text/event-stream");
        if heard.head().is_some_and(endless) {
            return;
        }
    }
}

async fn hear_head(stream: &mut TcpStream, heard: &mut Heard) {
    while heard.head().is_none() && stream.read_buf(&mut heard.0).await.is_ok_and(|read| read > 0) {}
}

/// Takes its time, until the server has had enough.
pub async fn drip(address: SocketAddr, drip: &Drip) -> Result<Heard, Broken> {
    let mut stream = TcpStream::connect(address).await.map_err(Broken::Gone)?;
    let _ = stream.write_all(&drip.begin).await;
    let (mut ear, mut mouth) = stream.split();
    let mut heard = Vec::new();
    let talk = async {
        tokio::select! {
            biased;
            _ = ear.read_to_end(&mut heard) => {}
            () = async {
                loop {
                    tokio::time::sleep(drip.every).await;
                    // Once nobody hears it any more, the end is read above.
                    let _ = mouth.write_all(&[drip.drop]).await;
                }
            } => {}
        }
    };
    timeout(drip.within, talk).await.map_err(|_| Broken::Hung)?;
    let heard = Heard(heard).check(drip.told)?;
    match heard.statuses().last() {
        Some(408) => Ok(heard),
        None if !drip.told => Ok(heard),
        _ => Err(Broken::Gibberish(heard.shown())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_of_a_conversation_counts() {
        let said = Heard(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\n\r\n{}HTTP/1.1 503 X\r\n\r\n".to_vec());
        assert_eq!(said.statuses(), [100, 201, 503]);
        assert!(matches!(said.check(true), Err(Broken::Blamed(503, _))));
        assert!(matches!(Heard::default().check(true), Err(Broken::Silent)));
        assert!(Heard::default().check(false).is_ok());
        assert!(matches!(Heard(b"SSH-2.0".to_vec()).check(false), Err(Broken::Gibberish(_))));
    }
}
