//! Starting and stopping: everything that runs in the background, as one thing.

use crate::crew::Crew;
use crate::options::Options;
use crate::registry::Registry;
use crate::remote::Workers;
use crate::webhook::courier;
use crate::{audit, beater, pool, pruner, purger, recovery, run, sealer, sweeper, timers};
use baton_core::audit::Report;
use baton_core::command::{Actor, Refusal};
use baton_core::definition::{PutJobType, PutTypeError, RegisterError};
use baton_core::plan::Tools;
use baton_core::{Micros, OrgId};
use baton_store::{CommitError, Store, StoreError};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Given to what was told to stop, beyond the drain itself, to say so to the store.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A running engine. Cheap to clone; dropping the last one stops everything at once.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    workers: Workers,
    pools: Mutex<Vec<JoinHandle<()>>>,
    background: Mutex<Vec<JoinHandle<()>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.abort();
    }
}

impl Inner {
    fn abort(&self) {
        self.shared.stop_at(Instant::now());
        self.pools().iter().for_each(JoinHandle::abort);
        self.background().iter().for_each(JoinHandle::abort);
    }

    fn pools(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn background(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.background.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After this nothing of what was aborted still runs: an abort alone is only a request.
    async fn gone(&self) {
        let tasks = std::mem::take(&mut *self.background());
        for task in tasks {
            let _ = tokio::time::timeout(LAST_WORDS, task).await;
        }
    }
}

/// What the parts of an engine share.
pub(crate) struct Shared {
    pub store: Store,
    pub registry: Registry,
    pub options: Options,
    pub crews: Vec<Arc<Crew>>,
    /// When set: claim nothing more; at that moment, stop what still runs.
    pub stopping: watch::Sender<Option<Instant>>,
    /// Since when this engine has been there to work, by the clock of commits.
    pub alive_since: Micros,
    reachable: AtomicBool,
    /// The part that ended though nobody told it to. Only a restart can be trusted then.
    broken: watch::Sender<Option<&'static str>>,
}

/// Notices when a part of the engine ends, in whatever way.
struct Watch {
    shared: Arc<Shared>,
    part: &'static str,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.shared.stopping.borrow().is_none() {
            tracing::error!(part = self.part, "a part of the engine ended by itself; the engine is broken");
            self.shared.broken.send_replace(Some(self.part));
        }
    }
}

fn spawn<F: Future<Output = ()> + Send + 'static>(
    shared: &Arc<Shared>,
    part: &'static str,
    run: impl FnOnce(Arc<Shared>) -> F,
) -> JoinHandle<()> {
    let watch = Watch { shared: shared.clone(), part };
    let running = run(shared.clone());
    tokio::spawn(async move {
        let _watch = watch;
        running.await;
    })
}

impl Shared {
    pub fn trouble(&self, e: &StoreError) {
        // One bad row is no reason to send everybody else away.
        if !e.is_internal() {
            self.reachable.store(false, Ordering::Relaxed);
        }
        tracing::warn!(%e, code = e.code(), "trouble with the store");
    }

    fn stop_at(&self, at: Instant) {
        self.stopping.send_if_modified(|stopping| {
            let first = stopping.is_none();
            stopping.get_or_insert(at);
            first
        });
    }

    pub fn well(&self) {
        self.reachable.store(true, Ordering::Relaxed);
    }

    /// Sleeps; false if it is time to stop instead.
    pub async fn rest(&self, span: Duration) -> bool {
        self.rest_unless(span, std::future::pending::<()>()).await
    }

