//! Typed job types: everything about a kind of work in one place.
//!
//! Hooks are sinks: pure, they return rows that are written in the commit of the move they tell of.
//! An effect in the outside world is the job itself, or another job.

use crate::job_cx::JobCx;
use crate::registry::{Handler, Outcome, Running};
use crate::shape::JsonShape;
use baton_core::Micros;
use baton_core::canon::Json;
use baton_core::dedupe::merge_patch;
use baton_core::definition::{Entry, Hooks, JobType, Moment, Shape};
use baton_core::job::{Context, Failure, Job};
use baton_core::sink;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// How a typed handler ends well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done<T> {
    Result(T),
    /// See [`Outcome::Park`].
    Park {
        until: Option<Micros>,
        seen: i64,
    },
    /// See [`Outcome::Ask`].
    Ask(Value),
}

/// A kind of work: how it is treated, how it runs, what it leaves behind.
pub trait JobDefinition: Send + Sync + 'static {
    type Payload: DeserializeOwned + Send;
    type Output: Serialize;

    /// Whether the five hooks say anything: only then are they asked.
    const HOOKS: bool = false;

    /// Name, version, priority, schemas, lane, dedupe, retry, timeout and cancel.
    fn job_type(&self) -> JobType;

    fn run(
        &self,
        cx: JobCx,
        payload: Self::Payload,
    ) -> impl Future<Output = Result<Done<Self::Output>, Failure>> + Send;

    /// Interrupts what a running job works on outside.
    fn interrupt(&self, context: Context) -> impl Future<Output = ()> + Send {
        let _ = context;
        std::future::ready(())
    }

    /// The payload of a waiting job after a duplicate was merged into it.
    fn merge(&self, waiting: &Value, incoming: &Value) -> Value {
        merge_patch(waiting, incoming)
    }

    fn on_queued(&self, _job: &Job, _payload: &Self::Payload) -> Vec<sink::Row> {
        Vec::new()
    }

    fn on_started(&self, _job: &Job, _payload: &Self::Payload) -> Vec<sink::Row> {
        Vec::new()
    }

    fn on_completed(&self, _job: &Job, _payload: &Self::Payload, _result: &Value) -> Vec<sink::Row> {
        Vec::new()
    }

    fn on_failed(&self, _job: &Job, _payload: &Self::Payload, _failure: &Failure) -> Vec<sink::Row> {
        Vec::new()
    }

    fn on_canceled(&self, _job: &Job, _payload: &Self::Payload, _reason: &str) -> Vec<sink::Row> {
        Vec::new()
    }
}

/// What the registry keeps of a definition.
pub(crate) fn parts<D: JobDefinition>(definition: D) -> (Entry, Arc<dyn Handler>) {
    let job_type = definition.job_type();
    let shape = |schema: &Option<Value>| -> Option<Arc<dyn Shape>> {
        schema.as_ref().map(|schema| Arc::new(JsonShape::new(schema)) as Arc<dyn Shape>)
    };
    let (payload, result) = (shape(&job_type.payload_schema), shape(&job_type.result_schema));
    let typed = Arc::new(Typed(Arc::new(definition)));
    let merges = job_type.dedupe.mode == baton_core::dedupe::Mode::MergeDuplicate;
    let hooks = (D::HOOKS || merges).then(|| typed.clone() as Arc<dyn Hooks>);
    (Entry { hooks, payload, result, ..Entry::plain(job_type) }, typed)
}

struct Typed<D>(Arc<D>);

impl<D: JobDefinition> Handler for Typed<D> {
    fn run(&self, cx: JobCx, payload: Json) -> Running {
        let definition = self.0.clone();
        Box::pin(async move {
            // Checked when it was taken in; but perhaps by another version of this type.
            let payload = match serde_json::from_value(payload.value()) {
                Ok(payload) => payload,
                Err(e) => return Outcome::Failed(Failure::fatal("invalid_payload", &e.to_string())),
            };
            match definition.run(cx, payload).await {
                Ok(Done::Result(result)) => match serde_json::to_value(result) {
                    Ok(result) => Outcome::Done(Json::of(&result)),
                    Err(e) => Outcome::Failed(Failure::new("invalid_result", &e.to_string())),
                },
                Ok(Done::Park { until, seen }) => Outcome::Park { until, seen },
                Ok(Done::Ask(question)) => Outcome::Ask(Json::of(&question)),
                Err(failure) => Outcome::Failed(failure),
            }
        })
    }

    fn interrupt(&self, context: Context) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let definition = self.0.clone();
        Box::pin(async move { definition.interrupt(context).await })
    }
}

impl<D: JobDefinition> Hooks for Typed<D> {
    fn merge(&self, waiting: &Value, incoming: &Value) -> Value {
        self.0.merge(waiting, incoming)
    }

    /// A payload that cannot be read has nobody to tell of it.
    fn sink(&self, job: &Job, payload: &Json, moment: Moment<'_>) -> Vec<sink::Row> {
        let Ok(payload) = serde_json::from_value(payload.value()) else { return Vec::new() };
        match moment {
            Moment::Queued => self.0.on_queued(job, &payload),
            Moment::Started => self.0.on_started(job, &payload),
            Moment::Completed(result) => self.0.on_completed(job, &payload, &result.value()),
            Moment::Failed(failure) => self.0.on_failed(job, &payload, failure),
            Moment::Canceled(reason) => self.0.on_canceled(job, &payload, reason),
        }
    }
}
