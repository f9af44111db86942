//! Secrets stay where they belong: everything that lets somebody in is used in every way there is, and
//! then nothing of it is found in the logs, in the database, or in the history.

use crate::support::{Door, Schema, Server, get, http, run_with};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The files that are there to keep a secret.
const KEEPERS: [&str; 2] = ["admin.key", "seal.key"];

/// What must not be found, by what it is.
#[derive(Default)]
struct Canaries(Vec<(&'static str, Vec<u8>)>);

impl Canaries {
    /// The whole text, the part of it that is secret, and that part as the bytes it stands for.
    fn add(&mut self, what: &'static str, text: &str) {
        let secret = text.rsplit('_').next().unwrap();
        assert!(secret.len() >= 40, "{what} is too short to be looked for");
        self.0.push((what, text.as_bytes().to_vec()));
        self.0.push((what, secret.as_bytes().to_vec()));
        let hex = secret.bytes().all(|byte| byte.is_ascii_hexdigit()) && secret.len().is_multiple_of(2);
        if hex {
            let byte = |at: usize| u8::from_str_radix(&secret[at..at + 2], 16).unwrap();
            self.0.push((what, (0..secret.len()).step_by(2).map(byte).collect()));
        }
    }

    #[track_caller]
    fn not_in(&self, place: &str, bytes: &[u8]) {
        for (what, canary) in &self.0 {
            assert!(!contains(bytes, canary), "{what} stands in {place}");
        }
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    // Candidates by their first byte: windows over megabytes are slow without optimisation.
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == part[0]) {
        if rest[at..].starts_with(part) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let (dirs, mut all): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    all.extend(dirs.iter().flat_map(|dir| files(dir)));
    all
}

/// Everything on the disk but what keeps secrets; whether the log of the database was among it.
fn on_disk(dir: &Path, canaries: &Canaries, public: Option<&str>) -> bool {
    let (mut known, mut log) = (public.is_none(), false);
    for path in files(dir) {
        let name = path.file_name().unwrap().to_str().unwrap();
        if KEEPERS.contains(&name) {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        canaries.not_in(name, &bytes);
        known |= public.is_some_and(|public| contains(&bytes, public.as_bytes()));
        log |= name.ends_with("-wal") && !bytes.is_empty();
    }
    assert!(known, "the key's own name is found, so this looks in the right place");
    log
}

struct Client {
    door: Door,
}

impl Client {
    fn post(&self, path: &str, more: &str, body: &Value) -> (u16, String, Value) {
        let headers = format!("Content-Type: application/json\r\n{more}");
        let (status, head, body) = http(&self.door, "POST", path, &headers, &body.to_string()).unwrap();
        (status, head, serde_json::from_str(&body).unwrap_or_default())
    }

    /// Who comes in with headers alone.
    fn stranger(&self) -> Self {
        Self { door: Door { key: String::new(), ..self.door.clone() } }
    }

    fn me(&self, headers: &str) -> u16 {
        http(&self.stranger().door, "GET", "/api/v1/me", headers, "").unwrap().0
    }
}

#[test]
fn no_secret_is_found_where_it_does_not_belong_on_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::serve(dir.path(), &["--log-filter", "trace"]);
    let (server, canaries, id) = sung(server, dir.path());
    assert!(on_disk(dir.path(), &canaries, Some(&id)), "what was written lately stands in the database's log");
    not_logged(server, &canaries, &id);
    on_disk(dir.path(), &canaries, Some(&id));
}

#[test]
fn no_secret_is_found_where_it_does_not_belong_on_postgresql() {
    let Some(schema) = Schema::create() else { return };
    let dir = tempfile::tempdir().unwrap();
    let server = Server::serve(dir.path(), &["--log-filter", "trace", "--database", schema.url()]);
    let (server, canaries, id) = sung(server, dir.path());
    not_logged(server, &canaries, &id);
    on_disk(dir.path(), &canaries, None);
    let dump = schema.dump();
    canaries.not_in("the database", dump.as_bytes());
    assert!(dump.contains(&id), "the key's own name is found, so this looks in the right place");
    schema.remove();
}

/// Everything that lets somebody in, used in every way there is; and the id of a key.
fn sung(server: Server, dir: &Path) -> (Server, Canaries, String) {
    let admin = Client { door: server.door() };
    let mut canaries = Canaries::default();
    canaries.add("the first key", &server.key);

    // Keys: made under an idempotency key, said again, rotated, used in time and too late.
    let new = json!({ "label": "canary", "role": "operator" });
    let (_, _, made) = admin.post("/api/v1/keys", "Idempotency-Key: canary-1\r\n", &new);
    let (id, first) = (made["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
    canaries.add("a key", first);
    let (status, _, again) = admin.post("/api/v1/keys", "Idempotency-Key: canary-1\r\n", &new);
    assert_eq!((status, &again["secret"]), (200, &Value::Null));
    let rotate = format!("/api/v1/keys/{id}/rotate");
    let (_, _, rotated) = admin.post(&rotate, "Idempotency-Key: canary-2\r\n", &json!({ "graceMs": 60_000 }));
    let second = rotated["secret"].as_str().unwrap().to_owned();
    canaries.add("a rotated key", &second);
    for key in [first, &second] {
        assert_eq!(admin.me(&format!("Authorization: Bearer {key}\r\n")), 200);
    }
    let (status, _, founded) = admin.post("/api/v1/orgs", "", &json!({ "org": "canary" }));
    assert_eq!(status, 201, "{founded}");
    canaries.add("an org's first key", founded["key"]["secret"].as_str().unwrap());

    // Keys that are wrong, or stand where no key belongs.
    let mut wrong = first.to_owned();
    wrong.replace_range(98.., if wrong.ends_with("00") { "11" } else { "00" });
    canaries.add("a wrong key", &wrong);
    for header in [
        format!("Authorization: Bearer {wrong}\r\n"),
        format!("Authorization: Basic {second}\r\n"),
        format!("Authorization: {second}\r\n"),
        format!("Authorization: Bearer {second}\r\nAuthorization: Bearer {second}\r\n"),
    ] {
        assert_eq!(admin.me(&header), 401);
    }
    for path in [format!("/api/v1/me?key={second}"), format!("/api/v1/keys/{second}"), format!("/{second}")] {
        let (status, _, _) = http(&admin.door, "GET", &path, "", "").unwrap();
        assert!([400, 404].contains(&status), "{path}");
    }
    let (status, _, _) = admin.post(&format!("/api/v1/keys/{second}/revoke"), "", &json!({}));
    assert_eq!(status, 404);
    admin.post("/api/v1/keys", "", &json!({ "label": "x", "role": second }));
    assert_eq!(admin.post("/api/v1/keys", "", &json!({ second.as_str(): "x" })).0, 400);

    // Tickets and sessions: used, used again, changed.
    let ticket = || {
        let (status, _, link) = admin.post("/api/v1/login-links", "Idempotency-Key: canary-3\r\n", &json!({}));
        assert_eq!(status, 201, "{link}");
        link["path"].as_str().unwrap().strip_prefix("/login#").unwrap().to_owned()
    };
    let (used, unused) = (ticket(), ticket());
    canaries.add("a ticket", &used);
    canaries.add("an unused ticket", &unused);
    let (_, head, _) = admin.stranger().post("/api/v1/session", "", &json!({ "ticket": used }));
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: baton_session=")).unwrap();
    let cookie = cookie.split(';').next().unwrap();
    canaries.add("a session", cookie);
    assert_eq!(admin.me(&format!("Cookie: baton_session={cookie}\r\n")), 200);
    assert_eq!(admin.me(&format!("Cookie: baton_session={cookie}0\r\n")), 401);
    assert_eq!(admin.stranger().post("/api/v1/session", "", &json!({ "ticket": used })).0, 410);
    let origin = format!("Cookie: baton_session={cookie}\r\nOrigin: http://localhost\r\n");
    let job = json!({ "type": "echo", "projectId": "p", "payload": { "message": "hello" } });
    assert_eq!(admin.stranger().post("/api/v1/jobs", &origin, &job).0, 201);

    // Webhooks are signed with secrets that are shown once too.
    let hook = json!({ "label": "canary", "url": "https://hooks.invalid/x" });
    let (status, _, hook) = admin.post("/api/v1/webhooks", "Idempotency-Key: canary-4\r\n", &hook);
    assert_eq!(status, 201, "{hook}");
    canaries.add("a webhook's secret", hook["secret"].as_str().unwrap());

    // And the command line, which finds the key by itself, or is given one.
    let third = server.ask(&["keys", "rotate", &second]).ok().out;
    canaries.add("a key that the command line rotated", third.trim());
    server.ask(&["jobs", "list", "--project", "p", "--key", &wrong]).failed(1, "unauthenticated");
    run_with(&["keys", "me", "--server", &server.url()], "", &[("BATON_KEY", &wrong)]).failed(1, "unauthenticated");
    let link = server.ask(&["login"]).ok().out;
    canaries.add("a ticket of the command line", link.trim().rsplit('#').next().unwrap());
    // And out again.
    let leave = format!("Cookie: baton_session={cookie}\r\nOrigin: http://localhost\r\n");
    assert_eq!(http(&admin.stranger().door, "DELETE", "/api/v1/session", &leave, "").unwrap().0, 204);
    assert_eq!(admin.me(&format!("Cookie: baton_session={cookie}\r\n")), 401);
    let doctor = server.ask(&["doctor", "--data-dir", dir.to_str().unwrap(), "--listen", "127.0.0.1:0", "--json"]);
    canaries.not_in("what the doctor says", doctor.out.as_bytes());

    let mut after = String::new();
    loop {
        let page: Value = get(&admin.door, &format!("/api/v1/events?limit=1000{after}"));
        canaries.not_in("the history", page.to_string().as_bytes());
        if page["events"].as_array().unwrap().is_empty() {
            break;
        }
        after = format!("&after={}", page["next"].as_str().unwrap());
    }
    for path in ["/api/v1/keys", "/api/v1/webhooks", "/api/v1/me", "/metrics", "/openapi.json"] {
        let (_, head, body) = http(&admin.door, "GET", path, "", "").unwrap();
        canaries.not_in(path, format!("{head}{body}").as_bytes());
    }
    (server, canaries, id.to_owned())
}

/// It ends, and nothing of it is in what it said.
fn not_logged(server: Server, canaries: &Canaries, id: &str) {
    server.signal("TERM");
    let (status, logged) = server.ended();
    assert_eq!(status.code(), Some(0));
    let logged = logged.join("\n");
    for line in logged.lines() {
        // With its line, and without the secret in it.
        canaries.not_in(&format!("the log: {}", line.split("bk_").next().unwrap_or_default()), line.as_bytes());
    }
    for part in ["\"level\":\"TRACE\"", "\"level\":\"DEBUG\"", "/api/v1/session", id] {
        assert!(logged.contains(part), "{part} is not in the log, so it says little");
    }
}

#[test]
fn the_canary_sings() {
    let mut canaries = Canaries::default();
    let secret = "0123456789abcdef".repeat(4);
    canaries.add("a key", &format!("bk_{}_{secret}", "1".repeat(32)));
    let raw: Vec<u8> = (0..4).flat_map(|_| [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]).collect();
    for found in [secret.as_bytes(), &raw, &[b"x".as_slice(), &raw, b"y"].concat()] {
        let caught = std::panic::catch_unwind(|| canaries.not_in("here", found));
        assert!(caught.is_err(), "{}", found.escape_ascii());
    }
    canaries.not_in("here", &raw[1..]);
}
