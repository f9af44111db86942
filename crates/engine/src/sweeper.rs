//! Leases that ran out: their worker is gone, so the job goes to another.

use crate::engine::Shared;
use crate::recovery::take_back;
use baton_core::job::recover::Why;
use std::sync::Arc;

/// Leases taken back in one look; the next look follows at once if there may be more.
const LOOK_MAX: usize = 256;

pub(crate) async fn run(shared: Arc<Shared>) {
    while shared.rest(shared.options.sweep_every).await {
        loop {
            match shared.store.expired(LOOK_MAX).await {
                Ok(expired) => {
                    shared.well();
                    let more = expired.len() == LOOK_MAX;
                    let taken = take_back(&shared, expired, Why::LeaseExpired).await;
                    if !more || taken == 0 {
                        break;
                    }
                }
                Err(e) => {
                    shared.trouble(&e);
                    break;
                }
            }
        }
    }
}
