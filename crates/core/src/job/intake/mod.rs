//! Taking jobs in: what a single job, a batch, a repetition and a schedule have in common.
//!
//! One intake serves one command. It remembers what the command has taken in so far, so that the
//! jobs of a batch see each other as they would see jobs of earlier commands.

mod known;

use super::enqueue::{Enqueue, EnqueueError, Enqueued, How, Origin};
use super::{Aside, Change, Cold, Job, Status};
use crate::canon::Json;
use crate::changes::Changes;
use crate::command::{Ctx, Reads};
use crate::dedupe;
use crate::definition::{self, Definitions, Entry, Moment};
use crate::event::Head;
use crate::id::JobId;
use crate::lane::{self, LaneKey};
use crate::limits;
use crate::rules::Rules;
use crate::template::Facts;
use crate::time::Micros;
use crate::timer;
use crate::told::Told;
use crate::world::View;
use serde_json::Value;
use std::collections::BTreeMap;

/// What taking this order in must see.
pub(crate) fn reads(order: &Enqueue, defs: &Definitions) -> Reads {
    let Some(entry) = defs.newest(&order.org, &order.kind) else {
        // Another node may have registered it a moment ago: whoever loads this learns what it finds.
        let key = definition::Key { class: definition::Class::JobType, name: order.kind.clone() };
        return Reads::definition(key);
    };
    let mut reads = Reads::none();
    let inside = inside(order, entry);
    let facts = facts(order, &inside);
    if let Ok((place, _)) = place(order, entry, &facts, &defs.rules)
        && place.kept
    {
        reads.lanes.insert(place.key);
    }
    reads.dedupes.extend(entry.dedupe_key(&facts));
    // What is no message id is refused before anybody looks for it.
    reads.messages.extend(message_key(order));
    reads.crowd = u32::from(in_crowd(order, entry));
    reads
}

/// Where the job will wait, and how deep it may get there.
fn place(
    order: &Enqueue,
    entry: &Entry,
    facts: &Facts<'_>,
    rules: &Rules,
) -> Result<(lane::Place, Option<u32>), String> {
    match &order.lane {
        Some(place) => Ok((place.clone(), None)),
        None => entry.job_type.lane.place(facts, rules.max_per_project),
    }
}

/// The payload as a value, if anybody will look at it.
fn inside(order: &Enqueue, entry: &Entry) -> Value {
    if entry.job_type.looks_inside() { order.payload.value() } else { Value::Null }
}

fn facts<'a>(order: &'a Enqueue, inside: &'a Value) -> Facts<'a> {
    Facts { project: &order.project, session: order.source_session.as_ref(), payload: inside }
}

/// A message is known in its project: another one may use the same name for something else.
fn message_key(order: &Enqueue) -> Option<String> {
    let id = order.message_id.as_ref().filter(|id| is_message_id(id))?;
    Some(format!("{}/{id}", order.project))
}

fn is_message_id(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= limits::MESSAGE_ID_CHARS && !text.contains('\0')
}

/// Among those that the configured caps are about.
fn in_crowd(order: &Enqueue, entry: &Entry) -> bool {
    order.origin.is_outside() && entry.job_type.lane.is_default()
}

/// Refuses what is too large or lies at no possible time.
fn check(order: &Enqueue, now: Micros) -> Result<(), EnqueueError> {
    let bytes = order.payload.len();
    if bytes > limits::PAYLOAD_BYTES {
        return Err(EnqueueError::PayloadTooLarge { bytes, max: limits::PAYLOAD_BYTES });
    }
    let horizon = now.plus(limits::AHEAD);
    for (what, at) in [("the start", order.not_before), ("the deadline", order.deadline)] {
        if at.is_some_and(|at| at > horizon) {
            return Err(EnqueueError::TooFarAhead { what });
        }
    }
    if order.deadline.is_some_and(|at| at <= now) {
        return Err(EnqueueError::DeadlinePast);
    }
    if order.deadline.zip(order.not_before).is_some_and(|(deadline, start)| deadline <= start) {
        return Err(EnqueueError::DeadlineBeforeStart);
    }
    Ok(())
}

/// A job that this command has made.
struct Made {
    job: Job,
    cold: Cold,
}

pub(crate) struct Intake<'a> {
    view: View<'a>,
    defs: &'a Definitions,
    made: Vec<Made>,
    /// Which of `made` holds a key.
    keys: BTreeMap<dedupe::Key, usize>,
    messages: BTreeMap<String, JobId>,
    /// Payloads of earlier jobs that this command has merged into.
    merged: BTreeMap<JobId, Json>,
    waiting: BTreeMap<LaneKey, u32>,
    crowd: u32,
    changes: Changes,
}

impl<'a> Intake<'a> {
    pub fn new(view: View<'a>, defs: &'a Definitions) -> Self {
        Self {
            view,
            defs,
            made: Vec::new(),
            keys: BTreeMap::new(),
            messages: BTreeMap::new(),
            merged: BTreeMap::new(),
            waiting: BTreeMap::new(),
            crowd: 0,
            changes: Changes::none(),
        }
    }

    /// Everything that was taken in.
    pub fn finish(mut self) -> Changes {
        let mut changes = std::mem::take(&mut self.changes);
        for Made { job, cold } in self.made {
            let queued = Told::none()
                .and("from", "received")
                .and("lane", job.lane.key.as_str())
                .and("payload_sha256", &cold.payload.digest())
                .and("requeued_from", &cold.requeued_from)
                .and("session", &cold.source_session)
                .and("version", &job.kind.version);
            changes = changes.and(job.tells("job.queued", queued)).and(job.sinks(
                self.defs,
                Some(&cold.payload),
                Moment::Queued,
            ));
            if let Some(at) = cold.deadline_at {
                changes = changes.timer(timer::Change::Set { key: job.deadline_timer(), at });
            }
            changes = changes.job(Change::Create(job, cold));
        }
        changes
    }

