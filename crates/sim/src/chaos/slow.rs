//! Requests that take their time: a byte now and then, and never the last one.

use super::Aim;
use std::time::Duration;

/// How long a server waits for what, as its limits say.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    pub head: Duration,
    pub body: Duration,
}

/// A request that begins and does not end.
#[derive(Clone, Debug)]
pub struct Drip {
    pub what: &'static str,
    pub begin: Vec<u8>,
    /// What follows, again and again, a byte at a time.
    pub drop: u8,
    pub every: Duration,
    /// When it must have been given up.
    pub within: Duration,
    /// It must be told so: it has said enough to be answered.
    pub told: bool,
}

/// More than a server may take beyond its limit on a machine that has much to do.
const SLACK: Duration = Duration::from_secs(15);

pub fn drips(aim: &Aim, waits: Waits) -> Vec<Drip> {
    let second = Duration::from_secs(1);
    let head = |what, begin: &str, drop| Drip {
        what,
        begin: begin.as_bytes().to_vec(),
        drop,
        every: second,
        within: waits.head + SLACK,
        told: false,
    };
    let body = |what, framing: &str| {
        let begin = format!(
            "POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: {}\r\n\
             Content-Type: application/json\r\n{framing}",
            aim.bearer()
        );
        let begin = begin.into_bytes();
        Drip { what, begin, drop: b' ', every: second, within: waits.body + SLACK, told: true }
    };
    vec![
        head("a request line that goes on", "GET /healthz", b'y'),
        head("a header that goes on", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ", b'y'),
        head("line feeds before a request", "", b'\n'),
        body("a body that comes by the byte", "Content-Length: 500000\r\n\r\n{"),
        body("a chunk that comes by the byte", "Transfer-Encoding: chunked\r\n\r\nffff\r\n{"),
        body("a body after it was asked for", "Expect: 100-continue\r\nContent-Length: 400\r\n\r\n"),
    ]
}
