//! Sockets: asked for wrongly, or well, and then spoken to in frames that are none.

use super::draw::Draw;
use super::{Aim, Shout, Then};
use std::fmt::Write as _;

/// Larger than any message that a server of listeners should take.
const LARGE: usize = 70_000;

pub fn garbage(aim: &Aim, draw: &mut Draw) -> Shout {
    let query = draw.pick(&["", "", "", "?after=tail", "?type=job.", "?projectId=p,p,p", "?after=%00", "?subject=x"]);
    let mut head = format!("GET /api/ws{query} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {}\r\n", aim.bearer());
    // Half of them are let in, so that there is somebody to hear the frames.
    if draw.chance(1, 2) {
        head.push_str("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n");
        head.push_str("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n");
    } else {
        let connection = draw.pick(&["Upgrade", "upgrade, close", "keep-alive", ""]);
        let version = draw.pick(&["13", "8", "0", "999999999999", "13, 13", ""]);
        let key = draw.pick(&[
            "",
            "x",
            "dGhlIHNhbXBsZSBub25jZQ==",
            "====",
            "\u{fc}",
            "dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Key: again",
        ]);
        let _ = write!(
            head,
            "Connection: {connection}\r\nUpgrade: {}\r\n",
            draw.pick(&["websocket", "WebSocket", "h2c", ""])
        );
        let _ = write!(head, "Sec-WebSocket-Version: {version}\r\nSec-WebSocket-Key: {key}\r\n");
    }
    if draw.chance(1, 4) {
        head.push_str(draw.pick(&[
            "Sec-WebSocket-Protocol: bearer, x, ,\r\n",
            "Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=99\r\n",
            "Origin: https://evil.example\r\n",
        ]));
    }
    head.push_str("\r\n");
    let frames: Vec<u8> = (0..=draw.below(4)).flat_map(|_| frame(draw)).collect();
    Shout { what: "a socket", bytes: head.into_bytes(), then: Then::Frames(frames) }
}

/// The first byte of a frame: its end, its reserved bits, its kind.
const END: u8 = 0x80;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const MASKED: u8 = 0x80;

fn frame(draw: &mut Draw) -> Vec<u8> {
    match draw.below(14) {
        // Right ones, in between.
        0 => masked(END | TEXT, b"hello"),
        1 => masked(END | PING, b"?"),
        // Not masked, as only servers may.
        2 => [&[END | TEXT, 5][..], b"hello"].concat(),
        3 => masked(END | TEXT, b"\xff\xfe\xed\xa0\x80"),
        // A text that breaks off within a letter.
        4 => [masked(TEXT, b"\xf0\x9f"), masked(END, b"\x92")].concat(),
        5 => masked(END | BINARY, &vec![0; draw.below(LARGE)]),
        // So many pieces that together they are too large.
        6 => (0..draw.below(200)).flat_map(|n| masked(if n == 0 { TEXT } else { 0 }, &[b'x'; 100])).collect(),
        // Going on with what was never begun, and beginning twice.
        7 => masked(END, b"more"),
        8 => [masked(TEXT, b"a"), masked(END | TEXT, b"b")].concat(),
        // Control frames that are too long, or in pieces.
        9 => masked(END | PING, &[b'p'; 126]),
        10 => masked(PING, b"p"),
        // A close with half a number, or with one that nobody may send.
        11 => masked(END | CLOSE, [&b"\x03"[..], b"\x03\xed", b"\xff\xff", b"\x03\xe8\xff"][draw.below(4)]),
        // It says more than it has: up to the largest number there is.
        12 => {
            let length = [u64::MAX, 1 << 63, 1 << 40, 70_000][draw.below(4)];
            [&[END | TEXT, MASKED | 127][..], &length.to_be_bytes(), &[1, 2, 3, 4], b"not so long"].concat()
        }
        // Reserved bits and kinds, and plain noise.
        _ if draw.chance(1, 2) => masked(0x70 | END | (draw.byte() & 0xf), b"x"),
        _ => draw.bytes(200),
    }
}

/// A frame with the shortest way to say how long it is.
fn masked(first: u8, body: &[u8]) -> Vec<u8> {
    const MASK: [u8; 4] = [7, 11, 13, 17];
    let mut frame = vec![first];
    match body.len() {
        n @ 0..126 => frame.push(MASKED | n as u8),
        n if n <= usize::from(u16::MAX) => {
            frame.push(MASKED | 126);
            frame.extend((n as u16).to_be_bytes());
        }
        n => {
            frame.push(MASKED | 127);
            frame.extend((n as u64).to_be_bytes());
        }
    }
    frame.extend(MASK);
    frame.extend(body.iter().enumerate().map(|(n, byte)| byte ^ MASK[n % 4]));
    frame
}
