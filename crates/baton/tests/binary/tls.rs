//! Over TLS, and from other machines: the real binary with a real certificate.

use crate::support::{Door, PATIENCE, Ran, Server, http, run, run_with};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;
use std::fs::Permissions;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// A directory with a certificate for this machine and its key in it.
struct Place {
    dir: TempDir,
    cert: PathBuf,
    key: PathBuf,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        let put = |name: &str, text: String| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let (cert, key) = (put("cert.pem", made.cert.pem()), put("key.pem", made.signing_key.serialize_pem()));
        Self { dir, cert, key }
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn serve(&self, listen: &str, more: &[&str]) -> Server {
        let tls = ["--tls-cert", self.cert.to_str().unwrap(), "--tls-key", self.key.to_str().unwrap()];
        Server::serve_on(listen, &self.data(), &[&tls[..], more].concat())
    }

    /// A command of somebody who may read the server's own key.
    fn ask(&self, args: &[&str], server: &str) -> Ran {
        let data = self.data();
        run_with(&[args, &["--server", server]].concat(), "", &[("BATON_DATA_DIR", data.to_str().unwrap())])
    }

    /// One request over a connection of its own; the status, if an answer came through.
    fn exchange(&self, address: SocketAddr, request: &[u8]) -> Option<u16> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&self.cert).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(baton_tools::provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let session = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut stream = StreamOwned::new(session, stream);
        // It may answer and close before it has read everything.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        Some(String::from_utf8(answer).unwrap().split(' ').nth(1)?.parse().unwrap())
    }
}

fn get(host: &str) -> Vec<u8> {
    format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").into_bytes()
}

#[test]
fn the_command_line_speaks_https_to_whom_it_trusts() {
    let place = Place::new();
    let server = place.serve("127.0.0.1:0", &[]);
    let url = format!("https://localhost:{}", server.address.port());
    let ca = place.cert.to_str().unwrap();
    let enqueue =
        ["jobs", "enqueue", "echo", "--project", "p", "--payload", r#"{"message":"hello"}"#, "--wait", "--json"];
    let done = place.ask(&[&enqueue[..], &["--ca-cert", ca]].concat(), &url).ok().json();
    assert_eq!(done["result"]["message"], "hello", "{done}");

    let stranger = place.ask(&["jobs", "list", "--project", "p"], &url);
    let said = stranger.failed(69, "server_unreachable");
    assert!(said.contains("certificate") && said.contains("--ca-cert"), "{said}");
    let other = Place::new();
    let other = other.cert.to_str().unwrap();
    place.ask(&["jobs", "list", "--project", "p", "--ca-cert", other], &url).failed(69, "server_unreachable");
    let missing = place.ask(&["jobs", "list", "--project", "p", "--ca-cert", "/nowhere/ca.pem"], &url);
    assert!(missing.failed(78, "certificate_unusable").contains("/nowhere/ca.pem"));
    server.stop();
}

#[test]
fn who_speaks_plainly_to_a_port_with_tls_is_told_so() {
    let place = Place::new();
    let server = place.serve("127.0.0.1:0", &[]);
    let (status, head, body) = http(&server.door(), "GET", "/healthz", "", "").unwrap();
    let problem: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, problem["code"].as_str()), (400, Some("https_needed")), "{head}");
    let ran = place.ask(&["jobs", "list", "--project", "p"], &server.url());
    assert!(ran.failed(1, "https_needed").contains("https://"));
    assert_eq!(place.exchange(server.address, &get("localhost")), Some(200), "and others are served");
    server.stop();
}

#[test]
fn a_connection_that_never_says_anything_does_not_keep_it_from_stopping() {
    let place = Place::new();
    let server = place.serve("127.0.0.1:0", &[]);
    let silent: Vec<_> = (0..8).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    assert_eq!(place.exchange(server.address, &get("localhost")), Some(200));
    server.stop();
    drop(silent);
}