    /// Sleeps until the time is over or something happens; false if it is time to stop instead.
    pub async fn rest_unless<T>(&self, span: Duration, something: impl Future<Output = T>) -> bool {
        let mut stopping = self.stopping.subscribe();
        tokio::select! {
            biased;
            _ = stopping.wait_for(Option::is_some) => false,
            _ = something => true,
            () = tokio::time::sleep(span) => true,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("a job type of this binary cannot be registered: {0}")]
    Definition(#[from] RegisterError),
    #[error("a declared job type cannot be registered: {0}")]
    Declared(PutTypeError),
    #[error("the store failed while starting: {0}")]
    Store(StoreError),
}

impl StartError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Definition(e) => e.code(),
            Self::Declared(e) => e.code(),
            Self::Store(e) => e.code(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    #[error("the engine is stopping")]
    Stopping,
    #[error("the database cannot be reached")]
    Store,
    #[error("a part of the engine has ended: the {0}")]
    Broken(&'static str),
}

impl NotReady {
    pub const fn code(self) -> &'static str {
        "not_ready"
    }
}

impl Engine {
    /// Registers what this binary can run, takes back what this node held when it last died,
    /// and begins to work.
    pub async fn start(store: Store, registry: Registry, options: Options) -> Result<Self, StartError> {
        let crews = Crew::all(&registry, &options);
        let alive_since = store.now().await.map_err(StartError::Store)?;
        let shared = Arc::new(Shared {
            alive_since,
            crews,
            store,
            registry,
            options,
            stopping: watch::Sender::new(None),
            reachable: AtomicBool::new(true),
            broken: watch::Sender::new(None),
        });
        for kind in shared.registry.job_types() {
            match shared.store.commit(kind.register(), Actor::Engine).await {
                Ok(_) => {}
                Err(CommitError::Refused(e)) => return Err(e.into()),
                Err(CommitError::KeyReused) => {}
                Err(CommitError::Store(e)) => return Err(StartError::Store(e)),
            }
        }
        for job_type in shared.registry.declared() {
            let put = PutJobType { org: OrgId::system(), job_type: job_type.clone() };
            match shared.store.commit(put, Actor::Engine).await {
                Ok(registration) => shared.store.declare(registration.job_type),
                Err(CommitError::Refused(e)) => return Err(StartError::Declared(e)),
                Err(CommitError::KeyReused) => {}
                Err(CommitError::Store(e)) => return Err(StartError::Store(e)),
            }
        }
        let taken = recovery::own(&shared).await.map_err(StartError::Store)?;
        if taken > 0 {
            tracing::warn!(jobs = taken, "jobs that were running when this node last ended have been taken back");
        }
        let crews = shared.crews.clone();
        let pools = crews.iter().map(|crew| spawn(&shared, "pool", |shared| pool::run(shared, crew.clone()))).collect();
        let beaters = crews.iter().map(|crew| spawn(&shared, "beater", |shared| beater::run(shared, crew.clone())));
        let mut background = beaters.collect::<Vec<_>>();
        background.extend([
            spawn(&shared, "sweeper", sweeper::run),
            spawn(&shared, "timers", timers::run),
            spawn(&shared, "purger", purger::run),
            spawn(&shared, "pruner", pruner::run),
        ]);
        if shared.registry.tools().is_some() {
            background.push(spawn(&shared, "agents", run::lost::run));
        }
        if shared.registry.delivers() {
            background.push(spawn(&shared, "courier", courier::run));
        }
        if let Some(key) = shared.options.seal_key.clone() {
            background.push(spawn(&shared, "sealer", |shared| sealer::run(shared, key)));
        }
        let inner = Inner {
            workers: Workers::new(shared.clone()),
            shared,
            pools: Mutex::new(pools),
            background: Mutex::new(background),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The tools that run documents may name; nothing if agents are not worked on here.
    pub fn tools(&self) -> Option<Arc<Tools>> {
        self.inner.shared.registry.tools()
    }

    /// Workers outside take their jobs from here.
    pub fn workers(&self) -> &Workers {
        &self.inner.workers
    }

    pub fn store(&self) -> &Store {
        &self.inner.shared.store
    }

    /// Verifies the whole history with this engine's key and memory.
    pub async fn audit(&self) -> Result<Report, StoreError> {
        let options = &self.inner.shared.options;
        audit::verify(self.store(), options.seal_key.clone(), options.seal_memory.as_deref()).await
    }

    pub fn ready(&self) -> Result<(), NotReady> {
        let shared = &self.inner.shared;
        if shared.stopping.borrow().is_some() {
            return Err(NotReady::Stopping);
        }
        if let Some(part) = *shared.broken.borrow() {
            return Err(NotReady::Broken(part));
        }
        // A store that stopped writing for good does not come back by itself.
        if shared.store.is_closed() || !shared.reachable.load(Ordering::Relaxed) {
            return Err(NotReady::Store);
        }
        Ok(())
    }

    /// Resolves when a part of the engine has ended by itself; which one.
    pub async fn broken(&self) -> &'static str {
        let mut broken = self.inner.shared.broken.subscribe();
        loop {
            if let Some(part) = *broken.borrow_and_update() {
                return part;
            }
            // The sender lives as long as the engine.
            let _ = broken.changed().await;
        }
    }

    /// Unready at once, for whoever asks before [`Self::stop`] is called.
    pub fn begin_stopping(&self, drain: Duration) {
        self.inner.shared.stop_at(Instant::now() + drain);
    }

    /// Claims nothing more, lets what runs finish for `drain`, gives back the rest, seals what
    /// is left and closes the store. Bounded: a handler that ignores all this is left behind.
    pub async fn stop(&self, drain: Duration) {
        self.begin_stopping(drain);
        let shared = &self.inner.shared;
        let by = Instant::now() + drain.saturating_add(LAST_WORDS);
        let pools = std::mem::take(&mut *self.inner.pools());
        for pool in pools {
            let abort = pool.abort_handle();
            if tokio::time::timeout_at(by, pool).await.is_err() {
                abort.abort();
                tracing::warn!("the pool did not stop in time; its leases will expire");
            }
        }
        self.inner.abort();
        self.inner.gone().await;
        if let Some(key) = &shared.options.seal_key {
            match tokio::time::timeout(LAST_WORDS, sealer::seal_all(shared, key)).await {
                Ok(Ok(())) => {}
                Ok(Err(e)) => tracing::warn!(%e, "the last events could not be sealed; the next start will"),
                Err(_) => tracing::warn!("the last events could not be sealed in time; the next start will"),
            }
        }
        if tokio::time::timeout(LAST_WORDS, shared.store.close()).await.is_err() {
            tracing::warn!("the store did not close in time; what was committed stays");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OsEntropy, SystemClock};
    use baton_store::OpenOptions;

    #[tokio::test]
    async fn a_part_that_ends_by_itself_breaks_the_engine_and_one_that_is_told_to_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::builtin();
        let definitions = Arc::new(registry.definitions(baton_core::rules::Rules::default()));
        let options =
            OpenOptions::new(dir.path().to_owned(), Arc::new(SystemClock), Arc::new(OsEntropy::default()), definitions);
        let store = Store::open(options).await.unwrap();
        let engine = Engine::start(store, registry, Options::new("node_a".parse().unwrap())).await.unwrap();
        assert_eq!(engine.ready(), Ok(()));
        spawn(&engine.inner.shared, "choir", |_| async { panic!("on purpose") });
        assert_eq!(engine.broken().await, "choir");
        assert_eq!(engine.ready(), Err(NotReady::Broken("choir")));
        engine.inner.shared.broken.send_replace(None);
        engine.stop(Duration::from_secs(5)).await;
        assert_eq!(*engine.inner.shared.broken.borrow(), None);
    }
}
