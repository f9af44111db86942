//! Requests that are refused before any job is looked at.

use crate::support::{Ask, Database, JSON, Server, read};
use baton_api::limits;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

const JOBS: &str = "/api/v1/jobs";

async fn on_sqlite(test: impl AsyncFnOnce(&Server)) {
    crate::support::run(Database::Sqlite, test).await;
}

fn noop() -> Vec<u8> {
    json!({ "type": "noop", "projectId": "p" }).to_string().into_bytes()
}

#[tokio::test]
async fn only_this_machine_may_ask() {
    on_sqlite(async |server| {
        let ask =
            async |headers: &[(&str, &str)]| server.send(Ask { path: "/healthz", headers, ..Ask::default() }).await;
        for host in ["localhost", "localhost:1", "127.0.0.1:22866", "[::1]:80"] {
            assert_eq!(ask(&[("Host", host)]).await.status, 200, "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "0.0.0.0", "192.168.0.1:22866", "localhost.", ""] {
            ask(&[("Host", host)]).await.refused(403, "forbidden_host");
        }
        ask(&[("Host", "localhost"), ("Host", "evil.example")]).await.refused(403, "forbidden_host");
        ask(&[("Origin", "https://evil.example")]).await.refused(403, "forbidden_origin");
        ask(&[("Origin", "null")]).await.refused(403, "forbidden_origin");
        assert_eq!(ask(&[("Origin", "http://localhost:5173")]).await.status, 200);
        // What is not there is refused to strangers as well: they learn nothing.
        let stranger = Ask { path: "/nowhere", headers: &[("Host", "evil.example")], ..Ask::default() };
        server.send(stranger).await.refused(403, "forbidden_host");
    })
    .await;
}

#[tokio::test]
async fn a_request_without_a_host_is_refused_in_either_version() {
    on_sqlite(async |server| {
        for head in ["GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", "GET /healthz HTTP/1.0\r\n\r\n"] {
            server.raw(head.as_bytes()).await.unwrap().refused(403, "forbidden_host");
        }
        let absolute = "GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        server.raw(absolute.as_bytes()).await.unwrap().refused(403, "forbidden_host");
        let plain = "GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n";
        assert_eq!(server.raw(plain.as_bytes()).await.unwrap().status, 200);
    })
    .await;
}

#[tokio::test]
async fn what_does_not_exist_says_so_with_what_does() {
    on_sqlite(async |server| {
        let detail = server.get("/api/v2/jobs").await.refused(404, "not_found");
        assert!(detail.contains("/api/v2/jobs"), "{detail}");
        server.get("/api/v1/jobs/").await.refused(404, "not_found");
        let cases = [
            ("GET", JOBS, "POST"),
            ("DELETE", JOBS, "POST"),
            ("POST", "/healthz", "GET,HEAD"),
            ("PUT", "/api/v1/events", "GET,HEAD"),
            ("OPTIONS", JOBS, "POST"),
            ("BREW", "/metrics", "GET,HEAD"),
        ];
        for (method, path, allow) in cases {
            let reply = server.send(Ask { method, path, headers: &[JSON], ..Ask::default() }).await;
            reply.refused(405, "method_not_allowed");
            assert_eq!(reply.header("allow"), Some(allow), "{method} {path}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_body_must_say_that_it_is_json() {
    on_sqlite(async |server| {
        let body = noop();
        let post = async |path, headers: &[(&str, &str)]| {
            server.send(Ask { method: "POST", path, headers, body: &body }).await
        };
        for bad in ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16", ""] {
            post(JOBS, &[("Content-Type", bad)]).await.refused(415, "unsupported_media_type");
        }
        post(JOBS, &[]).await.refused(415, "unsupported_media_type");
        post(JOBS, &[JSON, JSON]).await.refused(415, "unsupported_media_type");
        // Also where no body is needed: a page could send such a request without asking first.
        let wake = format!("{JOBS}/job_018bcfe568007001800000000000002a/wake");
        server.send(Ask { method: "POST", path: &wake, ..Ask::default() }).await.refused(415, "unsupported_media_type");
        assert_eq!(post(JOBS, &[("Content-Type", "application/json;charset=UTF-8")]).await.status, 201);
    })
    .await;
}

#[tokio::test]
async fn a_body_is_read_up_to_its_limit_however_it_is_sent() {
    on_sqlite(async |server| {
        let limit = limits::BODY_BYTES;
        let fits = format!("{}{}", json!({ "type": "noop", "projectId": "p" }), " ".repeat(limit));
        let fits = &fits.as_bytes()[..limit];
        let ask = |body| Ask { method: "POST", path: JOBS, headers: &[JSON], body };
        assert_eq!(server.send(ask(fits)).await.status, 201);
        // Announced: refused before it is sent.
        let head = format!(
            "POST {JOBS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            server.admin,
            limit + 1
        );
        server.raw(head.as_bytes()).await.unwrap().refused(413, "body_too_large");
        // Not announced: refused when it gets there.
        let mut chunked = format!(
            "POST {JOBS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n{:x}\r\n",
            server.admin,
            limit + 1
        )
        .into_bytes();
        chunked.extend(vec![b' '; limit + 1]);
        chunked.extend(b"\r\n0\r\n\r\n");
        server.raw(&chunked).await.unwrap().refused(413, "body_too_large");
    })
    .await;
}

#[tokio::test]
async fn what_is_not_json_is_told_from_what_is_not_a_job() {
    on_sqlite(async |server| {
        let ask = async |body: &[u8]| server.send(Ask { method: "POST", path: JOBS, headers: &[JSON], body }).await;
        let deep = [b"{\"payload\":".as_slice(), &vec![b'['; 500_000]].concat();
        let closed = [b"{\"payload\":{\"a\":".as_slice(), &[b'['; 5_000], &[b']'; 5_000], b"}}"].concat();
        for bad in [
            b"".as_slice(),
            b"{",
            b"{\"type\":\"echo\",\"projectId\":\"p\"}}",
            b"{\"type\":\"echo\",\"projectId\":\"p\",\"payload\":{\"n\":1e400}}",
            b"{\"type\":\"\xff\xfe\",\"projectId\":\"p\"}",
            b"\xef\xbb\xbf{\"type\":\"echo\",\"projectId\":\"p\"}",
            &deep,
            &closed,
        ] {
            ask(bad).await.refused(400, "invalid_json");
        }
        for bad in [b"{}".as_slice(), b"[]", b"null", b"\"echo\"", b"{\"type\":\"echo\",\"type\":\"echo\"}"] {
            ask(bad).await.refused(400, "invalid_request");
        }
    })
    .await;
}

/// Time stands still until there is nothing left to do, and then jumps to the next timer.
async fn with_jumping_time(test: impl AsyncFnOnce(&Server)) {
    on_sqlite(async |server| {
        assert_eq!(server.get("/api/v1/me").await.status, 200);
        tokio::time::pause();
        test(server).await;
        tokio::time::resume();
    })
    .await;
}

#[tokio::test]
async fn a_body_that_never_comes_is_given_up() {
    with_jumping_time(async |server| {
        let head = format!(
            "POST {JOBS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
            server.admin
        );
        let reply = loop {
            let mut stream = server.connect().await;
            stream.write_all(head.as_bytes()).await.unwrap();
            let reply = read(&mut stream).await.unwrap();
            // Looking up the key may take longer than time that jumps; once it is known it is known.
            if reply.status != 503 {
                break reply;
            }
        };
        let detail = reply.refused(408, "request_timeout");
        assert!(detail.contains("10 s"), "{detail}");
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_closed() {
    with_jumping_time(async |server| {
        for start in ["", "GET /healthz HT", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"] {
            let mut stream = server.connect().await;
            stream.write_all(start.as_bytes()).await.unwrap();
            assert!(read(&mut stream).await.is_none_or(|reply| reply.status == 408), "{start:?}");
        }
        // One that was answered and then says nothing more, too.
        let mut stream = server.connect().await;
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        assert_eq!(read(&mut stream).await.unwrap().status, 200);
    })
    .await;
}

#[tokio::test]
async fn every_answer_carries_an_id_and_is_not_to_be_kept() {
    on_sqlite(async |server| {
        let mut ids = std::collections::BTreeSet::new();
        for path in ["/healthz", "/nowhere", "/api/v1/events", "/metrics", "/docs/errors"] {
            let reply = server.get(path).await;
            assert!(ids.insert(reply.header("x-request-id").unwrap().to_owned()), "{reply:?}");
            assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
            assert_eq!(reply.header("cache-control"), Some("no-store"));
            assert!(reply.header("content-security-policy").is_some());
            assert!(reply.header("access-control-allow-origin").is_none());
        }
    })
    .await;
}

#[tokio::test]
async fn the_page_that_a_problem_points_to_explains_its_code() {
    on_sqlite(async |server| {
        let problem: Value = server.get("/nowhere").await.parse();
        let (page, anchor) = problem["type"].as_str().unwrap().split_once('#').unwrap();
        let page = server.get(page).await;
        assert_eq!(page.status, 200);
        assert!(page.body.contains(&format!("<h3 id=\"{anchor}\">")));
    })
    .await;
}

#[tokio::test]
async fn stopping_ends_waits_and_finishes_what_was_asked() {
    let server = Server::start(Database::Sqlite).await.unwrap();
    let mut idle = server.connect().await;
    let mut waiting = server.connect().await;
    let ask = format!(
        "GET /api/v1/events?after=tail&wait_ms=30000 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
        server.admin
    );
    waiting.write_all(ask.as_bytes()).await.unwrap();
    // Answered on another connection, so the wait has been accepted before.
    assert_eq!(server.get("/healthz").await.status, 200);
    let address = server.address;
    let stop = server.stop();
    let talk = async {
        let reply = read(&mut waiting).await;
        assert!(reply.is_none_or(|reply| reply.status == 200));
        assert!(read(&mut idle).await.is_none());
    };
    tokio::time::timeout(crate::support::PATIENCE, async { tokio::join!(stop, talk) }).await.unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nobody listens any more");
}
