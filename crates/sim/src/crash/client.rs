//! The client of a story: what it was promised, over all lives of the server.

use super::actor;
use crate::lab::{Lab, name};
use anyhow::{Context, Result, bail, ensure};
use baton_core::command::{Actor, Command};
use baton_core::definition::JobType;
use baton_core::job::enqueue::{Enqueue, Enqueued};
use baton_core::job::wake::Wake;
use baton_core::job::{Pause, Status};
use baton_core::once::{Key, Rendered};
use baton_core::time::Span;
use baton_core::{Digest, JobId, Json, OrgId};
use baton_engine::remote::Workers;
use baton_engine::{Engine, Registry};
use baton_store::{Answer, CommitError, JobRecord, Once, Store};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const NUDGE: &str = "nudge";

/// What outlives the server.
#[derive(Default)]
pub(super) struct Memory {
    pub promised: BTreeMap<String, JobId>,
    taken: BTreeSet<String>,
    noted: BTreeMap<String, String>,
}

pub struct Client<'a> {
    pub store: Store,
    /// Where workers outside take their jobs from.
    pub workers: Workers,
    lab: &'a Lab,
    memory: &'a mut Memory,
}

/// A job that is only there to make everybody look at the clock.
pub(super) fn add_nudge(registry: &mut Registry) {
    registry.add(JobType { lane: crate::open_lane::rule(), ..JobType::new(name(NUDGE), 1, "") }, actor::act);
}

/// A job of a type, due at once.
pub(super) fn order(project: &str, kind: &str, payload: &Value) -> Enqueue {
    Enqueue::new(OrgId::default(), name(project), name(kind), Json::of(payload))
}

pub(super) fn parked(record: &JobRecord) -> bool {
    matches!(record.job.status, Status::AwaitingTool { pause: Pause::Tool, .. })
}

pub(super) fn executing(record: &JobRecord) -> bool {
    matches!(record.job.status, Status::Executing { .. })
}

impl<'a> Client<'a> {
    pub(super) fn new(lab: &'a Lab, engine: &Engine, memory: &'a mut Memory) -> Self {
        Self { store: engine.store().clone(), workers: engine.workers().clone(), lab, memory }
    }

    /// Asks for a job under an idempotency key; asked again, it is the same.
    pub async fn ask(&mut self, key: &str, order: Enqueue) -> Result<JobId> {
        let render = |out: &Enqueued| Rendered { status: 201, body: out.job.id.to_string() };
        let id = match self.store.commit_once(order, Actor::Api, once(key, render)).await? {
            Answer::Fresh(out) => out.job.id,
            Answer::Replayed(before) => before.body.parse()?,
        };
        self.promised(key, id)
    }

    /// The same by message id.
    pub async fn say(&mut self, message: &str, order: Enqueue) -> Result<JobId> {
        let order = Enqueue { message_id: Some(message.to_owned()), ..order };
        let id = self.store.commit(order, Actor::Api).await?.job.id;
        self.promised(message, id)
    }

    /// Something was promised under a key; it must be what was promised before.
    pub fn promised(&mut self, key: &str, id: JobId) -> Result<JobId> {
        if let Some(before) = self.memory.promised.insert(key.to_owned(), id) {
            ensure!(before == id, "{key} was promised as {before} and is now {id}");
        }
        Ok(id)
    }

    pub fn id(&self, key: &str) -> Result<JobId> {
        self.memory.promised.get(key).copied().with_context(|| format!("{key} was not promised yet"))
    }

    /// Whether a step is to be taken: once, over all lives, because it was seen to have happened.
    pub fn first_time(&mut self, step: &str) -> bool {
        self.memory.taken.insert(step.to_owned())
    }

    pub fn taken(&self, step: &str) -> bool {
        self.memory.taken.contains(step)
    }

    /// What was noted under a key when it was first asked for.
    pub fn noted(&mut self, key: &str, make: impl FnOnce() -> String) -> String {
        self.memory.noted.entry(key.to_owned()).or_insert_with(make).clone()
    }

    /// What a command came to; `None` if it was refused.
    pub async fn tell<C: Command>(&self, command: C) -> Result<Option<C::Out>> {
        match self.store.commit(command, Actor::Api).await {
            Ok(out) => Ok(Some(out)),
            Err(CommitError::Refused(_)) => Ok(None),
            Err(e) => bail!("{e}"),
        }
    }

    pub async fn record(&self, key: &str) -> Result<JobRecord> {
        let found = self.store.job(&OrgId::default(), self.id(key)?).await?;
        found.with_context(|| format!("{key} was promised and is gone"))
    }

    /// Waits until a job has come far enough.
    pub async fn until(&self, key: &str, enough: impl Fn(&JobRecord) -> bool) -> Result<JobRecord> {
        let mut events = self.store.watch_events();
        loop {
            events.mark_unchanged();
            let record = self.record(key).await?;
            if enough(&record) {
                return Ok(record);
            }
            // A read may run ahead of the mark that announces it, so look again now and then.
            let _ = tokio::time::timeout(Duration::from_millis(50), events.changed()).await;
        }
    }

    pub async fn ended(&self, keys: &[&str]) -> Result<()> {
        for key in keys {
            self.until(key, |record| record.job.is_ended()).await?;
        }
        Ok(())
    }

    /// Waits until a job is parked and wakes it. Already awake is as good.
    pub async fn wake(&self, key: &str) -> Result<()> {
        let found = self.until(key, |record| parked(record) || record.job.is_ended()).await?;
        if !found.job.is_ended() {
            self.tell(Wake { org: OrgId::default(), job: found.job.id }).await?;
        }
        Ok(())
    }

    /// Time passes, once for each step, and everybody notices: setting a timer and queueing a job
    /// makes them look.
    pub async fn advance(&mut self, step: &str, span: Span) -> Result<()> {
        if self.first_time(step) {
            self.lab.advance(span);
        }
        let deadline = Some(self.store.now().await?.plus(Span::secs(3_600)));
        let nudge = Enqueue { deadline, ..order(NUDGE, NUDGE, &json!({ "do": "nothing" })) };
        let key = format!("nudge, {step}");
        self.ask(&key, nudge).await?;
        self.ended(&[&key]).await
    }
}

/// A request under a key.
pub(super) fn once<T>(key: &str, render: impl Fn(&T) -> Rendered + Send + 'static) -> Once<T> {
    Once {
        key: Key { org: OrgId::default(), scope: "crash".to_owned(), key: key.to_owned() },
        request: Digest::of(&[key.as_bytes()]),
        render: Box::new(render),
    }
}
