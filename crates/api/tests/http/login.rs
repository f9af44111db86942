//! Coming in with a browser: links, tickets, sessions, and who may use them from where.

use crate::support::{Ask, JSON, Reply, SESSIONS, Server};
use baton_core::access::session::Sessions;
use baton_core::{Micros, OrgId};
use baton_wire::{Job, LoggedIn, LoginLink, MadeKey, Me, Token};
use serde_json::{Value, json};

on_both_databases!(
    a_link_lets_a_browser_in_once,
    a_session_ends_with_its_key_and_its_time,
    only_pages_of_this_server_act_with_a_session,
    a_key_goes_before_a_session,
    a_session_opens_no_other,
    the_page_needs_nothing_but_its_script,
    leaving_ends_the_session,
);

async fn ticket(server: &Server, key: &str) -> String {
    let ask = Ask { method: "POST", path: "/api/v1/login-links", headers: &[JSON], body: b"" };
    let reply = server.send_as(key, ask).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let link: LoginLink = reply.parse();
    link.path.strip_prefix("/login#").unwrap().to_owned()
}

async fn hand_in(server: &Server, ticket: &str, headers: &[(&str, &str)]) -> Reply {
    let body = json!({ "ticket": ticket }).to_string();
    let headers = [&[JSON], headers].concat();
    server.send_as("", Ask { method: "POST", path: "/api/v1/session", headers: &headers, body: body.as_bytes() }).await
}

