//! What cannot be listened to is refused before anything else is said.

use crate::live::ears::{BOTH, By, Call, Ear, plain};
use crate::support::{Ask, Reply, Server};

on_both_databases!(
    a_bad_cursor_or_filter_is_a_problem_and_no_socket,
    a_stranger_hears_nothing,
    a_page_from_elsewhere_opens_no_socket,
    a_plain_request_is_told_what_this_route_speaks,
);

async fn refused(by: By, server: &Server, call: Call<'_>) -> Reply {
    match Ear::open(by, server, call).await {
        Ok(_) => panic!("{by:?} {}: was let in", call.query),
        Err(reply) => reply,
    }
}

async fn a_bad_cursor_or_filter_is_a_problem_and_no_socket(server: &Server) {
    let many = format!("type={}", vec!["job."; 51].join(","));
    let cases = [
        ("after=now", "invalid_cursor"),
        ("after=", "invalid_cursor"),
        ("after=c17fffffffffffffff", "invalid_cursor"),
        ("after=tail&after=tail", "invalid_request"),
        ("projectId=a%20b", "invalid_request"),
        ("projectId=", "invalid_request"),
        ("threadId=%C3%BC", "invalid_request"),
        ("threadId=,", "invalid_request"),
        ("subject=job_1", "invalid_request"),
        ("type=moon.full", "invalid_request"),
        ("type=job", "invalid_request"),
        (many.as_str(), "invalid_request"),
        // A secret has no place in an address: it would be logged on its way.
        ("key=bk_1", "invalid_request"),
        ("token=bk_1", "invalid_request"),
        ("wait_ms=1", "invalid_request"),
    ];
    for by in BOTH {
        for (query, code) in cases {
            refused(by, server, Call::new(&server.admin, query)).await.refused(400, code);
        }
    }
    for back in ["x", "", "c17fffffffffffffff", "\u{fc}"] {
        let call = Call { back: Some(back), ..Call::new(&server.admin, "after=tail") };
        refused(By::Stream, server, call).await.refused(400, "invalid_cursor");
    }
}

async fn a_stranger_hears_nothing(server: &Server) {
    let unknown = format!("bk_{}_{}", "1".repeat(32), "2".repeat(64));
    for by in BOTH {
        for key in [unknown.as_str(), "x"] {
            refused(by, server, Call::new(key, "")).await.refused(401, "unauthenticated");
        }
    }
}

fn upgrade<'a>(bearer: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut headers = vec![
        ("Authorization", bearer),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    headers.extend(more);
    headers
}

async fn a_page_from_elsewhere_opens_no_socket(server: &Server) {
    let bearer = format!("Bearer {}", server.admin);
    let headers = upgrade(&bearer, &[("Origin", "https://evil.example")]);
    let bytes = Ask { path: "/api/ws", headers: &headers, ..Ask::default() }.bytes();
    plain(server, &bytes).await.refused(403, "forbidden_origin");
}

async fn a_plain_request_is_told_what_this_route_speaks(server: &Server) {
    let reply = server.get("/api/ws").await;
    reply.refused(426, "upgrade_required");
    assert_eq!(reply.header("upgrade"), Some("websocket"));
    // What else is wrong with it comes first.
    server.get("/api/ws?type=moon.full").await.refused(400, "invalid_request");
    server.get("/api/ws?after=x").await.refused(400, "invalid_cursor");
}
