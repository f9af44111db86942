//! Who comes in, by the command line: the first key, keys, contexts, and what a wrong key is told.

use crate::support::{PATIENCE, Ran, Server, admin_key, command, lines, run, run_with, signal};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

fn started() -> (Server, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    (Server::serve(dir.path(), &[]), dir)
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// What `baton up` prints, once it is up and was told to stop.
fn banner(data_dir: &Path) -> String {
    let mut up = command(&["up", "--listen", "127.0.0.1:0", "--data-dir", data_dir.to_str().unwrap()]);
    let mut child = up.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let out = lines(child.stdout.take().unwrap());
    let mut banner = String::new();
    while !banner.contains("Ctrl-C") {
        banner.push_str(&out.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{banner}")));
        banner.push('\n');
    }
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    banner
}

#[test]
fn the_first_start_shows_the_first_key_once_and_keeps_it_for_its_owner() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let first = banner(&data);
    let key = admin_key(&data);
    assert!(key.starts_with("bk_") && key.len() == 100);
    assert!(first.contains(&key) && first.contains("shown this once"), "{first}");
    assert_eq!((mode(&data), mode(&data.join("admin.key"))), (0o700, 0o600));
    let second = banner(&data);
    assert!(!second.contains("bk_") && !second.contains("shown this once"), "{second}");
    assert_eq!(admin_key(&data), key);
}

#[test]
fn serve_says_where_the_first_key_is_and_never_what_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::serve(dir.path(), &["--log-filter", "trace"]);
    server.wait_for_line("admin.key");
    let key = server.key.clone();
    server.ask(&["keys", "me"]).ok();
    server.signal("TERM");
    let (status, seen) = server.ended();
    assert_eq!(status.code(), Some(0));
    let secret = key.rsplit('_').next().unwrap();
    assert!(seen.iter().all(|line| !line.contains(secret)));
}

#[test]
fn a_revoked_first_key_is_not_kept_and_not_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::serve(dir.path(), &[]);
    let other = server.ask(&["keys", "create", "other", "--role", "admin"]).ok().out;
    server.ask(&["keys", "revoke", &server.key, "--key", other.trim()]).ok();
    server.stop();
    let server = Server::serve(dir.path(), &[]);
    assert!(server.key.is_empty() && server.said("opens nothing"));
    server.ask(&["keys", "list"]).failed(1, "unauthenticated");
    server.ask(&["keys", "list", "--key", other.trim()]).ok();
    server.stop();
}

#[test]
fn keys_are_made_listed_rotated_and_revoked() {
    let (server, _dir) = started();
    let make = ["keys", "create", "ci", "--role", "operator", "--project", "shop", "--type", "echo"];
    let made = server.ask(&[&make[..], &["--expires", "2099-01-31T00:00:00Z"]].concat()).ok();
    let key = made.out.trim();
    assert!(key.starts_with("bk_") && made.out.lines().count() == 1, "only the key goes into a pipe: {made:?}");
    assert!(made.err.contains("ci (operator)") && made.err.contains("not shown again"), "{made:?}");
    let as_ci = |args: &[&str]| server.ask(&[args, &["--key", key]].concat());

    let me = as_ci(&["keys", "me", "--json"]).ok().json();
    assert_eq!((&me["key"]["role"], &me["key"]["projects"]), (&json!("operator"), &json!(["shop"])));
    let id = me["key"]["id"].as_str().unwrap().to_owned();
    assert!(as_ci(&["keys", "me"]).ok().out.contains("enqueue"));
    as_ci(&["jobs", "enqueue", "echo", "--project", "shop"]).ok();
    as_ci(&["jobs", "enqueue", "echo", "--project", "bank"]).failed(1, "out_of_scope");
    as_ci(&["jobs", "enqueue", "noop", "--project", "shop"]).failed(1, "out_of_scope");
    as_ci(&["keys", "list"]).failed(1, "forbidden");
    as_ci(&["audit"]).failed(1, "forbidden");

    let list = server.ask(&["keys", "list"]).ok().out;
    assert!(list.starts_with("KEY ") && list.contains(&id) && list.contains("until 2099-01-31T00:00:00"), "{list}");
    assert!(list.contains("first admin key") && !list.contains(key), "{list}");
    let list = server.ask(&["keys", "list", "--limit", "1", "--json"]).ok().json();
    assert_eq!((&list["keys"][0]["label"], list["keys"].as_array().unwrap().len()), (&json!("ci"), 1));
    let cursor = list["nextCursor"].as_str().unwrap();
    let rest = server.ask(&["keys", "list", "--cursor", cursor, "--json"]).ok().json();
    assert_eq!(rest["keys"][0]["label"], "first admin key");

    let rotated = server.ask(&["keys", "rotate", &id, "--grace", "1h", "--json"]).ok().json();
    let new = rotated["secret"].as_str().unwrap();
    assert!(new != key && rotated["id"] == id.as_str());
    as_ci(&["keys", "me"]).ok();
    server.ask(&["keys", "me", "--key", new]).ok();
    // Whoever only has the whole key names it by that.
    let newest = server.ask(&["keys", "rotate", new]).ok().out;
    as_ci(&["keys", "me"]).failed(1, "unauthenticated");
    server.ask(&["keys", "me", "--key", new]).failed(1, "unauthenticated");
    server.ask(&["keys", "me", "--key", newest.trim()]).ok();

    let revoked = server.ask(&["keys", "revoke", &id]).ok().out;
    assert!(revoked.contains("revoked 20"), "{revoked}");
    server.ask(&["keys", "me", "--key", newest.trim()]).failed(1, "unauthenticated");
    server.ask(&["keys", "rotate", &id]).failed(1, "key_dead");
    let own = server.ask(&["keys", "revoke", &server.key]);
    own.failed(1, "own_key");
    // The key that this machine comes in with is kept up to date.
    let first = server.ask(&["keys", "rotate", &server.key]).ok();
    assert!(first.err.contains("kept in admin.key"), "{first:?}");
    server.ask(&["keys", "me", "--key", &server.key]).failed(1, "unauthenticated");
    server.ask(&["keys", "me"]).ok();
    let gone = server.ask(&["keys", "revoke", "key_018bcfe568007001800000000000002a"]);
    assert!(gone.failed(1, "key_not_found").contains("hint: keys are listed by"), "{gone:?}");
    assert_eq!(server.ask(&["keys", "create", "x", "--role", "king"]).code, Some(2));
    assert_eq!(server.ask(&["keys", "revoke", "nonsense"]).code, Some(2));
    server.stop();
}

