//! Certificates from files: the server's own, and whom a client believes.

use crate::config::TlsFiles;
use crate::fault::Fault;
use baton_tools::{Trust, provider};
use reqwest::Url;
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ServerConfig};
use std::path::Path;
use std::sync::Arc;

/// The server's side. Files are read once: a new certificate needs a restart.
pub fn server(files: &TlsFiles) -> Result<Arc<ServerConfig>, Fault> {
    let pem = read(&files.cert)?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|_| unusable(&files.cert, "a certificate in it is not understood"))?;
    if chain.is_empty() {
        return Err(unusable(&files.cert, "there is no certificate in it; it must be PEM"));
    }
    let key = PrivateKeyDer::from_pem_slice(&read(&files.key)?).map_err(|error| match error {
        PemError::NoItemsFound => {
            unusable(&files.key, "there is no private key in it; it must be PEM, without a password")
        }
        _ => unusable(&files.key, "the private key in it is not understood"),
    })?;
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| Fault::new("start_failed", format!("no TLS: {error}")))?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key).map_err(|error| {
        let why = match error {
            rustls::Error::InconsistentKeys(_) => format!("it is not the key of {}", files.cert.display()),
            error => format!("with {} it cannot be used: {error}", files.cert.display()),
        };
        unusable(&files.key, &why)
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// A client's side: this machine's authorities are read only if somebody has to be believed.
pub fn client(server: &Url, ca_cert: Option<&Path>) -> Result<ClientConfig, Fault> {
    let trust = match (server.scheme(), ca_cert.filter(|path| !path.as_os_str().is_empty())) {
        ("https", Some(path)) => {
            Trust::system().and(&read(path)?).map_err(|error| unusable(path, &error.to_string()))?
        }
        ("https", None) => Trust::system(),
        _ => Trust::nobody(),
    };
    trust.client().map_err(|error| Fault::new("start_failed", format!("no TLS: {error}")))
}

fn read(path: &Path) -> Result<Vec<u8>, Fault> {
    std::fs::read(path).map_err(|error| unusable(path, &format!("it cannot be read: {error}")))
}

/// Its words are not repeated: one of these files holds a private key.
fn unusable(path: &Path, why: &str) -> Fault {
    Fault::new("certificate_unusable", format!("{}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::code;
    use crate::fault::Exit;

    struct Files {
        dir: tempfile::TempDir,
    }

    impl Files {
        fn put(&self, name: &str, text: &str) -> std::path::PathBuf {
            let path = self.dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        }
    }

    fn made() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_name_and_without_its_words() {
        let files = Files { dir: tempfile::tempdir().unwrap() };
        let ((cert, key), (_, other)) = (made(), made());
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let no_key = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n";
        for (cert_text, key_text, culprit, why) in [
            (Some(""), Some(key.as_str()), "cert.pem", "no certificate"),
            (Some(key.as_str()), Some(key.as_str()), "cert.pem", "no certificate"),
            (Some(broken), Some(key.as_str()), "cert.pem", "cannot be used"),
            (None, Some(key.as_str()), "cert.pem", "cannot be read"),
            (Some(cert.as_str()), Some("secret"), "key.pem", "no private key"),
            (Some(cert.as_str()), Some(cert.as_str()), "key.pem", "no private key"),
            (Some(cert.as_str()), Some(no_key), "key.pem", "cannot be used"),
            (Some(cert.as_str()), Some(other.as_str()), "key.pem", "not the key of"),
            (Some(cert.as_str()), None, "key.pem", "cannot be read"),
        ] {
            let place = |name: &str, text: Option<&str>| match text {
                Some(text) => files.put(name, text),
                None => files.dir.path().join("missing").join(name),
            };
            let given = TlsFiles { cert: place("cert.pem", cert_text), key: place("key.pem", key_text) };
            let fault = server(&given).unwrap_err();
            assert_eq!((code(&fault), fault.exit()), ("certificate_unusable", Exit::Config));
            let Fault::Told { problem, .. } = fault else { unreachable!() };
            assert!(problem.detail.contains(culprit) && problem.detail.contains(why), "{}", problem.detail);
            assert!(!problem.detail.contains("secret") && !problem.detail.contains("c2Vj"), "{}", problem.detail);
        }
        assert!(server(&TlsFiles { cert: files.put("cert.pem", &cert), key: files.put("key.pem", &key) }).is_ok());
    }

    #[test]
    fn authorities_are_looked_at_only_by_those_who_speak_tls() {
        let url = |text: &str| Url::parse(text).unwrap();
        let missing = Some(Path::new("/nowhere/ca.pem"));
        assert!(client(&url("http://localhost"), missing).is_ok());
        assert_eq!(code(&client(&url("https://localhost"), missing).unwrap_err()), "certificate_unusable");
        assert!(client(&url("https://localhost"), Some(Path::new(""))).is_ok(), "empty means not given");
    }
}
