//! Signing what is sent, by the scheme of Standard Webhooks.
//!
//! Every endpoint has its own secret, and every rotation another. None is stored: each is derived
//! from one key that is kept outside the database, so whoever reads the database can forge nothing.
//! All nodes of an installation must hold the same key.

use crate::id::WebhookId;
use crate::name::OrgId;
use crate::time::Micros;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;

/// Derives secrets. Never printed.
#[derive(Clone)]
pub struct Signer([u8; 32]);

/// The secret of one endpoint. Never printed, except by [`Secret::reveal`].
pub struct Secret([u8; 32]);

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer(hidden)")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    // A key of any length is accepted.
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|e| unreachable!("{e}"));
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

impl Signer {
    pub const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// Tells one signer from another and says nothing about either.
    pub fn fingerprint(&self) -> String {
        let print = mac(&self.0, &[b"fingerprint"]);
        print[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub fn secret(&self, org: &OrgId, id: WebhookId, version: u32) -> Secret {
        let parts = [b"webhook\0".as_slice(), org.as_str().as_bytes(), b"\0", id.0.as_bytes(), &version.to_be_bytes()];
        Secret(mac(&self.0, &parts))
    }
}

impl Secret {
    /// As receivers are given it.
    pub fn reveal(&self) -> String {
        format!("whsec_{}", STANDARD.encode(self.0))
    }

    /// The signature over a message sent at a moment.
    pub fn sign(&self, message: &str, at: Micros, body: &[u8]) -> String {
        let seconds = seconds(at).to_string();
        let signature = mac(&self.0, &[message.as_bytes(), b".", seconds.as_bytes(), b".", body]);
        format!("v1,{}", STANDARD.encode(signature))
    }
}

/// The moment as it is sent and signed.
pub const fn seconds(at: Micros) -> i64 {
    at.0.div_euclid(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn secrets_differ_by_everything_and_are_always_the_same() {
        let signer = Signer::new([1; 32]);
        let (a, b) = (WebhookId(Uuid::from_u128(1)), WebhookId(Uuid::from_u128(2)));
        let acme: OrgId = "acme".parse().unwrap();
        let all = [
            signer.secret(&OrgId::default(), a, 1),
            signer.secret(&OrgId::default(), a, 2),
            signer.secret(&OrgId::default(), b, 1),
            signer.secret(&acme, a, 1),
            Signer::new([2; 32]).secret(&OrgId::default(), a, 1),
        ];
        let shown = all.iter().map(Secret::reveal).collect::<std::collections::BTreeSet<_>>();
        assert_eq!(shown.len(), all.len());
        assert_eq!(signer.secret(&acme, a, 1).reveal(), all[3].reveal());
        assert!(all[0].reveal().starts_with("whsec_") && all[0].reveal().len() == 6 + 44);
    }

    #[test]
    fn nothing_of_a_secret_is_printed() {
        let signer = Signer::new([7; 32]);
        let secret = signer.secret(&OrgId::default(), WebhookId(Uuid::nil()), 1);
        assert_eq!(format!("{signer:?} {secret:?}"), "Signer(hidden) Secret(hidden)");
        assert_eq!(signer.fingerprint().len(), 16);
    }

    /// Computed with another implementation.
    #[test]
    fn a_signature_is_what_the_scheme_says() {
        let secret = Secret(*b"0123456789abcdef0123456789abcdef");
        let signed = secret.sign("msg_1", Micros(1_700_000_000_999_999), br#"{"a":1}"#);
        assert_eq!(signed, SIGNED);
    }

    const SIGNED: &str = "v1,rkwp5YuvdrMkcu0ZhuMsXoTg44mHAr1Q0+FFgFpXsjY=";
}
