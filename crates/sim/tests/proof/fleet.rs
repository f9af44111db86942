//! Several nodes, schedules and retention: what goes on for longer than one job.

use anyhow::{Context, Result, ensure};
use baton_core::command::Actor;
use baton_core::cron::put::{Act, Put};
use baton_core::cron::{CatchUp, Schedule, Spec, When};
use baton_core::definition::{JobType, Timeout};
use baton_core::job::enqueue::Enqueue;
use baton_core::job::state::Face;
use baton_core::lane::{Limit, Pause, Rule};
use baton_core::rules::Rules;
use baton_core::time::{Micros, Span};
use baton_core::{JobId, Json, OrgId, seal};
use baton_engine::{Engine, JobCx, Outcome, Registry};
use baton_sim::lab::{Lab, name};
use baton_sim::on_both;
use baton_sim::stage::{clean, is, options, until, until_ended};
use baton_store::{Cursor, Filter, ListJobs, Order, Store};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

on_both! {
    a_killed_nodes_jobs_are_taken_over_and_no_lane_is_overfull
    a_schedule_makes_a_job_at_its_moment_on_one_node_only
    a_paused_lane_waits_and_goes_on_when_it_is_resumed
    only_the_newest_ended_jobs_of_a_project_are_kept
}

/// How long a lease lasts in these tests.
const LEASE: Span = Span::secs(1);
/// A dead node's jobs are taken over this long after their leases at the latest.
const TAKE_OVER: Span = Span::secs(5);
/// What two nodes share, and how much of it is in the hands of the one that dies.
const JOBS: usize = 90;
const HELD: usize = 2;

/// Who runs what right now, over all nodes of the process.
#[derive(Clone, Default)]
struct Watchman {
    jobs: Arc<Mutex<BTreeSet<JobId>>>,
    lanes: Arc<Mutex<BTreeMap<String, u32>>>,
    complaints: Arc<Mutex<Vec<String>>>,
}

struct Stay {
    watchman: Watchman,
    job: JobId,
    lane: String,
}

impl Watchman {
    fn enter(&self, cx: &JobCx) -> Stay {
        let complain = |text: String| self.complaints.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        if !self.jobs.lock().unwrap_or_else(PoisonError::into_inner).insert(cx.job.id) {
            complain(format!("{} runs twice at once", cx.job.id));
        }
        let lane = cx.job.lane.key.to_string();
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let running = lanes.entry(lane.clone()).or_default();
        *running += 1;
        if cx.job.lane.max.is_some_and(|max| *running > max) {
            complain(format!("{running} jobs run in {lane}"));
        }
        Stay { watchman: self.clone(), job: cx.job.id, lane }
    }

    fn content(&self) -> Result<()> {
        let complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(complaints.is_empty(), "{complaints:?}");
        Ok(())
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.watchman.jobs.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.job);
        if let Some(n) = self.watchman.lanes.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&self.lane) {
            *n -= 1;
        }
    }
}

/// Handlers that keep a job in their hands for good, as somebody does who is about to die.
struct Grip {
    left: AtomicUsize,
    holds: mpsc::UnboundedSender<JobId>,
}

impl Grip {
    /// Holds on to the first so many jobs, and says which.
    fn of(jobs: usize) -> (Option<Arc<Self>>, mpsc::UnboundedReceiver<JobId>) {
        let (holds, held) = mpsc::unbounded_channel();
        (Some(Arc::new(Self { left: AtomicUsize::new(jobs), holds })), held)
    }

    async fn hold(&self, job: JobId) {
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
            let _ = self.holds.send(job);
            std::future::pending().await
        }
    }
}

fn watched(watchman: &Watchman, tell: &mpsc::UnboundedSender<JobId>, grip: Option<&Arc<Grip>>) -> Registry {
    let mut registry = Registry::empty();
    for (text, limit) in [("one", Limit::At(1)), ("three", Limit::At(3)), ("wide", Limit::None)] {
        let lane = Rule::Own { key: name(&format!("{text}:{{project}}")), limit, depth: None };
        let kind = JobType {
            lane,
            lease: LEASE,
            timeout: Timeout::Never,
            max_attempts: Some(9),
            ..JobType::new(name(text), 1, "")
        };
        let (watchman, tell, grip) = (watchman.clone(), tell.clone(), grip.cloned());
        registry.add(kind, move |cx: JobCx, _: Json| {
            let (watchman, tell, grip) = (watchman.clone(), tell.clone(), grip.clone());
            async move {
                let _stay = watchman.enter(&cx);
                let _ = tell.send(cx.job.id);
                if let Some(grip) = grip {
                    grip.hold(cx.job.id).await;
                }
                // Long enough for the other node to begin beside it, if that could be.
                for _ in 0..200 {
                    tokio::task::yield_now().await;
                }
                Outcome::Done(Json::of(&json!({})))
            }
        });
    }
    registry
}