#[test]
fn limits_hold_over_tls() {
    let place = Place::new();
    let server = place.serve("127.0.0.1:0", &[]);
    let key = std::fs::read_to_string(place.data().join("admin.key")).unwrap();
    let post = |more: &str, body: &str| {
        let head = "POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
        let auth = format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", key.trim());
        format!("{head}{auth}{more}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    };
    let job = r#"{"type":"noop","projectId":"p"}"#;
    for (request, expected) in [
        (post("", job), 201),
        (post(&"A: b\r\n".repeat(100), job), 431),
        (post(&format!("A: {}\r\n", "b".repeat(64 * 1024)), job), 431),
        (post("", &format!("{job}{}", " ".repeat(1024 * 1024))), 413),
    ] {
        let status = place.exchange(server.address, &request);
        // A connection that is closed on what was still to be read may take the answer with it.
        assert!(status == Some(expected) || (status.is_none() && expected >= 400), "{status:?} instead of {expected}");
    }
    server.stop();
}

#[test]
fn what_others_reach_needs_tls_or_somebody_who_says_otherwise() {
    let place = Place::new();
    let data = place.data();
    let refused = run(&["serve", "--listen", "0.0.0.0:0", "--data-dir", data.to_str().unwrap()]);
    let said = refused.failed(78, "listen_not_loopback");
    assert!(said.contains("--tls-cert") && said.contains("--insecure-plaintext"), "{said}");
    assert!(!data.exists(), "nothing was begun");

    let server = place.serve("0.0.0.0:0", &["--host-name", "baton.example,other.example"]);
    let near = SocketAddr::from(([127, 0, 0, 1], server.address.port()));
    for (host, expected) in
        [("baton.example", 200), ("Other.Example:443", 200), ("10.1.2.3", 200), ("localhost", 200), ("evil.com", 403)]
    {
        assert_eq!(place.exchange(near, &get(host)), Some(expected), "{host}");
    }
    server.stop();

    let server = Server::serve_on("0.0.0.0:0", &data, &["--insecure-plaintext"]);
    let near = SocketAddr::from(([127, 0, 0, 1], server.address.port()));
    let near = Door { address: near, ..server.door() };
    assert_eq!(http(&near, "GET", "/healthz", "", "").unwrap().0, 200);
    assert!(server.said("listening without TLS"), "and it is logged");
    server.stop();
}

#[test]
fn a_server_goes_by_the_names_it_was_given() {
    let place = Place::new();
    let config = place.dir.path().join("baton.toml");
    std::fs::write(&config, "host_names = [\"filed.example\"]\n").unwrap();
    let server = Server::serve(&place.data(), &["--config", config.to_str().unwrap()]);
    let ask = |host: &str, origin: &str| {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let origin = if origin.is_empty() { String::new() } else { format!("Origin: {origin}\r\n") };
        let head = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{origin}\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse::<u16>().unwrap()
    };
    assert_eq!(ask("filed.example", ""), 200);
    assert_eq!(ask("filed.example:80", "https://filed.example"), 200);
    assert_eq!(ask("localhost", ""), 200);
    assert_eq!(ask("evil.example", ""), 403);
    assert_eq!(ask("10.1.2.3", ""), 403, "nobody reaches it by that address");
    assert_eq!(ask("filed.example", "https://evil.example"), 403);
    server.stop();
}

#[test]
fn the_doctor_speaks_tls_to_a_server_that_does() {
    let place = Place::new();
    let server = place.serve("127.0.0.1:0", &[]);
    let (cert, data) = (place.cert.to_str().unwrap(), place.data());
    let doctor = |key: &str| {
        let args = ["doctor", "--json", "--listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap()];
        run(&[&args[..], &["--tls-cert", cert, "--tls-key", key]].concat())
    };
    std::fs::set_permissions(&place.key, Permissions::from_mode(0o600)).unwrap();
    let ran = doctor(place.key.to_str().unwrap()).ok();
    assert!(ran.out.contains("is ready") && ran.out.contains("is accepted as admin"), "{ran:?}");
    assert!(ran.out.contains("https://127.0.0.1:"), "{ran:?}");
    let other = Place::new();
    let broken = doctor(other.key.to_str().unwrap());
    assert!(broken.code == Some(1) && broken.out.contains("is not the key of"), "{broken:?}");
    std::fs::set_permissions(&place.key, Permissions::from_mode(0o644)).unwrap();
    let open = doctor(place.key.to_str().unwrap());
    assert!(open.code == Some(1) && open.out.contains("may be read by others"), "{open:?}");
    server.stop();
}

#[test]
fn a_certificate_that_cannot_be_used_is_named() {
    let (place, other) = (Place::new(), Place::new());
    let serve = |cert: &Path, key: &Path| {
        let (cert, key, data) = (cert.to_str().unwrap(), key.to_str().unwrap(), place.data());
        run(&[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--data-dir",
            data.to_str().unwrap(),
            "--tls-cert",
            cert,
            "--tls-key",
            key,
        ])
    };
    let missing = place.dir.path().join("missing.pem");
    assert!(serve(&missing, &place.key).failed(78, "certificate_unusable").contains("missing.pem"));
    assert!(serve(&place.key, &place.key).failed(78, "certificate_unusable").contains("key.pem"));
    assert!(serve(&place.cert, &other.key).failed(78, "certificate_unusable").contains("not the key of"));
    assert!(!place.data().exists(), "nothing was begun");
    let half = run(&["serve", "--listen", "127.0.0.1:0", "--tls-cert", place.cert.to_str().unwrap()]);
    assert!(half.failed(78, "config_invalid").contains("--tls-key"));
}