/// The pair that a browser sends back.
fn cookie(reply: &Reply) -> String {
    assert_eq!(reply.status, 201, "{reply:?}");
    reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

async fn session(server: &Server, key: &str) -> String {
    cookie(&hand_in(server, &ticket(server, key).await, &[]).await)
}

async fn get(server: &Server, cookie: &str, path: &str) -> Reply {
    server.send_as("", Ask { path, headers: &[("Cookie", cookie)], ..Ask::default() }).await
}

async fn enqueue(server: &Server, headers: &[(&str, &str)]) -> Reply {
    let body = json!({ "type": "noop", "projectId": "p" }).to_string();
    let headers = [&[JSON], headers].concat();
    server.send_as("", Ask { method: "POST", path: "/api/v1/jobs", headers: &headers, body: body.as_bytes() }).await
}

async fn make(server: &Server, role: &str) -> MadeKey {
    server.post("/api/v1/keys", &json!({ "label": "browser", "role": role })).await.parse()
}

async fn a_link_lets_a_browser_in_once(server: &Server) {
    let made = make(server, "viewer").await;
    let secret = made.secret.unwrap();
    let ticket = ticket(server, &secret).await;
    assert!(ticket.len() >= 3 + 192 / 4, "{ticket}");
    let reply = hand_in(server, &ticket, &[]).await;
    let set = reply.header("set-cookie").unwrap();
    for part in ["; Path=/", "; Max-Age=43200", "; HttpOnly", "; SameSite=Strict"] {
        assert!(set.contains(part), "{set}");
    }
    assert!(!set.contains("Secure"), "it would not come back over plain HTTP: {set}");
    let told: LoggedIn = reply.parse();
    assert_eq!((told.org, told.key.id), (OrgId::default(), made.key.id));
    assert!(!reply.body.contains("bs_") && !reply.body.contains("bk_"), "scripts see neither: {reply:?}");

    let cookie = cookie(&reply);
    let me: Me = get(server, &format!("theme=dark; {cookie}"), "/api/v1/me").await.ok();
    assert_eq!(me.key.id, made.key.id);
    get(server, &cookie, "/api/v1/keys").await.refused(403, "forbidden");
    let reply = get(server, &cookie, "/api/v1/me").await;
    assert!(reply.header("set-cookie").is_none(), "{reply:?}");

    hand_in(server, &ticket, &[]).await.refused(410, "ticket_gone");
    for bad in ["", "nonsense", &secret, &format!("bt_{}", "0".repeat(64)), &ticket[..60]] {
        hand_in(server, bad, &[]).await.refused(410, "ticket_gone");
    }
    server.post("/api/v1/session", &json!({ "ticket": 5 })).await.refused(400, "invalid_request");
    // Behind something that speaks TLS the page says so.
    let secure = self::ticket(server, &server.admin).await;
    let page = [("Origin", "https://localhost"), ("Host", "localhost")];
    let reply = hand_in(server, &secure, &page).await;
    assert!(reply.header("set-cookie").unwrap().ends_with("; Secure"), "{reply:?}");
    // A page from elsewhere hands nothing in.
    let ticket = self::ticket(server, &server.admin).await;
    let foreign = hand_in(server, &ticket, &[("Origin", "https://evil.example")]).await;
    foreign.refused(403, "forbidden_origin");
    assert!(foreign.header("set-cookie").is_none());
}

async fn a_session_ends_with_its_key_and_its_time(server: &Server) {
    let over = async |cookie: &str| get(server, cookie, "/api/v1/me").await.refused(401, "unauthenticated");
    let made = make(server, "operator").await;
    let (id, secret) = (made.key.id, made.secret.unwrap());
    let cookie = session(server, &secret).await;
    let unused = ticket(server, &secret).await;
    // Another secret, the old one being accepted for a while: the session goes on.
    let rotated = server.post(&format!("/api/v1/keys/{id}/rotate"), &json!({ "graceMs": 60_000 })).await;
    let next = rotated.parse::<MadeKey>().secret.unwrap();
    get(server, &cookie, "/api/v1/me").await.ok::<Me>();
    let newer = session(server, &next).await;
    // And another, from now on.
    server.post(&format!("/api/v1/keys/{id}/rotate"), &json!({})).await.ok::<MadeKey>();
    over(&cookie).await;
    over(&newer).await;
    hand_in(server, &unused, &[]).await.refused(410, "ticket_gone");

    let made = make(server, "operator").await;
    let cookie = session(server, made.secret.as_ref().unwrap()).await;
    let unused = ticket(server, made.secret.as_ref().unwrap()).await;
    server.post(&format!("/api/v1/keys/{}/revoke", made.key.id), &json!({})).await.ok::<Value>();
    let told = over(&cookie).await;
    assert!(told.contains("baton login"), "{told}");
    hand_in(server, &unused, &[]).await.refused(410, "ticket_gone");

    // What somebody made up, changed, or opened too long ago.
    let admin: Token = server.admin.parse().unwrap();
    let opened = |secret: [u8; 32], at: Micros| {
        format!("baton_session={}", Sessions::new(secret).open(admin.id, &admin.proof(), at).reveal())
    };
    let now = server.engine.store().clock_now();
    get(server, &opened(SESSIONS, now), "/api/v1/me").await.ok::<Me>();
    over(&opened([0; 32], now)).await;
    over(&opened(SESSIONS, Micros(now.0 - 12 * 3_600 * 1_000_000))).await;
    let good = opened(SESSIONS, now);
    let mut changed = good.clone().into_bytes();
    let last = changed.len() - 1;
    changed[last] = if changed[last] == b'0' { b'1' } else { b'0' };
    over(&String::from_utf8(changed).unwrap()).await;
    over("baton_session=").await;
    over(&format!("{good}; {good}")).await;
}

async fn only_pages_of_this_server_act_with_a_session(server: &Server) {
    let cookie = session(server, &server.admin).await;
    let host = server.address.to_string();
    let (own, other) = (format!("http://{host}"), "http://127.0.0.1:5173".to_owned());
    let from = |page: &[(&'static str, &str)]| -> Vec<(String, String)> {
        let always = [("Cookie", cookie.as_str()), ("Host", host.as_str())];
        always.iter().chain(page).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let post = async |page: &[(&'static str, &str)]| {
        let headers = from(page);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        enqueue(server, &headers).await
    };
    assert_eq!(post(&[("Origin", &own)]).await.status, 201);
    assert_eq!(post(&[("Sec-Fetch-Site", "same-origin")]).await.status, 201);
    // A page of another program on this machine is no foreign page, but not this server's either.
    for page in [
        &[][..],
        &[("Origin", other.as_str())],
        &[("Origin", "http://localhost")],
        &[("Origin", "null")],
        &[("Sec-Fetch-Site", "same-site")],
        &[("Sec-Fetch-Site", "same-origin"), ("Origin", other.as_str())],
    ] {
        post(page).await.refused(403, "forbidden_origin");
    }
    // It could read from a socket, though not from anything else.
    let upgrade = [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Origin", other.as_str())];
    let headers = from(&upgrade);
    let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let socket = server.send_as("", Ask { path: "/api/ws", headers: &headers, ..Ask::default() }).await;
    socket.refused(403, "forbidden_origin");
    // With a key nobody asks for a page.
    assert_eq!(server.post("/api/v1/jobs", &json!({ "type": "noop", "projectId": "p" })).await.status, 201);
}

async fn a_key_goes_before_a_session(server: &Server) {
    let viewer = make(server, "viewer").await.secret.unwrap();
    let (admin, host) = (session(server, &server.admin).await, server.address.to_string());
    let ask = async |key: &str, cookie: &str| {
        let headers = [("Cookie", cookie), ("Host", host.as_str())];
        server.send_as(key, Ask { path: "/api/v1/me", headers: &headers, ..Ask::default() }).await
    };
    let me: Me = ask(&viewer, &admin).await.ok();
    assert_eq!(me.key.role.as_str(), "viewer");
    ask(&viewer, "baton_session=nonsense").await.ok::<Me>();
    let mut wrong = server.admin.clone();
    wrong.replace_range(99.., if wrong.ends_with('0') { "1" } else { "0" });
    ask(&wrong, &admin).await.refused(401, "unauthenticated");
    // What is done with a session is done by its key.
    let origin = format!("http://{host}");
    let done = enqueue(server, &[("Cookie", &admin), ("Host", &host), ("Origin", &origin)]).await;
    assert_eq!(done.status, 201, "{done:?}");
    let job: Job = done.parse();
    let events = server.events_until(|event| event.subject == job.id.to_string()).await;
    let me: Me = server.get("/api/v1/me").await.ok();
    assert!(events.last().unwrap().actor.ends_with(&me.key.id.to_string()), "{events:?}");
}

async fn a_session_opens_no_other(server: &Server) {
    let cookie = session(server, &server.admin).await;
    let (host, origin) = (server.address.to_string(), format!("http://{}", server.address));
    let headers = [JSON, ("Cookie", cookie.as_str()), ("Host", &host), ("Origin", &origin)];
    let ask = Ask { method: "POST", path: "/api/v1/login-links", headers: &headers, body: b"" };
    server.send_as("", ask).await.refused(403, "forbidden");
}

async fn the_page_needs_nothing_but_its_script(server: &Server) {
    let open = async |path| server.send_as("", Ask { path, ..Ask::default() }).await;
    let page = open("/login").await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'; script-src 'self'; ") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    assert!(page.body.contains("<script src=\"/login.js\" defer></script>") && page.body.contains("baton login"));
    assert!(
        !page.body.contains(" style=") && !page.body.contains(" onclick="),
        "the policy forbids what stands inside"
    );
    let script = open("/login.js").await;
    assert_eq!((script.status, script.header("content-type")), (200, Some("text/javascript; charset=utf-8")));
    assert!(script.body.contains("history.replaceState"), "the ticket leaves the address bar");
}

async fn leaving_ends_the_session(server: &Server) {
    let (cookie, other) = (session(server, &server.admin).await, session(server, &server.admin).await);
    let page = [("Origin", "http://localhost"), ("Host", "localhost"), ("Cookie", cookie.as_str())];
    let leave = async |headers: &[(&str, &str)]| {
        server.send_as("", Ask { method: "DELETE", path: "/api/v1/session", headers, body: b"" }).await
    };
    leave(&[("Cookie", &cookie)]).await.refused(403, "forbidden_origin");
    get(server, &cookie, "/api/v1/me").await.ok::<Me>();
    // Twice, and without a session: whatever became of it, the browser forgets it.
    for headers in [&page[..], &page, &page[..2], &[("Cookie", "baton_session=x")]] {
        let left = leave(headers).await;
        assert_eq!(left.status, 204, "{left:?}");
        let set = left.header("set-cookie").unwrap();
        assert!(set.starts_with("baton_session=; Path=/; Max-Age=0;"), "{set}");
    }
    get(server, &cookie, "/api/v1/me").await.refused(401, "unauthenticated");
    get(server, &other, "/api/v1/me").await.ok::<Me>();
}
