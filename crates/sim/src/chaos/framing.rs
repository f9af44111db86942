//! Bodies whose length is told wrongly, twice, or in pieces that are none.

use super::body::almost;
use super::draw::Draw;
use super::route::{path, patience};
use super::{Aim, Shout, Then};
use std::fmt::Write as _;

pub fn abused(aim: &Aim, draw: &mut Draw) -> Shout {
    let target = aim.taker(draw);
    let path = path(aim, target, draw);
    let body = almost(&target.bodies, draw).to_string().into_bytes();
    let mut head = format!("{} {path} HTTP/1.1\r\nHost: localhost\r\n", target.method);
    let _ = write!(head, "Authorization: {}\r\nContent-Type: application/json\r\n", aim.bearer());
    if draw.chance(1, 3) {
        head.push_str(draw.pick(&["Connection: close\r\n", "Expect: 100-continue\r\n", "Trailer: X\r\n"]));
    }
    let length = body.len();
    let sent = match draw.below(8) {
        // Both, which must not be read as either.
        0 => {
            let _ = write!(head, "Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n");
            chunked(&body, draw)
        }
        1 => {
            let _ = write!(head, "Transfer-Encoding: chunked\r\nContent-Length: {}\r\n", draw.below(10));
            chunked(&body, draw)
        }
        // Less than there is: the rest is taken for the next request.
        2 => {
            let _ = write!(head, "Content-Length: {}\r\n", draw.below(length + 1));
            body
        }
        // More than there is.
        3 => {
            let _ = write!(head, "Content-Length: {}\r\n", length + 1 + draw.below(1_000_000));
            body
        }
        4 => {
            let _ = write!(head, "Content-Length: {length}\r\nContent-Length: {}\r\n", length + draw.below(2));
            body
        }
        _ => {
            head.push_str("Transfer-Encoding: chunked\r\n");
            chunked(&body, draw)
        }
    };
    head.push_str("\r\n");
    let bytes = [head.as_bytes(), &sent].concat();
    Shout { what: "an abused framing", bytes, then: Then::HangUp { after_ms: patience(draw) } }
}

/// In pieces, with something wrong about most of them.
fn chunked(body: &[u8], draw: &mut Draw) -> Vec<u8> {
    let mut sent = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(1 + draw.below(rest.len()));
        rest = after;
        let size = match draw.below(14) {
            0 => "ffffffffffffffff".to_owned(),
            1 => "fffffffffffffffff".to_owned(),
            2 => "-1".to_owned(),
            3 => "zz".to_owned(),
            4 => String::new(),
            5 => format!("{:x}", piece.len() + 1 + draw.below(100)),
            6 => format!("0x{:x}", piece.len()),
            7 => format!("{}{:x}", "0".repeat(draw.below(40)), piece.len()),
            _ => format!("{:x}", piece.len()),
        };
        sent.extend_from_slice(size.as_bytes());
        match draw.below(8) {
            0 => sent.extend_from_slice(b";name=\"value\";\xff"),
            1 => sent.extend([b";x=".as_slice(), &b"e".repeat(draw.below(40_000))].concat()),
            2 => sent.extend_from_slice(b" \t"),
            _ => {}
        }
        sent.extend_from_slice(draw.pick(&[b"\r\n".as_slice(), b"\r\n", b"\r\n", b"\n"]));
        sent.extend_from_slice(piece);
        sent.extend_from_slice(draw.pick(&[b"\r\n".as_slice(), b"\r\n", b"\r\n", b"", b"\n"]));
    }
    let many = b"X: y\r\n".repeat(draw.below(2_000));
    sent.extend(match draw.below(6) {
        0 => [b"0\r\nAuthorization: Bearer x\r\nHost: evil.example\r\n".as_slice(), b"\r\n"].concat(),
        1 => [b"0\r\n".as_slice(), &many, b"\r\n"].concat(),
        2 => b"0\r\n".to_vec(),
        3 => Vec::new(),
        _ => b"0\r\n\r\n".to_vec(),
    });
    sent
}
