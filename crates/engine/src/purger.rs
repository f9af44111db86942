//! Forgetting what no longer speaks, in small batches: idempotency records and messages whose time is
//! over, rows of lanes that count nothing.

use crate::engine::Shared;
use baton_store::StoreError;
use std::sync::Arc;

const BATCH: usize = 1_000;

pub(crate) async fn run(shared: Arc<Shared>) {
    while shared.rest(shared.options.purge_every).await {
        if let Err(e) = round(&shared).await {
            shared.trouble(&e);
        }
    }
}

async fn round(shared: &Shared) -> Result<(), StoreError> {
    let store = &shared.store;
    while store.purge_onces(BATCH).await? == BATCH {}
    while store.purge_messages(BATCH).await? == BATCH {}
    while store.purge_lanes(BATCH).await? == BATCH {}
    Ok(())
}
