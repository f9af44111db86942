//! What the server and a keeper say to each other, over one socket.
//!
//! The server sends two lengths, the order as JSON and the program's input; later, maybe, one byte
//! that means: stop. The keeper sends a line of JSON when the program has started, and one when
//! nothing is left of it. If the server hangs up, it is dead, or nobody waits for the program.

use super::limits;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::PathBuf;

/// How to start a program.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub cwd: PathBuf,
    pub env: BTreeMap<String, String>,
    pub memory_bytes: u64,
    pub file_bytes: u64,
    pub processes: Option<u64>,
}

pub const STOP: u8 = b's';

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// The number of its group.
    Started(i32),
    Unstarted(Unstarted),
    Ended(Ended),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unstarted {
    /// Whether the program, or something it is started with, is not there or not usable.
    pub missing: bool,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub how: How,
    /// Whether it was the keeper who ended it.
    pub stopped: bool,
    /// Whether a descendant could not be killed.
    pub left: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    Exit(i32),
    Signal(i32),
    /// It was killed, and is not dead yet.
    Unknown,
}

impl Order {
    /// As it is sent, with the input behind it.
    pub fn frame(&self, input: &[u8]) -> io::Result<Vec<u8>> {
        let head = serde_json::to_vec(self)?;
        if head.len() > limits::ORDER_BYTES || input.len() > limits::INPUT_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut frame = Vec::with_capacity(8 + head.len() + input.len());
        for part in [&head[..], input] {
            frame.extend_from_slice(&u32::try_from(part.len()).map_err(io::Error::other)?.to_le_bytes());
        }
        frame.extend_from_slice(&head);
        frame.extend_from_slice(input);
        Ok(frame)
    }

    pub fn read(from: &mut impl Read) -> io::Result<(Self, Vec<u8>)> {
        let mut length = |limit: usize| {
            let mut bytes = [0; 4];
            from.read_exact(&mut bytes)?;
            let length = usize::try_from(u32::from_le_bytes(bytes)).map_err(io::Error::other)?;
            if length > limit { Err(io::Error::from(io::ErrorKind::InvalidData)) } else { Ok(length) }
        };
        let (head, input) = (length(limits::ORDER_BYTES)?, length(limits::INPUT_BYTES)?);
        let mut part = |length| {
            let mut bytes = vec![0; length];
            from.read_exact(&mut bytes).map(|()| bytes)
        };
        let (head, input) = (part(head)?, part(input)?);
        Ok((serde_json::from_slice(&head)?, input))
    }
}

/// Those that can be read; a keeper that died in the middle of one has not said it.
pub fn reports(bytes: &[u8]) -> impl Iterator<Item = Report> {
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line.strip_suffix(b"\n")?).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Order {
        Order {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), "exit".into()],
            cwd: "/".into(),
            env: BTreeMap::from([("A".into(), "1\n2".into())]),
            memory_bytes: 1,
            file_bytes: 2,
            processes: Some(3),
        }
    }

    #[test]
    fn an_order_arrives_as_it_was_sent() {
        let frame = order().frame(b"{}").unwrap();
        assert_eq!(Order::read(&mut &frame[..]).unwrap(), (order(), b"{}".to_vec()));
        for cut in 0..frame.len() {
            assert!(Order::read(&mut &frame[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn lengths_are_not_believed() {
        assert!(Order::read(&mut &[0xff; 64][..]).is_err());
        assert!(order().frame(&vec![0; limits::INPUT_BYTES + 1]).is_err());
    }

    #[test]
    fn half_a_report_is_none() {
        let mut bytes = serde_json::to_vec(&Report::Started(7)).unwrap();
        assert_eq!(reports(&bytes).count(), 0);
        bytes.push(b'\n');
        assert_eq!(reports(&bytes).collect::<Vec<_>>(), [Report::Started(7)]);
    }
}
