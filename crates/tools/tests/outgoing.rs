//! The client against a real server, whatever it answers.

mod support;

use baton_tools::{Allow, Excess, Headers, Limits, Outgoing, Policy, Request, Trust};
use http::{Method, StatusCode};
use support::{Reply, Server, certificate, get, soon};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Secret: hunter2\r\n\r\nhello";

fn ok() -> Reply {
    Reply::Text(OK.to_owned())
}

#[tokio::test]
async fn loopback_is_refused_unless_it_is_allowed_by_name() {
    let mut server = Server::start(ok()).await;
    let strict = Outgoing::new(Policy { allow: Allow::nobody(), ..server.policy() }).unwrap();
    let port = server.port;
    for host in
        ["localhost", "LOCALHOST.", "127.0.0.1", "127.1", "2130706433", "[::ffff:127.0.0.1]", "[::1]", "0.0.0.0"]
    {
        let error = strict.send(get(format!("http://{host}:{port}/"))).await.unwrap_err();
        assert_eq!(error.code(), "address_refused", "{host}: {error}");
    }
    assert!(server.heard.try_recv().is_err(), "nothing was sent");

    let answer = server.outgoing().send(get(server.url("/hook?x=1"))).await.unwrap();
    assert_eq!((answer.status, &answer.body[..], answer.cut), (StatusCode::OK, &b"hello"[..], false));
    assert_eq!(answer.headers.get("x-secret"), Some("hunter2"));
    let (_, heard) = server.heard.recv().await.unwrap();
    assert!(heard.starts_with("GET /hook?x=1 HTTP/1.1\r\n"), "{heard}");
    assert!(heard.contains(concat!("user-agent: baton/", env!("CARGO_PKG_VERSION"), "\r\n")), "{heard}");
    assert!(!heard.contains("referer") && !heard.contains("cookie") && !heard.contains("encoding"), "{heard}");
}

#[tokio::test]
async fn a_name_is_allowed_with_its_port_and_without_its_address() {
    let server = Server::start(ok()).await;
    let (port, outgoing) = (server.port, server.outgoing());
    let error = outgoing.send(get(format!("http://127.0.0.1:{port}/"))).await.unwrap_err();
    assert_eq!(error.code(), "address_refused", "the name is allowed, not what it stands for");
    let error = outgoing.send(get("http://localhost:1/".to_owned())).await.unwrap_err();
    assert_eq!(error.code(), "address_refused", "another port");
    outgoing.send(get(format!("http://LocalHost.:{port}/"))).await.unwrap();

    let literal = Allow::parse([format!("127.0.0.1:{port}").as_str()]).unwrap();
    let literal = Outgoing::new(Policy { allow: literal, ..server.policy() }).unwrap();
    literal.send(get(format!("http://127.1:{port}/"))).await.unwrap();
    let error = literal.send(get(server.url("/"))).await.unwrap_err();
    assert_eq!(error.code(), "address_refused");
}

#[tokio::test]
async fn what_is_sent_arrives_and_connections_are_kept() {
    let mut server = Server::start(ok()).await;
    let outgoing = server.outgoing();
    for _ in 0..2 {
        let headers = Headers::new().with("x-signature".parse().unwrap(), "v1,abc".parse().unwrap());
        let request = Request { headers, body: "{\"a\":1}".into(), ..Request::new(Method::POST, server.url("/")) };
        outgoing.send(request).await.unwrap();
        let (connection, heard) = server.heard.recv().await.unwrap();
        assert_eq!(connection, 0);
        assert!(heard.contains("x-signature: v1,abc\r\n") && heard.ends_with("\r\n\r\n{\"a\":1}"), "{heard}");
    }
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_nothing_more() {
    let mut server = Server::start(Reply::Text(
        "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n".to_owned(),
    ))
    .await;
    let outgoing = server.outgoing();
    for _ in 0..2 {
        let answer = outgoing.send(get(server.url("/"))).await.unwrap();
        assert_eq!((answer.status, answer.headers.get("location")), (StatusCode::FOUND, Some("/elsewhere")));
        let (_, heard) = server.heard.recv().await.unwrap();
        assert!(heard.starts_with("GET / ") && !heard.contains("cookie"), "{heard}");
    }
    assert!(server.heard.try_recv().is_err(), "nobody went elsewhere");
}

#[tokio::test]
async fn an_endless_body_is_cut_or_refused() {
    let server = Server::start(Reply::Endless("HTTP/1.1 200 OK\r\n\r\n", "and so on ")).await;
    let limits = Limits { answer_bytes: 10_000, ..Limits::INHERITED };
    let cut = Request { limits, excess: Excess::Cut, ..get(server.url("/")) };
    let answer = server.outgoing().send(cut).await.unwrap();
    assert_eq!((answer.body.len(), answer.cut), (10_000, true));
    assert!(answer.body.starts_with(b"and so on and so on"));
    let error = server.outgoing().send(Request { limits, ..get(server.url("/")) }).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient(), error.may_have_arrived()), ("response_too_large", false, true));
}

#[tokio::test]
async fn a_body_of_exactly_the_limit_is_whole() {
    let server = Server::start(ok()).await;
    let request = |answer_bytes| Request {
        limits: Limits { answer_bytes, ..Limits::INHERITED },
        excess: Excess::Cut,
        ..get(server.url("/"))
    };
    let whole = server.outgoing().send(request(5)).await.unwrap();
    assert_eq!((&whole.body[..], whole.cut), (&b"hello"[..], false));
    let cut = server.outgoing().send(request(4)).await.unwrap();
    assert_eq!((&cut.body[..], cut.cut), (&b"hell"[..], true));
    let none = server.outgoing().send(request(0)).await.unwrap();
    assert_eq!((&none.body[..], none.cut), (&b""[..], true));
}

