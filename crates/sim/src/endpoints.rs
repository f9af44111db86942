//! Endpoints that need no network: they accept what they are sent, or not, as its address says.

use baton_core::webhook::sign::Signer;
use baton_engine::webhook::{Carried, Carrier, Deliver, Parcel};
use std::sync::Arc;

/// Takes everything.
pub const OPEN: &str = "https://open.example/in";
/// Refuses every third message the first time it sees it, by its number.
pub const MOODY: &str = "https://moody.example/in";
/// Wants nothing any more.
pub const GONE: &str = "https://gone.example/in";

const SIGNER: [u8; 32] = [5; 32];

struct Endpoints;

impl Carrier for Endpoints {
    fn carry(&self, parcel: Parcel) -> Carried {
        let last = parcel.message.bytes().last().unwrap_or(0);
        // Later attempts come at other seconds, so each message gets through in the end.
        let moody = (i64::from(last) + parcel.timestamp) % 3 == 0;
        let status = match parcel.url.as_str() {
            GONE => 410,
            MOODY if moody => 503,
            _ => 200,
        };
        Box::pin(std::future::ready(Ok(status)))
    }
}

pub fn signer() -> Signer {
    Signer::new(SIGNER)
}

pub fn deliver() -> Deliver {
    Deliver { signer: signer(), carrier: Arc::new(Endpoints) }
}
