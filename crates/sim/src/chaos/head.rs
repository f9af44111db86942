//! Heads that something is wrong with.

use super::body::almost;
use super::draw::Draw;
use super::route::patience;
use super::{Aim, Shout, Then};

const METHODS: [&str; 12] =
    ["GET", "POST", "PUT", "DELETE", "get", "BREW", "", "G\0T", "PRI", "CONNECT", "HEAD", "OPTIONS"];
const VERSIONS: [&str; 9] =
    ["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/0.9", "", "http/1.1", "HTTP/1.1\r"];
const ADDRESSES: [&str; 9] =
    ["*", "", "http://[::1", "/\u{7f}", "/a b", "//\\", "?", "http://evil.example/", "localhost:80"];

const LINES: [&[u8]; 44] = [
    b"Host: localhost\r\n",
    b"Host: localhost\r\n",
    b"Host : localhost\r\n",
    b"Host: evil.example\r\n",
    b"Host: localhost, localhost\r\n",
    b"Content-Type: application/json\r\n",
    b"Content-Type: application/json; charset=\xff\r\n",
    b"Content-Length: 5\r\n",
    b"Content-Length: 7\r\n",
    b"Content-Length: -1\r\n",
    b"Content-Length: +5\r\n",
    b"Content-Length: 5, 5\r\n",
    b"Content-Length: 0x5\r\n",
    b"Content-Length: 18446744073709551616\r\n",
    b"Content-Length: 99999999999999999999999\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n",
    b"Transfer-Encoding: chunked, chunked\r\n",
    b"Transfer-Encoding: identity\r\n",
    b"Transfer-Encoding: \x0bchunked\r\n",
    b"Transfer-Encoding : chunked\r\n",
    b"Expect: 100-continue\r\n",
    b"Expect: 200-ok\r\n",
    b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n",
    b"Connection: keep-alive, close, close\r\n",
    b"Connection: Authorization\r\n",
    b"TE: trailers\r\nTrailer: Authorization\r\n",
    b"Idempotency-Key: a\r\n",
    b"Idempotency-Key: \xff\xfe\r\n",
    b"Idempotency-Key: \r\n",
    b"Last-Event-ID: \xff\r\n",
    b"Origin: http://localhost\r\n",
    b"Origin: null\r\n",
    b"Cookie: ;;;=; \xff=1\r\n",
    b"X-Request-Id: \x80\r\n",
    b"X-Forwarded-Host: evil.example\r\n",
    b"Accept-Encoding: gzip;q=99999\r\n",
    b"no colon\r\n",
    b"Folded: one\r\n two\r\n",
    b" folded: at once\r\n",
    b"A\0B: c\r\n",
    b": empty\r\n",
    b"X: \x01\r\n",
    b"Bare: line feed\n",
];

pub fn abused(aim: &Aim, draw: &mut Draw) -> Shout {
    let target = aim.any(draw);
    let method = if draw.chance(1, 2) { target.method.as_str() } else { draw.pick(&METHODS) };
    let path = if draw.chance(2, 3) { target.path.replace(['{', '}'], "") } else { draw.pick(&ADDRESSES).to_owned() };
    let mut head = format!("{method} {path} {}\r\n", draw.pick(&VERSIONS)).into_bytes();
    if draw.chance(2, 3) {
        head.extend_from_slice(b"Host: localhost\r\n");
    }
    if draw.chance(2, 3) {
        head.extend_from_slice(format!("Authorization: {}\r\n", aim.bearer()).as_bytes());
    }
    for _ in 0..draw.below(6) {
        head.extend_from_slice(draw.pick(&LINES));
    }
    match draw.below(14) {
        0 => huge(&mut head, b"X", draw.below(100_000)),
        1 => huge(&mut head, b"Authorization", draw.below(100_000)),
        2 => huge(&mut head, b"Idempotency-Key", draw.below(2_000)),
        3 => (0..draw.below(300)).for_each(|n| head.extend(format!("X-{n}: y\r\n").into_bytes())),
        4 => (0..draw.below(120)).for_each(|_| head.extend_from_slice(b"Same: again\r\n")),
        5 => head.extend(draw.bytes(60)),
        6 => head.extend([&b"N".repeat(draw.below(70_000))[..], b": v\r\n"].concat()),
        _ => {}
    }
    head.extend_from_slice(draw.pick(&[b"\r\n".as_slice(), b"\r\n", b"\r\n", b"\n", b"\r\r\n", b""]));
    if draw.chance(1, 2) {
        head.extend_from_slice(almost(&target.bodies, draw).to_string().as_bytes());
    }
    Shout { what: "an abused head", bytes: head, then: Then::HangUp { after_ms: patience(draw) } }
}

fn huge(head: &mut Vec<u8>, name: &[u8], length: usize) {
    head.extend_from_slice(name);
    head.extend_from_slice(b": ");
    head.extend(std::iter::repeat_n(b'x', length));
    head.extend_from_slice(b"\r\n");
}