#[test]
fn an_org_of_its_own_sees_nothing_of_the_first() {
    let (server, _dir) = started();
    let made = server.ask(&["orgs", "create", "acme"]).ok();
    let key = made.out.trim();
    assert_eq!(server.ask(&["orgs", "list"]).ok().out, "acme\ndefault\n");
    assert_eq!(
        server.ask(&["orgs", "list", "--json"]).ok().json(),
        json!({ "orgs": ["acme", "default"], "nextCursor": null })
    );
    for taken in ["acme", "default", "baton"] {
        server.ask(&["orgs", "create", taken]).failed(1, "org_exists");
    }
    server.ask(&["jobs", "enqueue", "noop", "--project", "p", "--wait"]).ok();
    assert_eq!(server.ask(&["jobs", "list", "--project", "p", "--key", key]).ok().out, "no jobs\n");
    server.ask(&["orgs", "list", "--key", key]).failed(1, "forbidden");
    server.stop();
}

#[test]
fn a_wrong_key_is_told_so_and_never_repeated() {
    let (server, _dir) = started();
    let mut wrong = server.key.clone();
    let last = if wrong.ends_with('0') { "1" } else { "0" };
    wrong.replace_range(99.., last);
    let refused = server.ask(&["jobs", "list", "--project", "p", "--key", &wrong]);
    let err = refused.failed(1, "unauthenticated");
    assert!(err.contains("hint: give a key with --key") && !err.contains(&wrong[36..]), "{err}");
    let refused = server.ask(&["jobs", "list", "--project", "p", "--key", &wrong, "--json"]);
    let problem: Value = serde_json::from_str(&refused.err).unwrap();
    assert_eq!((refused.code, &problem["code"], &problem["status"]), (Some(1), &json!("unauthenticated"), &json!(401)));
    let short = server.ask(&["jobs", "list", "--project", "p", "--key", "bk_hunter2"]);
    assert!(!short.failed(2, "usage").contains("hunter2"), "{short:?}");
    // Nobody's home is known: then no key is found by itself.
    let mut list = std::process::Command::new(env!("CARGO_BIN_EXE_baton"));
    let bare = list.env_clear().args(["jobs", "list", "--project", "p", "--server", &server.url()]).output().unwrap();
    assert!(String::from_utf8_lossy(&bare.stderr).contains("[unauthenticated]"), "{bare:?}");
    server.stop();
}

