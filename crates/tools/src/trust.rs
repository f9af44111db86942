//! Whom to believe over TLS, and with which cryptography.

use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;

/// The same for everything that speaks TLS here, named instead of installed: nothing depends on
/// who was first.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Certificate authorities.
#[derive(Clone, Debug)]
pub struct Trust(RootCertStore);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCertificate {
    #[error("there is no certificate in it; it must be PEM")]
    Missing,
    #[error("a certificate in it is not understood")]
    Broken,
}

impl Trust {
    /// For those who speak no TLS.
    pub fn nobody() -> Self {
        Self(RootCertStore::empty())
    }

    /// The authorities that this machine trusts. There may be none: then nobody is believed.
    pub fn system() -> Self {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::debug!(cause = %error, "some of this machine's certificate authorities cannot be read");
        }
        roots.add_parsable_certificates(found.certs);
        Self(roots)
    }

    /// Those in a PEM text as well.
    pub fn and(mut self, pem: &[u8]) -> Result<Self, BadCertificate> {
        let mut any = false;
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|_| BadCertificate::Broken)?;
            self.0.add(certificate).map_err(|_| BadCertificate::Broken)?;
            any = true;
        }
        if any { Ok(self) } else { Err(BadCertificate::Missing) }
    }

    /// A client that believes them. Fails only if the cryptography knows no version of TLS.
    pub fn client(self) -> Result<ClientConfig, rustls::Error> {
        let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
        Ok(builder.with_root_certificates(self.0).with_no_client_auth())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_certificate_is_not_trusted() {
        let and = |pem: &[u8]| Trust::nobody().and(pem).map(|_| ());
        assert_eq!(and(b"hello"), Err(BadCertificate::Missing));
        assert_eq!(and(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), Err(BadCertificate::Broken));
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        assert_eq!(and(made.cert.pem().as_bytes()), Ok(()));
    }
}
