//! Forgetting idempotency records whose time is over, in small batches.

use crate::engine::Shared;
use std::sync::Arc;

const BATCH: usize = 1_000;

pub(crate) async fn run(shared: Arc<Shared>) {
    while shared.rest(shared.options.purge_every).await {
        loop {
            match shared.store.purge_onces(BATCH).await {
                Ok(BATCH) => {}
                Ok(_) => break,
                Err(e) => {
                    shared.trouble(&e);
                    break;
                }
            }
        }
    }
}