#[test]
fn the_key_comes_from_a_flag_the_environment_or_the_directory() {
    let (server, dir) = started();
    let viewer = server.ask(&["keys", "create", "v", "--role", "viewer"]).ok().out;
    let (viewer, url) = (viewer.trim(), server.url());
    let role =
        |args: &[&str], env: &[(&str, &str)]| -> Ran { run_with(&[&["keys", "me", "--json"], args].concat(), "", env) };
    let is = |ran: Ran, expected: &str| assert_eq!(ran.ok().json()["key"]["role"], expected);
    is(role(&["--server", &url], &[]), "admin");
    is(role(&["--server", &url, "--key", viewer], &[]), "viewer");
    is(role(&[], &[("BATON_SERVER", &url), ("BATON_KEY", viewer)]), "viewer");
    is(role(&["--key", &server.key], &[("BATON_SERVER", &url), ("BATON_KEY", viewer)]), "admin");
    is(role(&["--server", &url], &[("BATON_SERVER", "http://127.0.0.1:1"), ("BATON_CONTEXT", "")]), "admin");
    is(role(&[], &[("BATON_SERVER", &url), ("BATON_KEY", "")]), "admin");
    // Found by the directory alone, without notes.
    let data = dir.path().to_str().unwrap();
    is(role(&["--server", &url], &[("XDG_STATE_HOME", "/nowhere"), ("BATON_DATA_DIR", data)]), "admin");
    server.stop();
}

#[test]
fn the_key_of_a_server_that_is_gone_is_shown_to_nobody() {
    let (server, dir) = started();
    let port = server.address.port();
    server.kill();
    assert!(dir.path().join("address").exists(), "nobody was there to take it away");
    // Somebody else takes the port.
    let stranger = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    let asked = std::thread::spawn(move || {
        let (mut stream, _) = stranger.accept().unwrap();
        let mut heard = [0; 4096];
        let n = std::io::Read::read(&mut stream, &mut heard).unwrap();
        String::from_utf8_lossy(&heard[..n]).into_owned()
    });
    let url = format!("http://127.0.0.1:{port}");
    let data = dir.path().to_str().unwrap();
    let mut child = command(&["keys", "me", "--server", &url]).env("BATON_DATA_DIR", data).spawn().unwrap();
    let heard = asked.join().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(heard.contains("GET /api/v1/me") && !heard.to_lowercase().contains("authorization"), "{heard}");
}

#[test]
fn servers_and_keys_are_kept_under_names() {
    let (server, dir) = started();
    let viewer = server.ask(&["keys", "create", "v", "--role", "viewer"]).ok().out;
    let (url, home) = (server.url(), dir.path().join("home"));
    let env = [("XDG_CONFIG_HOME", home.to_str().unwrap())];
    let contexts = |args: &[&str], input: &str| run_with(&[&["contexts"], args].concat(), input, &env);
    let role = |more: &[&str]| run_with(&[&["keys", "me", "--json"], more].concat(), "", &env);
    assert_eq!(contexts(&["list"], "").ok().out, "no contexts\n");
    contexts(&["add", "mine", "--server", &url], "").ok();
    contexts(&["add", "seen", "--server", &url, "--key-file", "-"], &viewer).ok();
    let file = home.join("baton/contexts.toml");
    assert_eq!(mode(&file), 0o600);
    let table = contexts(&["list"], "").ok().out;
    assert!(table.contains("*  mine") && !table.contains("bk_"), "{table}");
    assert_eq!(role(&[]).ok().json()["key"]["role"], "admin");
    assert_eq!(role(&["--context", "seen"]).ok().json()["key"]["role"], "viewer");
    let used = contexts(&["use", "seen", "--json"], "").ok().json();
    let seen = json!({ "name": "seen", "server": url, "hasKey": true, "current": true });
    assert_eq!((&used["contexts"][1], &used["contexts"][0]["current"]), (&seen, &json!(false)));
    assert_eq!(role(&[]).ok().json()["key"]["role"], "viewer");
    assert_eq!(role(&["--server", &url]).ok().json()["key"]["role"], "admin", "a named server is meant alone");
    contexts(&["remove", "seen"], "").ok();
    assert!(!std::fs::read_to_string(&file).unwrap().contains("bk_"), "its key is forgotten");

    let unknown = contexts(&["use", "seen"], "");
    assert!(unknown.failed(2, "usage").contains("baton contexts list"), "{unknown:?}");
    run_with(&["keys", "me", "--context", "seen"], "", &env).failed(2, "usage");
    contexts(&["add", "bad", "--server", "nonsense"], "").failed(2, "usage");
    contexts(&["add", "bad", "--server", &url, "--key", "bk_hunter2"], "").failed(2, "usage");
    assert_eq!(role(&["--context", "mine", "--server", &url]).code, Some(2));
    std::fs::write(&file, "current = \"hunter2").unwrap();
    let broken = run_with(&["keys", "me"], "", &env);
    assert!(!broken.failed(1, "file_unusable").contains("hunter2"), "{broken:?}");
    run(&["contexts", "add", "x", "--server", &url]).failed(1, "file_unusable");
    server.stop();
}