    pub fn take(&mut self, order: &Enqueue, cx: &mut Ctx<'_>) -> Result<Enqueued, EnqueueError> {
        let rules = self.defs.rules;
        // What the engine asks for itself is never refused.
        if !rules.enabled && order.origin != Origin::Engine {
            return Err(EnqueueError::Disabled);
        }
        // What the engine keeps for itself does not exist for anybody else; they may repeat it.
        let own = |entry: &&Entry| !entry.job_type.internal || !order.origin.is_new();
        let Some(entry) = self.defs.newest(&order.org, &order.kind).filter(own) else {
            return Err(EnqueueError::UnknownType { name: order.kind.clone(), known: self.defs.names(&order.org) });
        };
        if order.message_id.as_ref().is_some_and(|id| !is_message_id(id)) {
            return Err(EnqueueError::BadMessageId);
        }
        // Before anything that time can make wrong: whoever says it again was understood the first time.
        if let Some(known) = self.said_before(order, cx.now)? {
            self.tell_of(&known);
            return Ok(known);
        }
        check(order, cx.now)?;
        let inside = inside(order, entry);
        let facts = facts(order, &inside);
        if let Some(shape) = &entry.payload {
            shape.check(&inside).map_err(|detail| EnqueueError::InvalidPayload { detail })?;
        }
        let key = entry.dedupe_key(&facts);
        if let Some(key) = &key
            && let Some(duplicate) = self.duplicate(order, entry, key)?
        {
            // Said again, the message still stands for this job, also when it has ended.
            self.remember(order, duplicate.job.id);
            self.tell_of(&duplicate);
            return Ok(duplicate);
        }
        let (place, depth) = place(order, entry, &facts, &rules)
            .map_err(|why| EnqueueError::InvalidPayload { detail: format!("its lane: {why}") })?;
        self.admit(order, entry, &place, depth, &rules)?;
        let follow_up = key.as_ref().is_some_and(|key| self.succeed(key));
        let made = self.make(order, entry, place, key, cx);
        let how = if follow_up { How::FollowUp } else { How::Enqueued };
        Ok(Enqueued { job: made.job.clone(), cold: made.cold.clone(), ending: None, how })
    }

    /// Refuses what would wait behind too many.
    fn admit(
        &mut self,
        order: &Enqueue,
        entry: &Entry,
        place: &lane::Place,
        depth: Option<u32>,
        rules: &Rules,
    ) -> Result<(), EnqueueError> {
        if !order.origin.is_outside() {
            return Ok(());
        }
        let own = self.waiting.get(&place.key).copied().unwrap_or(0);
        if place.kept {
            let waiting = self.view.lane(&place.key).map_or(0, |row| row.outside);
            if let Some(limit) = depth.filter(|depth| waiting.saturating_add(own) >= *depth) {
                return Err(EnqueueError::QueueFull { what: format!("lane {}", place.key), limit, waiting, own });
            }
        }
        if in_crowd(order, entry) {
            let (waiting, own) = (self.view.crowd(), self.crowd);
            if waiting.saturating_add(own) >= rules.max_global {
                let what = "the queue of all projects".to_owned();
                return Err(EnqueueError::QueueFull { what, limit: rules.max_global, waiting, own });
            }
            self.crowd += 1;
        }
        self.waiting.insert(place.key.clone(), own + 1);
        Ok(())
    }

    fn make(
        &mut self,
        order: &Enqueue,
        entry: &Entry,
        place: lane::Place,
        key: Option<dedupe::Key>,
        cx: &mut Ctx<'_>,
    ) -> &Made {
        let kind = &entry.job_type;
        let due_at = order.not_before.map_or(cx.now, |at| at.max(cx.now));
        let max_attempts =
            if order.once { 1 } else { kind.max_attempts.unwrap_or(self.defs.rules.max_attempts).max(1) };
        let job = Job {
            org: order.org.clone(),
            id: cx.ids.job(),
            project: order.project.clone(),
            kind: kind.kind(),
            priority: order.priority.unwrap_or(kind.priority),
            status: Status::Queued { due_at },
            lane: place,
            since: due_at,
            attempts: 0,
            max_attempts,
            failures: 0,
            max_failures: kind.retry.max_failures.unwrap_or(max_attempts),
            token: 0,
            wakes: 0,
            created_at: cx.now,
            started_at: None,
            has_deadline: order.deadline.is_some(),
            outside: order.origin.is_outside(),
            dedupe: key.as_ref().map(|key| key.text.clone()),
            aside: order.once.then(|| Box::new(Aside { once: true, ..Aside::default() })),
            head: Head::NONE,
        };
        let cold = Cold {
            payload: order.payload.clone(),
            source_session: order.source_session.clone(),
            deadline_at: order.deadline,
            dedupe_key: job.dedupe.clone(),
            requeued_from: match order.origin {
                Origin::Requeue(from) => Some(from),
                _ => None,
            },
            schedule: match order.origin {
                Origin::Schedule(by) => Some(by),
                _ => None,
            },
        };
        let at = self.made.len();
        if let Some(key) = key {
            self.keys.insert(key, at);
        }
        self.remember(order, job.id);
        self.made.push(Made { job, cold });
        &self.made[at]
    }
}

#[cfg(test)]
mod tests;
