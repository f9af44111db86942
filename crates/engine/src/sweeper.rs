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
                Ok(mut expired) => {
                    shared.well();
                    let more = expired.len() == LOOK_MAX;
                    // A clock that jumped says nothing about our own workers: they are alive.
                    let own = shared.crews.iter().map(|crew| crew.held.holds()).collect::<Vec<_>>();
                    expired.retain(|fence| !own.iter().any(|held| held.contains(fence)));
                    match take_back(&shared, expired, Why::LeaseExpired).await {
                        Ok(taken) if more && taken > 0 => {}
                        Ok(_) => break,
                        Err(e) => {
                            shared.trouble(&e);
                            break;
                        }
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