async fn node(lab: &Lab, name: &str, registry: Registry, slots: usize) -> Result<Engine> {
    let node = lab.node_named(name).await?;
    let mut options = options(&node);
    options.slots = slots;
    Ok(Engine::start(node.store, registry, options).await?)
}

fn order(kind: &str, project: &str) -> Enqueue {
    Enqueue::new(OrgId::default(), name(project), name(kind), Json::of(&json!({})))
}

async fn a_killed_nodes_jobs_are_taken_over_and_no_lane_is_overfull(mut lab: Lab) -> Result<()> {
    let watchman = Watchman::default();
    let (tell, mut began) = mpsc::unbounded_channel();
    let (grip, mut held) = Grip::of(HELD);
    let registry = watched(&watchman, &tell, None);
    lab.definitions = Arc::new(registry.definitions(Rules::default()));
    let enqueue = async |store: &Store, n: usize| {
        let kind = ["one", "three", "wide"][n % 3];
        Ok::<_, anyhow::Error>(store.commit(order(kind, &format!("p{}", n % 2)), Actor::Api).await?.job.id)
    };
    // Alone at first, so that it is sure to get something to hold on to; two slots still work.
    let victim = node(&lab, "node_b", watched(&watchman, &tell, grip.as_ref()), HELD + 2).await?;
    let mut jobs = Vec::new();
    for n in 0..HELD {
        jobs.push(enqueue(victim.store(), n).await?);
    }
    let mut dying = BTreeSet::new();
    for _ in 0..HELD {
        dying.insert(held.recv().await.context("it holds on to a job")?);
    }
    let survivor = node(&lab, "node_a", registry, 4).await?;
    for n in HELD..JOBS {
        let store = if n % 2 == 0 { survivor.store() } else { victim.store() };
        jobs.push(enqueue(store, n).await?);
    }
    for _ in 0..JOBS / 3 {
        began.recv().await.context("jobs begin")?;
    }
    // As SIGKILL does: nothing more is said, not even that it ends.
    let killed = survivor.store().now().await?;
    drop(victim);
    for id in jobs {
        until(survivor.store(), id, is(Face::Completed)).await?;
    }
    watchman.content()?;
    let taken = takeovers(survivor.store(), JOBS).await?;
    let slowest = taken.values().max().context("somebody was to be taken over from")?.since(killed.plus(LEASE));
    ensure!(slowest <= TAKE_OVER, "of {} jobs the slowest was taken over {slowest:?} after its lease", taken.len());
    let lost = dying.iter().find(|id| !taken.contains_key(id));
    ensure!(lost.is_none(), "{lost:?} was held by a dead node, and ended without being taken from it");
    clean(survivor.store()).await
}

/// When each job was taken back that was, once so many have completed, each of them once.
async fn takeovers(store: &Store, jobs: usize) -> Result<BTreeMap<JobId, Micros>> {
    let (mut taken, mut completed, mut after) = (BTreeMap::new(), BTreeSet::new(), Cursor::START);
    let mut events = store.watch_events();
    while completed.len() < jobs {
        events.mark_unchanged();
        let page = store.events(&OrgId::default(), after, 1_000).await?;
        for row in &page.items {
            let job = JobId(row.event.subject);
            match row.event.kind.as_str() {
                "job.recovered" => drop(taken.insert(job, row.event.at)),
                "job.completed" => ensure!(completed.insert(job), "{job} completed twice"),
                _ => {}
            }
            after = row.cursor;
        }
        if page.items.is_empty() {
            let _ = tokio::time::timeout(Duration::from_millis(20), events.changed()).await;
        }
    }
    Ok(taken)
}

