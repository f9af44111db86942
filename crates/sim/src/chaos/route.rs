//! Requests whose head is right: to a route that there is, with something wrong about what is asked,
//! or to one that there is not.

use super::body::almost;
use super::draw::Draw;
use super::{Aim, Shout, Target, Then};
use std::fmt::Write as _;

/// Pieces of a path that are no name of anything.
const SEGMENTS: [&str; 16] = [
    "%00",
    "%ff%fe",
    "%zz",
    "%",
    "..%2f..%2fetc%2fpasswd",
    "..",
    "%E2%82%AC",
    "job_0",
    "job_018bcfe568007001800000000000002a",
    "dec_018bcfe568007001800000000000002a",
    "key_ffffffffffffffffffffffffffffffff",
    "whk_018BCFE568007001800000000000002A",
    "project:p",
    "%F0%9F%92%A9",
    "-",
    "99999999999999999999999999",
];

/// What a parameter may be said to be. None of them makes a request wait for long.
const VALUES: [&str; 22] = [
    "1",
    "0",
    "-1",
    "99999999999999999999",
    "1e3",
    "tail",
    "queued",
    "awaiting_tool",
    "canceled",
    "%00",
    "%ff%fe",
    "%zz",
    "c1ffffffffffffffff",
    "c10000000000000000",
    "j1",
    "s1c3bc2f61",
    "d1018bcfe568007001800000000000002a",
    ",,,",
    "a+b",
    "'",
    "%F0%9F%92%A9",
    "job_018bcfe568007001800000000000002a",
];

/// A whole request that says how long it is.
pub fn request(method: &str, path: &str, bearer: &str, body: &[u8]) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    if !bearer.is_empty() {
        let _ = write!(head, "Authorization: {bearer}\r\n");
    }
    if !body.is_empty() || ["POST", "PUT", "PATCH"].contains(&method) {
        let _ = write!(head, "Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    }
    head.push_str("\r\n");
    [head.as_bytes(), body].concat()
}

/// The path of a route, with values that exist and values that cannot.
pub fn path(aim: &Aim, target: &Target, draw: &mut Draw) -> String {
    let segments = target.path.split('/').map(|segment| {
        let Some(name) = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else { return segment };
        let known: Vec<_> = aim.known.iter().filter(|(given, _)| *given == name).collect();
        if known.is_empty() || draw.chance(1, 3) {
            return draw.pick(&SEGMENTS);
        }
        known[draw.below(known.len())].1.as_str()
    });
    segments.collect::<Vec<_>>().join("/")
}

fn query(target: &Target, draw: &mut Draw) -> String {
    let mut query = String::new();
    for n in 0..draw.below(4) {
        query.push(if n == 0 { '?' } else { '&' });
        match target.queries.get(draw.below(target.queries.len() + 1)) {
            Some(name) => query.push_str(name),
            None => query.push_str(draw.pick(&["", "%", "a[]", "limit", "key", "%C3%BC"])),
        }
        query.push_str(draw.pick(&["=", "=", "=", "", "=="]));
        query.push_str(draw.pick(&VALUES));
    }
    query
}

/// To this route, with something wrong about the path, the parameters or the body.
pub fn wrong(aim: &Aim, target: &Target, draw: &mut Draw) -> Shout {
    let mut path = path(aim, target, draw);
    if target.bodies.is_empty() || draw.chance(1, 6) {
        path.push_str(&query(target, draw));
    }
    let body = match target.method.as_str() {
        "GET" | "HEAD" | "DELETE" if draw.chance(5, 6) => String::new(),
        _ => almost(&target.bodies, draw).to_string(),
    };
    let bytes = request(&target.method, &path, &aim.bearer(), body.as_bytes());
    Shout { what: "a wrong request", bytes, then: Then::Listen }
}

/// From somebody who cannot say well who they are.
pub fn stranger(aim: &Aim, draw: &mut Draw) -> Shout {
    let target = aim.any(draw);
    let path = path(aim, target, draw);
    let key = &aim.key;
    let bearer = match draw.below(12) {
        0 => String::new(),
        1 => key.clone(),
        2 => format!("Basic {key}"),
        3 => format!("Bearer {key}{key}"),
        4 => format!("Bearer {}", &key[..draw.below(key.len())]),
        5 => format!("Bearer bk_{}_{}", "0".repeat(32), "f".repeat(64)),
        6 => format!("Bearer {}", "x".repeat(draw.below(8_000))),
        7 => format!("Bearer {key}\r\nAuthorization: Bearer {key}"),
        8 => format!("Bearer\t{key}"),
        9 => format!("Bearer {}", key.to_uppercase()),
        10 => "Bearer \u{fc}\u{1f4a9}".to_owned(),
        _ => format!("bEARER   {key}   "),
    };
    let body = almost(&target.bodies, draw).to_string();
    let body = if target.bodies.is_empty() { "" } else { &body };
    let bytes = request(&target.method, &path, &bearer, body.as_bytes());
    Shout { what: "a stranger", bytes, then: Then::Listen }
}

/// No request at all, or several where one was expected, or to what is nowhere.
pub fn noise(aim: &Aim, draw: &mut Draw) -> Shout {
    let bytes = match draw.below(6) {
        0 => draw.bytes(600),
        // TLS, and HTTP of another kind.
        1 => [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".as_slice(), &draw.bytes(300)].concat(),
        2 => [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &draw.bytes(100)].concat(),
        3 => {
            let mut path = String::from("/");
            for _ in 0..draw.below(200) {
                path.push_str(draw.pick(&["/", "a", ".", "%2f", "%", ";", "api", "v1", "jobs", "\\", "{", "}", "|"]));
            }
            request(draw.pick(&["GET", "POST", "BREW", "TRACE"]), &path, &aim.bearer(), b"")
        }
        4 => format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "y".repeat(draw.below(80_000))).into_bytes(),
        _ => {
            // Several in a row, the last of which may be cut off.
            let mut all = Vec::new();
            for _ in 0..=draw.below(8) {
                let target = aim.taker(draw);
                let one = request(
                    &target.method,
                    &target.path,
                    &aim.bearer(),
                    almost(&target.bodies, draw).to_string().as_bytes(),
                );
                let one = String::from_utf8_lossy(&one).replace("Connection: close\r\n", "");
                all.extend_from_slice(one.as_bytes());
            }
            all.truncate(all.len() - draw.below(20));
            all
        }
    };
    Shout { what: "noise", bytes, then: Then::HangUp { after_ms: patience(draw) } }
}

/// How long a caller waits before it hangs up: not at all, or long enough to hear most answers.
pub fn patience(draw: &mut Draw) -> u64 {
    if draw.chance(1, 3) { 0 } else { 30 }
}
