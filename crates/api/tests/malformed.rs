//! Hundreds of requests that no decent client sends: each gets a clean answer, none a 5xx, none
//! hangs, and the server is as well afterwards as before.
#![allow(clippy::unwrap_used, reason = "this is a test")]

mod support;

use baton_core::rng::Rng;
use baton_sim::seed::seed;
use serde_json::{Value, json};
use support::{Ask, JSON, Server};

/// Requests of each kind.
const ROUNDS: usize = 120;

struct Chaos(Rng);

impl Chaos {
    fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most + 1)).map(|_| self.0.next_u64() as u8).collect()
    }

    /// A value of any type, not too large.
    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 7 } else { 9 }) {
            0 => Value::Null,
            1 => json!(self.0.chance(1, 2)),
            2 => json!(self.0.next_u64()),
            3 => json!(-(self.0.next_u64() as i64 as f64) * 1e200),
            4 => json!(""),
            5 => json!(self.pick(&[
                "echo",
                "noop",
                "p",
                "\u{0}",
                "ü",
                "../..",
                "2026-01-01T00:00:00Z",
                "'; DROP TABLE job"
            ])),
            6 => json!("x".repeat(self.below(300))),
            7 => Value::Array((0..self.below(4)).map(|_| self.value(depth - 1)).collect()),
            _ => Value::Object((0..self.below(4)).map(|n| (format!("k{n}"), self.value(depth - 1))).collect()),
        }
    }

    /// A job that is right except for what was changed about it.
    fn job(&mut self) -> Value {
        let mut job = json!({ "type": "noop", "projectId": "p", "payload": { "a": [1, { "b": null }] } });
        for _ in 0..=self.below(3) {
            let field = self.pick(&[
                "type",
                "projectId",
                "payload",
                "priority",
                "sourceSessionId",
                "notBefore",
                "deadline",
                "messageId",
                "id",
                "",
            ]);
            let value = self.value(3);
            if let Value::Object(fields) = &mut job {
                if self.0.chance(1, 5) {
                    fields.remove(field);
                } else {
                    fields.insert(field.to_owned(), value);
                }
            }
        }
        job
    }

    /// A request to change something, right except for what was changed about it.
    fn change(&mut self) -> (&'static str, &'static str, Value) {
        let (method, path) = *self.pick(&[
            &("POST", "/api/v1/jobs/batch"),
            &("POST", "/api/v1/jobs/job_018bcfe568007001800000000000002a/cancel"),
            &("POST", "/api/v1/decisions/dec_018bcfe568007001800000000000002a/resolve"),
            &("POST", "/api/v1/jobs/job_018bcfe568007001800000000000002a/requeue"),
            &("POST", "/api/v1/dead-letters/requeue"),
            &("POST", "/api/v1/keys"),
            &("POST", "/api/v1/keys/key_018bcfe568007001800000000000002a/rotate"),
            &("POST", "/api/v1/orgs"),
            &("POST", "/api/v1/lanes/some%20lane/pause"),
            &("POST", "/api/v1/lanes/some%20lane/resume"),
            &("PUT", "/api/v1/projects/p/schedules/rarely"),
            &("POST", "/api/v1/projects/p/schedules/rarely/pause"),
            &("DELETE", "/api/v1/projects/p/schedules/rarely"),
        ]);
        let mut body = json!({});
        for _ in 0..self.below(4) {
            let field = self.pick(&[
                "jobs",
                "jobIds",
                "projectId",
                "type",
                "limit",
                "reason",
                "option",
                "note",
                "cron",
                "timeZone",
                "payload",
                "catchUp",
                "singleFlight",
                "label",
                "role",
                "projects",
                "expiresAt",
                "graceMs",
                "org",
            ]);
            body[field] = match self.below(4) {
                0 => json!([self.job(), self.value(2)]),
                1 => json!(self.pick(&["30 5 1 1 *", "UTC", "one", "noop", "job_018bcfe568007001800000000000002a"])),
                _ => self.value(3),
            };
        }
        (method, path, body)
    }

    /// Text that was JSON before it was damaged.
    fn damaged(&mut self) -> Vec<u8> {
        let mut text = self.job().to_string().into_bytes();
        for _ in 0..=self.below(4) {
            let at = self.below(text.len().max(1)).min(text.len());
            match self.below(6) {
                0 => text.truncate(at),
                1 => text.insert(at, self.0.next_u64() as u8),
                2 if at < text.len() => text[at] = self.0.next_u64() as u8,
                3 if at < text.len() => drop(text.remove(at)),
                4 => text
                    .splice(
                        at..at,
                        self.pick(&[b"\xff".as_slice(), b"\\u", b"1e999", b"[[[[", b"}}", b"\0"]).iter().copied(),
                    )
                    .for_each(drop),
                _ => text.splice(at..at, b"9".repeat(self.below(400))).for_each(drop),
            }
        }
        text
    }

    fn nested(&mut self) -> Vec<u8> {
        let depth = self.below(60_000);
        let (open, close) = if self.0.chance(1, 2) { ("[", "]") } else { ("{\"a\":", "}") };
        let mut text = String::from("{\"type\":\"noop\",\"projectId\":\"p\",\"payload\":{\"x\":");
        text.push_str(&open.repeat(depth));
        if self.0.chance(1, 2) {
            text.push('1');
            text.push_str(&close.repeat(depth));
            text.push_str("}}");
        }
        text.into_bytes()
    }

    /// A query that is partly right.
    fn path(&mut self) -> String {
        let base = self.pick(&[
            "/api/v1/events",
            "/api/projects/p/orchestrator/jobs",
            "/api/projects/%E2%82%AC/orchestrator/jobs",
            "/api/projects//orchestrator/jobs",
            "/api/v1/projects/p/jobs",
            "/api/v1/projects/%E2%82%AC/jobs",
            "/api/orchestrator/jobs/job_0",
            "/api/orchestrator/jobs/%00%ff",
            "/api/orchestrator/jobs/..%2f..%2fetc",
            "/api/v1/audit",
            "/api/v1/jobs/%00",
            "/api/v1/dead-letters",
            "/api/v1/lanes",
            "/api/v1/lanes/%E2%82%AC%2F..",
            "/api/v1/lanes/%00",
            "/api/v1/schedules",
            "/api/v1/decisions",
            "/api/v1/decisions/dec_0",
            "/api/v1/keys",
            "/api/v1/keys/%00",
            "/api/v1/orgs",
            "/api/v1/me",
            "/api/ws",
            "/api/v1/projects/p/schedules/%ff",
            "/healthz",
            "//",
            "/%",
        ]);
        let mut path = base.to_owned();
        for n in 0..self.below(4) {
            path.push(if n == 0 { '?' } else { '&' });
            path.push_str(self.pick(&[
                "after",
                "limit",
                "wait_ms",
                "state",
                "cursor",
                "projectId",
                "type",
                "",
                "%",
                "a[]",
            ]));
            path.push_str(self.pick(&["=", "", "=="]));
            let value = self.pick(&[
                "1",
                "0",
                "-1",
                "99999999999999999999",
                "tail",
                "queued",
                "awaiting_tool",
                "%00",
                "%ff%fe",
                "%zz",
                "c1ffffffffffffffff",
                "j1",
                "l100",
                "s1c3bc2f61",
                "d1018bcfe568007001800000000000002a",
                ",,,",
                "canceled",
                "a+b",
                "'",
                "%F0%9F%92%A9",
            ]);
            path.push_str(value);
        }
        path
    }

    /// A head that something is wrong with.
    fn head(&mut self, bearer: &str) -> Vec<u8> {
        let method = self.pick(&["GET", "POST", "get", "BREW", "", "G\0T", "PRI", "CONNECT"]);
        let path = self.pick(&["/healthz", "/api/v1/jobs", "*", "", "http://[::1", "/\u{7f}", "/a b", "//\\", "?"]);
        let version = self.pick(&["HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/0.9", "", "http/1.1", "HTTP/1.1\r"]);
        let mut head = format!("{method} {path} {version}\r\nConnection: close\r\n").into_bytes();
        if self.0.chance(1, 2) {
            head.extend_from_slice(format!("Authorization: {bearer}\r\n").as_bytes());
        }
        for _ in 0..self.below(6) {
            let line = self.pick(&[
                b"Host: localhost\r\n".as_slice(),
                b"Host: localhost\r\n",
                b"Host : localhost\r\n",
                b"Content-Type: application/json\r\n",
                b"Content-Length: 5\r\n",
                b"Content-Length: 7\r\n",
                b"Content-Length: -1\r\n",
                b"Content-Length: 99999999999999999999999\r\n",
                b"Transfer-Encoding: chunked\r\n",
                b"Transfer-Encoding: gzip, chunked\r\n",
                b"Expect: 100-continue\r\n",
                b"Upgrade: h2c\r\n",
                b"Idempotency-Key: a\r\n",
                b"Idempotency-Key: \xff\xfe\r\n",
                b"Origin: http://localhost\r\n",
                b"no colon\r\n",
                b" folded: x\r\n",
                b"A\0B: c\r\n",
                b": empty\r\n",
                b"X: \x01\r\n",
            ]);
            head.extend_from_slice(line);
        }
        match self.below(12) {
            0 => head.extend(b"X: ".iter().copied().chain(std::iter::repeat_n(b'x', 100_000)).chain(*b"\r\n")),
            1 => (0..300).for_each(|n| head.extend(format!("X-{n}: y\r\n").into_bytes())),
            2 => head.extend(self.bytes(40)),
            _ => {}
        }
        head.extend(b"\r\n");
        if self.0.chance(1, 2) {
            head.extend(self.pick(&[
                b"{}".as_slice(),
                b"5\r\nhello\r\n0\r\n\r\n",
                b"zz\r\n",
                b"ffffffffffffffff\r\n",
                b"{\"a\":1}",
            ]));
        }
        head
    }
}