async fn a_schedule_makes_a_job_at_its_moment_on_one_node_only(mut lab: Lab) -> Result<()> {
    let registry = Registry::builtin();
    lab.definitions = Arc::new(registry.definitions(Rules::default()));
    let nodes = [node(&lab, "node_a", registry.clone(), 2).await?, node(&lab, "node_b", registry, 2).await?];
    let store = nodes[0].store();
    let spec = Spec {
        when: When { cron: "*/10 * * * *".to_owned(), time_zone: "Europe/Berlin".to_owned() },
        kind: name("noop"),
        payload: json!({}),
        priority: None,
        source_session: None,
        catch_up: CatchUp::One,
        single_flight: false,
    };
    let put = |act| Put { org: OrgId::default(), project: name("p1"), name: name("tick"), act };
    let kept = store.commit(put(Act::Put(Box::new(spec.clone()))), Actor::Api).await?;
    let key = Schedule::key(&name("p1"), &name("tick"));
    for round in 1..=3u64 {
        lab.advance(Span::secs(601));
        // Setting a timer makes everybody look at the clock again.
        let deadline = Some(store.now().await?.plus(Span::secs(86_400)));
        store.commit(Enqueue { deadline, ..order("noop", "nudge") }, Actor::Api).await?;
        let mut events = store.watch_events();
        let schedule = loop {
            events.mark_unchanged();
            let doc = store.doc(&OrgId::default(), &key).await?.context("it is there")?;
            let schedule = Schedule::of(&doc).context("it is a schedule")?;
            if schedule.made >= round {
                break schedule;
            }
            let _ = tokio::time::timeout(Duration::from_millis(20), events.changed()).await;
        };
        ensure!(schedule.made == round, "once a moment: {schedule:?}");
        let job = schedule.last_job.context("it made a job")?;
        let done = until_ended(store, job).await?;
        ensure!(done.cold.schedule == Some(kept.id));
    }
    store.commit(put(Act::Delete), Actor::Api).await?;
    ensure!(store.doc(&OrgId::default(), &key).await?.is_some_and(|doc| Schedule::of(&doc).is_none()));
    clean(store).await
}

async fn a_paused_lane_waits_and_goes_on_when_it_is_resumed(mut lab: Lab) -> Result<()> {
    let (tell, mut began) = mpsc::unbounded_channel();
    let registry = watched(&Watchman::default(), &tell, None);
    lab.definitions = Arc::new(registry.definitions(Rules::default()));
    let engine = node(&lab, "node_a", registry, 2).await?;
    let pause = |paused| Pause { org: OrgId::default(), lane: name("one:p1"), paused };
    engine.store().commit(pause(true), Actor::Api).await?;
    let waits = engine.store().commit(order("one", "p1"), Actor::Api).await?.job.id;
    let goes = engine.store().commit(order("one", "p2"), Actor::Api).await?.job.id;
    ensure!(began.recv().await == Some(goes), "another lane goes on");
    until(engine.store(), goes, is(Face::Completed)).await?;
    engine.store().commit(pause(false), Actor::Api).await?;
    ensure!(began.recv().await == Some(waits));
    until(engine.store(), waits, is(Face::Completed)).await?;
    clean(engine.store()).await
}

async fn only_the_newest_ended_jobs_of_a_project_are_kept(mut lab: Lab) -> Result<()> {
    let registry = Registry::builtin();
    let rules = Rules { retained: 5, ..Rules::default() };
    lab.definitions = Arc::new(registry.definitions(rules));
    let node = lab.node().await?;
    let mut settings = options(&node);
    settings.seal_key = Some(seal::Key::new([7; 32]));
    settings.seal_every = Duration::from_millis(20);
    settings.prune_every = Duration::from_millis(20);
    let engine = Engine::start(node.store, registry, settings).await?;
    let mut jobs = Vec::new();
    for _ in 0..12 {
        let id = engine.store().commit(order("noop", "p1"), Actor::Api).await?.job.id;
        until_gone_or_ended(engine.store(), id).await?;
        jobs.push(id);
    }
    let mut events = engine.store().watch_events();
    let kept = loop {
        events.mark_unchanged();
        let ask = ListJobs {
            org: OrgId::default(),
            project: name("p1"),
            filter: Filter::default(),
            order: Order::Falling,
            after: None,
            limit: 100,
            bytes: usize::MAX,
        };
        let found: Vec<_> = engine.store().jobs(ask).await?.items.into_iter().map(|r| r.job.id).collect();
        if found.len() <= 5 {
            break found;
        }
        // Forgetting is told, too.
        let _ = tokio::time::timeout(Duration::from_millis(20), events.changed()).await;
    };
    // Jobs of the same millisecond are ordered by chance.
    jobs.sort_unstable_by(|a, b| b.cmp(a));
    ensure!(kept == jobs[..5], "the newest: {kept:?}");
    let report = engine.audit().await?;
    ensure!(report.is_clean(), "{:?}", report.violations);
    Ok(())
}

/// A job may be forgotten before anybody looks.
async fn until_gone_or_ended(store: &Store, id: JobId) -> Result<()> {
    let mut events = store.watch_events();
    loop {
        events.mark_unchanged();
        match store.job(&OrgId::default(), id).await? {
            Some(record) if !record.job.is_ended() => {}
            _ => return Ok(()),
        }
        let _ = tokio::time::timeout(Duration::from_millis(20), events.changed()).await;
    }
}