#[test]
fn every_shell_gets_its_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell]).ok().out;
        assert!(script.contains("decisions") && script.contains("dead-letters"), "{shell}");
    }
    assert_eq!(run(&["completions", "tcsh"]).code, Some(2));
    // What bash makes of it.
    let script = run(&["completions", "bash"]).ok().out;
    let ask = "COMP_WORDS=(baton jobs en); COMP_CWORD=2; _baton baton en jobs; echo \"${COMPREPLY[*]}\"";
    let bash = std::process::Command::new("bash").args(["-c", &format!("{script}\n{ask}")]).output();
    // Where there is no bash there is nothing to try.
    let Ok(bash) = bash else { return };
    assert_eq!(String::from_utf8_lossy(&bash.stdout).trim(), "enqueue", "{bash:?}");
}

/// What a browser would do with a link: hand the ticket in, and keep the cookie.
fn follow(server: &Server, link: &str) -> (u16, String) {
    let (at, ticket) = link.trim().split_once("/login#").unwrap_or_else(|| panic!("{link} is no link"));
    assert_eq!(at, server.url());
    let door = crate::support::Door { key: String::new(), ..server.door() };
    let body = json!({ "ticket": ticket }).to_string();
    let headers = format!("Content-Type: application/json\r\nOrigin: {at}\r\n");
    let (status, head, _) = crate::support::http(&door, "POST", "/api/v1/session", &headers, &body).unwrap();
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: "));
    (status, cookie.and_then(|cookie| cookie.split(';').next()).unwrap_or_default().to_owned())
}

#[test]
fn a_link_for_the_browser_is_printed_and_works_once() {
    let (server, _dir) = started();
    let said = server.ask(&["login"]).ok();
    assert_eq!(said.out.lines().count(), 1, "only the link goes into a pipe: {said:?}");
    assert!(said.err.contains("works once"), "{said:?}");
    let (status, cookie) = follow(&server, &said.out);
    assert_eq!(status, 201);
    let door = crate::support::Door { key: String::new(), ..server.door() };
    let (status, _, me) =
        crate::support::http(&door, "GET", "/api/v1/me", &format!("Cookie: {cookie}\r\n"), "").unwrap();
    assert!(status == 200 && me.contains("first admin key"), "{status} {me}");
    assert_eq!(follow(&server, &said.out).0, 410);

    let viewer = server.ask(&["keys", "create", "v", "--role", "viewer"]).ok().out;
    let link = server.ask(&["login", "--json", "--key", viewer.trim()]).ok().json();
    assert!(link["expiresAt"].is_string(), "{link}");
    assert_eq!(follow(&server, link["url"].as_str().unwrap()).0, 201);
    server.ask(&["login", "--key", &viewer.trim().replace('a', "b")]).failed(1, "unauthenticated");
    server.stop();
}

#[test]
fn up_prints_a_link_and_serve_prints_none() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    for _ in 0..2 {
        let banner = banner(&data);
        let links: Vec<_> = banner.lines().filter(|line| line.contains("/login#bt_")).collect();
        assert_eq!(links.len(), 1, "{banner}");
        assert!(banner.contains("baton login"), "{banner}");
    }
    let server = Server::serve(&data, &["--log-filter", "trace"]);
    assert!(!server.said("bt_"));
    server.stop();
}

#[test]
fn who_has_lost_the_admin_key_makes_another() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::serve(dir.path(), &[]);
    let lost = server.key.clone();
    server.stop();
    std::fs::remove_file(dir.path().join("admin.key")).unwrap();
    // Starting again makes none by itself: that would be a door for whoever can remove a file.
    let server = Server::serve(dir.path(), &[]);
    server.ask(&["keys", "me"]).failed(1, "unauthenticated");
    server.ask(&["keys", "me", "--key", &lost]).ok();
    server.stop();
    let server = Server::serve(dir.path(), &["--new-admin-key"]);
    let me = server.ask(&["keys", "me", "--json"]).ok().json();
    assert_eq!((&me["key"]["role"], &me["key"]["label"]), (&json!("admin"), &json!("another admin key")));
    server.ask(&["keys", "revoke", &lost]).ok();
    server.stop();
}