/// What a decent server may say to an indecent client. A wrong job may turn out right by chance.
fn check(what: &str, sent: &[u8], status: u16) {
    let decent = (200..500).contains(&status);
    assert!(decent, "{what} was answered with {status}: {}", sent[..sent.len().min(2_000)].escape_ascii());
}

/// The end of the body may never come, and then the server waits for it as long as it should.
/// Closing our side says that it will not.
async fn shout(server: &Server, bytes: &[u8]) -> Option<u16> {
    use tokio::io::AsyncWriteExt as _;
    let talk = async {
        let mut stream = server.connect().await;
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        support::read(&mut stream).await.map(|reply| reply.status)
    };
    let Ok(status) = tokio::time::timeout(support::PATIENCE, talk).await else {
        panic!("no end to {}", bytes[..bytes.len().min(2_000)].escape_ascii());
    };
    status
}

on_both_databases!(nothing_that_is_sent_breaks_or_hangs_the_server);

async fn nothing_that_is_sent_breaks_or_hangs_the_server(server: &Server) {
    let mut chaos = Chaos(Rng::new(seed()));
    let bearer = format!("Bearer {}", server.admin);
    for _ in 0..ROUNDS {
        for (what, body) in [
            ("a wrong job", chaos.job().to_string().into_bytes()),
            ("a damaged job", chaos.damaged()),
            ("noise", chaos.bytes(200)),
        ] {
            let ask = Ask { method: "POST", path: "/api/v1/jobs", headers: &[JSON], body: &body };
            check(what, &body, server.send(ask).await.status);
        }
        let (method, path, body) = chaos.change();
        let body = body.to_string();
        let ask = Ask { method, path, headers: &[JSON], body: body.as_bytes() };
        check("a wrong change", format!("{method} {path} {body}").as_bytes(), server.send(ask).await.status);
        let path = chaos.path();
        let known = [("Authorization", bearer.as_str())];
        let reply = server.raw(&Ask { path: &path, headers: &known, ..Ask::default() }.bytes()).await;
        check("a path", path.as_bytes(), reply.map_or(400, |reply| reply.status));
        let head = chaos.head(&bearer);
        check("a head", &head, shout(server, &head).await.unwrap_or(400));
    }
    for _ in 0..ROUNDS / 10 {
        let body = chaos.nested();
        let ask = Ask { method: "POST", path: "/api/v1/jobs", headers: &[JSON], body: &body };
        check("a nested job", &body, server.send(ask).await.status);
    }
    assert_eq!(server.get("/readyz").await.status, 200);
    let job = server.enqueue(json!({ "type": "echo", "projectId": "after", "payload": { "message": 1 } })).await;
    server.until(job.id, "job.completed").await;
}
