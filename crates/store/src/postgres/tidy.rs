//! Removing what jobs leave behind in `live`.
//!
//! Every move of a job leaves an old version of its row there, and entries of indexes that lead to it. Whoever looks
//! for the next job of a lane steps over all that were handed out before, until somebody removes them. The server
//! looks for such work once a minute, which can be a hundred thousand jobs too late. But each time it is done, the plans of
//! all statements that touch the table are made anew.

use super::{Shared, link};
use baton_core::World;
use baton_core::world::JobWrite;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// Rows that may be left behind before they are removed.
const ENOUGH: usize = 30_000;

#[derive(Default)]
pub(super) struct Litter {
    rows: AtomicUsize,
    enough: Notify,
}

impl Litter {
    /// After a commit.
    pub fn add(&self, world: &World) {
        let left = world.job_writes().filter(|write| !matches!(write, JobWrite::Insert(..))).count();
        if self.rows.fetch_add(left, Ordering::Relaxed) + left >= ENOUGH {
            self.rows.store(0, Ordering::Relaxed);
            self.enough.notify_one();
        }
    }
}

pub(super) async fn run(shared: Arc<Shared>) {
    loop {
        shared.litter.enough.notified().await;
        // While another node is at it, one is enough; whoever has no right to it is only warned by the server.
        let tidy = async {
            let (client, _driver) = link::plain(&shared.config).await?;
            client.batch_execute("VACUUM (SKIP_LOCKED, TRUNCATE false, INDEX_CLEANUP true) live").await
        };
        if let Err(e) = tidy.await {
            tracing::debug!(why = link::text(&e), "what jobs left behind was not removed; the server will do it");
        }
    }
}
