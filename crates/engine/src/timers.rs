//! Firing timers: each becomes a command that looks at the state first. Several nodes may find
//! the same timer due; the commit lets one of them have it.

use crate::engine::Shared;
use baton_core::command::Actor;
use baton_core::cron::fire::Fire;
use baton_core::decision::breach::Expire;
use baton_core::id::{DecisionId, DocId};
use baton_core::job::cancel::Force;
use baton_core::job::deadline::Deadline;
use baton_core::run::clock::Tick;
use baton_core::timer::{Due, Kind};
use baton_core::{JobId, Micros, RunId};
use baton_store::{CommitError, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Timers fired in one look; the next look follows at once if there may be more.
const LOOK_MAX: usize = 256;
/// Looks by itself this often, should a wake-up get lost.
const POLL: Duration = Duration::from_secs(5);
/// Between two looks at least, however soon the next timer is due.
const REST_MIN: Duration = Duration::from_millis(10);
/// After trouble, or when all that was due belonged to somebody else.
const PAUSE: Duration = Duration::from_millis(200);

pub(crate) async fn run(shared: Arc<Shared>) {
    let mut set = shared.store.watch_timers();
    loop {
        // Before looking, so that a timer set meanwhile is not missed.
        set.mark_unchanged();
        let rest = match shared.store.due_timers(LOOK_MAX).await {
            Ok((due, next)) => {
                let found = due.len();
                let fired = fire_all(&shared, due).await;
                match next {
                    _ if found > 0 && fired == 0 => PAUSE,
                    _ if found == LOOK_MAX => Duration::ZERO,
                    // By the clock that judges what is due, which need not be ours.
                    Some(at) => match shared.store.now().await {
                        Ok(now) => at.since(now).to_std().clamp(REST_MIN, POLL),
                        Err(_) => PAUSE,
                    },
                    None => POLL,
                }
            }
            Err(e) => {
                shared.trouble(&e);
                PAUSE
            }
        };
        if !shared.rest_unless(rest, set.changed()).await {
            return;
        }
    }
}

async fn fire_all(shared: &Shared, due: Vec<Due>) -> usize {
    let mut commits = JoinSet::new();
    for timer in due {
        let (store, alive_since) = (shared.store.clone(), shared.alive_since);
        commits.spawn(async move { fire(&store, timer, alive_since).await });
    }
    let mut fired = 0;
    while let Some(ended) = commits.join_next().await {
        match ended {
            Ok(Ok(true)) => {
                fired += 1;
                metrics::counter!("baton_timers_fired_total").increment(1);
            }
            // Another node had it, or it was moved: nothing to do.
            Ok(Ok(false)) | Err(_) => {}
            Ok(Err(e)) => shared.trouble(&e),
        }
    }
    fired
}

/// Whether it was there to be fired.
async fn fire(store: &Store, timer: Due, alive_since: Micros) -> Result<bool, StoreError> {
    let Due { org, key, at } = timer;
    let job = JobId(key.subject);
    match key.kind {
        Kind::JobDeadline => had(store.commit(Deadline { org, job, at }, Actor::Engine).await),
        Kind::JobCancel => had(store.commit(Force { org, job, at }, Actor::Engine).await),
        Kind::Schedule => {
            let id = DocId(key.subject);
            let Some(key) = store.doc_key(&org, id).await? else { return Ok(false) };
            had(store.commit(Fire { org, id, key, at }, Actor::Engine).await)
        }
        Kind::Run => {
            let tick = Tick { org, run: RunId(key.subject), at, alive_since };
            had(store.commit(tick, Actor::Engine).await)
        }
        Kind::Decision => had(store.commit(Expire { org, id: DecisionId(key.subject), at }, Actor::Engine).await),
    }
}

fn had<T, No: std::error::Error>(answer: Result<T, CommitError<No>>) -> Result<bool, StoreError> {
    match answer {
        Ok(_) => Ok(true),
        Err(CommitError::Refused(_) | CommitError::KeyReused) => Ok(false),
        Err(CommitError::Store(e)) => Err(e),
    }
}
