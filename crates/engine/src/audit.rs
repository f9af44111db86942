//! Verifying the whole history, and that it is no shorter than it was.

use crate::seal_memory;
use baton_core::audit::Report;
use baton_core::seal::Key;
use baton_store::{Store, StoreError};
use std::path::Path;

/// `memory` is the file that remembers the last seals; without it a cut-off tail goes unnoticed.
pub async fn verify(store: &Store, key: Option<Key>, memory: Option<&Path>) -> Result<Report, StoreError> {
    let mut report = store.audit(key).await?;
    let Some(memory) = memory else { return Ok(report) };
    let heads = seal_memory::load(memory).map_err(|e| StoreError::Garbled(e.to_string()))?;
    for (org, head) in heads {
        let name = format!("seal {}", head.n);
        match store.seal(&org, head.n).await? {
            None => report.add("seal_missing", &org, name, "it was made and is gone: the newest history was cut off"),
            Some(seal) if seal.mac != head.mac => {
                report.add("seal_changed", &org, name, "it is not the one that was made");
            }
            Some(_) => {}
        }
    }
    Ok(report)
}