#[tokio::test]
async fn who_does_not_answer_in_time_is_given_up() {
    for said in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"] {
        let server = Server::start(Reply::Stall(said)).await;
        let error = server.outgoing().send(Request { limits: soon(), ..get(server.url("/")) }).await.unwrap_err();
        let kind = (error.code(), error.is_transient(), error.may_have_arrived());
        assert_eq!(kind, ("timed_out", true, true), "{said:?}: {error}");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_or_is_no_http_is_none() {
    for said in [
        "",
        "HTTP/1.1 200",
        "SSH-2.0-OpenSSH\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nhello",
    ] {
        let server = Server::start(Reply::Break(said)).await;
        let error = server.outgoing().send(get(server.url("/"))).await.unwrap_err();
        let kind = (error.code(), error.is_transient(), error.may_have_arrived());
        assert_eq!(kind, ("response_broken", true, true), "{said:?}: {error}");
    }
}

#[tokio::test]
async fn nobody_listening_may_change() {
    let server = Server::start(ok()).await;
    let policy = server.policy();
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let allow = Allow::parse(["localhost"]).unwrap();
    let outgoing = Outgoing::new(Policy { allow, ..policy }).unwrap();
    let error = outgoing.send(get(format!("http://localhost:{free}/"))).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient(), error.may_have_arrived()), ("connect_failed", true, false));
}

#[tokio::test]
async fn a_head_without_end_is_refused() {
    let many = "A: b\r\n".repeat(101);
    let large = format!("A: {}\r\n", "x".repeat(70 * 1024));
    for headers in [many, large] {
        let server = Server::start(Reply::Text(format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{headers}\r\n"))).await;
        let error = server.outgoing().send(get(server.url("/"))).await.unwrap_err();
        assert_eq!(error.code(), "response_too_large", "{error}");
    }
    let server = Server::start(Reply::Endless("HTTP/1.1 200 OK\r\n", "X-Much: and so on\r\n")).await;
    let error = server.outgoing().send(get(server.url("/"))).await.unwrap_err();
    assert_eq!(error.code(), "response_too_large", "{error}");
    let server = Server::start(ok()).await;
    for limits in
        [Limits { answer_headers: 1, ..Limits::INHERITED }, Limits { answer_head_bytes: 10, ..Limits::INHERITED }]
    {
        let error = server.outgoing().send(Request { limits, ..get(server.url("/")) }).await.unwrap_err();
        assert_eq!(error.code(), "response_too_large", "a call may lower it: {error}");
    }
}

#[tokio::test]
async fn over_tls_only_those_are_believed_who_are_trusted() {
    let (acceptor, pem) = certificate("localhost");
    let server = Server::start_tls(ok(), acceptor).await;
    let url = format!("https://localhost:{}/", server.port);
    let trusting = Policy { trust: Trust::nobody().and(pem.as_bytes()).unwrap(), https_only: true, ..server.policy() };
    let outgoing = Outgoing::new(trusting.clone()).unwrap();
    assert_eq!(outgoing.send(get(url.clone())).await.unwrap().body, "hello");
    assert_eq!(outgoing.send(get(server.url("/"))).await.unwrap_err().code(), "invalid_url", "not in the clear");

    let error = server.outgoing().send(get(url)).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient(), error.may_have_arrived()), ("tls_failed", false, false));

    let (acceptor, pem) = certificate("elsewhere.example");
    let other = Server::start_tls(ok(), acceptor).await;
    let trust = Trust::nobody().and(pem.as_bytes()).unwrap();
    let outgoing = Outgoing::new(Policy { trust, ..other.policy() }).unwrap();
    let error = outgoing.send(get(format!("https://localhost:{}/", other.port))).await.unwrap_err();
    assert_eq!(error.code(), "tls_failed", "another name's certificate");
}

#[tokio::test]
async fn secrets_show_up_nowhere() {
    let server = Server::start(ok()).await;
    let request = || {
        let headers = Headers::new().with(http::header::AUTHORIZATION, "Bearer hunter2".parse().unwrap());
        Request { headers, body: "hunter2".into(), ..Request::new(Method::POST, server.url("/hunter2?key=hunter2")) }
    };
    let answer = server.outgoing().send(request()).await.unwrap();
    let broken = Server::start(Reply::Break("")).await;
    let url = broken.url("/hunter2?key=hunter2");
    let error = broken.outgoing().send(Request { url, ..request() }).await.unwrap_err();
    let shown = format!("{:?} {answer:?} {error} {error:?}", request());
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("authorization"), "{shown}");
}

/// The environment belongs to a process, so the test runs itself in one of its own.
#[tokio::test]
async fn proxies_of_the_environment_are_ignored() {
    const INSIDE: &str = "BATON_TEST_INSIDE";
    if std::env::var_os(INSIDE).is_some() {
        let server = Server::start(ok()).await;
        assert_eq!(server.outgoing().send(get(server.url("/"))).await.unwrap().body, "hello");
        return;
    }
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "proxies_of_the_environment_are_ignored", "--test-threads=1"]).env(INSIDE, "1");
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        // Nobody listens there.
        again.env(name, "http://127.0.0.1:9");
    }
    for name in ["NO_PROXY", "no_proxy", "REQUEST_METHOD"] {
        again.env_remove(name);
    }
    let output = again.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "it did run");
}
