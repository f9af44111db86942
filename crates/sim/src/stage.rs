//! Engines on the databases of a lab, quick enough for tests to wait for.

use crate::lab::{Lab, Node, Place};
use anyhow::{Context, Result, ensure};
use baton_core::job::state::Face;
use baton_core::{JobId, OrgId};
use baton_engine::{Engine, Options, Registry};
use baton_store::{Cursor, JobRecord, Store};
use std::future::Future;
use std::time::Duration;

/// A test that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// A read may run ahead of the mark that announces it, so whoever waits looks again by himself.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Runs a test on one database; `place` may be missing, but the test command always has it.
pub async fn check<F: Future<Output = Result<()>>>(place: Place, test: fn(Lab) -> F) {
    match Lab::new(place, None).await {
        Ok(Some(lab)) => match tokio::time::timeout(PATIENCE, test(lab)).await {
            Ok(Ok(())) => {}
            // The reason again behind the trace: whoever sees only the end of what was printed sees it too.
            Ok(Err(e)) => panic!("on {place:?}: {e:?}\non {place:?}: {e:#}"),
            Err(_) => panic!("on {place:?}: it hangs"),
        },
        Ok(None) => {}
        Err(e) => panic!("{e:?}"),
    }
}

/// Makes tests of functions over a [`Lab`], on a database where two nodes can live, of either kind.
#[macro_export]
macro_rules! on_both {
    ($($name:ident)*) => {
        mod sqlite { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                $crate::stage::check($crate::lab::Place::SqliteDisk, super::$name).await;
            }
        )* }
        mod postgres { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                $crate::stage::check($crate::lab::Place::Postgres, super::$name).await;
            }
        )* }
    };
}

pub fn options(node: &Node) -> Options {
    let mut options = Options::new(node.name.clone());
    options.beat_every = Duration::from_millis(20);
    options.poll_every = Duration::from_millis(20);
    options.sweep_every = Duration::from_millis(20);
    options
}

pub async fn start(lab: &Lab, name: &str, registry: Registry) -> Result<Engine> {
    let node = lab.node_named(name).await?;
    let options = options(&node);
    Ok(Engine::start(node.store, registry, options).await?)
}

pub async fn record(store: &Store, id: JobId) -> Result<JobRecord> {
    store.job(&OrgId::default(), id).await?.context("the job exists")
}

/// Looks whenever there is something new, and now and then by itself.
pub async fn until(store: &Store, id: JobId, enough: impl Fn(&JobRecord) -> bool) -> Result<JobRecord> {
    let mut events = store.watch_events();
    loop {
        events.mark_unchanged();
        let found = record(store, id).await?;
        if enough(&found) {
            return Ok(found);
        }
        let _ = tokio::time::timeout(LOOK_AGAIN, events.changed()).await;
    }
}

pub async fn until_ended(store: &Store, id: JobId) -> Result<JobRecord> {
    until(store, id, |record| record.job.is_ended()).await
}

pub fn is(face: Face) -> impl Fn(&JobRecord) -> bool {
    move |record| record.job.status.face() == face
}

/// Until readers of the history can see such an event; only then it can be sealed.
pub async fn told(store: &Store, kind: &str) -> Result<()> {
    let mut events = store.watch_events();
    loop {
        events.mark_unchanged();
        let page = store.events(&OrgId::default(), Cursor::START, 1_000).await?;
        if page.items.iter().any(|row| row.event.kind == kind) {
            return Ok(());
        }
        events.changed().await?;
    }
}

pub async fn clean(store: &Store) -> Result<()> {
    let report = store.audit(None).await?;
    ensure!(report.is_clean(), "{:?}", report.violations);
    Ok(())
}
