//! What was asked for before: messages that are said again, and duplicates.

use super::{Intake, message_key};
use crate::canon::Json;
use crate::dedupe::{self, Mode};
use crate::definition::Entry;
use crate::id::JobId;
use crate::job::enqueue::{Enqueue, EnqueueError, Enqueued, How};
use crate::job::{Change, Cold, End, Ending, Job, Pause, Status};
use crate::limits;
use crate::time::Micros;
use serde_json::json;

/// Who already stands for what is asked for.
#[derive(Clone, Copy)]
enum Holder<'a> {
    /// Made by this very command.
    Here(usize),
    There(&'a Job),
}

impl<'a> Intake<'a> {
    /// What the same message came to before.
    pub(super) fn said_before(&self, order: &Enqueue, now: Micros) -> Result<Option<Enqueued>, EnqueueError> {
        let Some(message) = &message_key(order) else { return Ok(None) };
        if let Some(id) = self.messages.get(message)
            && let Some(made) = self.made.iter().find(|made| made.job.id == *id)
        {
            return same(order, standing(&made.job, &made.cold, None, How::SameMessage));
        }
        let known = self.messages.get(message).copied().or_else(|| self.view.message(message, now));
        let Some(id) = known else { return Ok(None) };
        match self.view.record(id) {
            Some((job, cold, ending)) => same(order, standing(job, cold, ending, How::SameMessage)),
            None => Err(EnqueueError::MessageForgotten { job: id }),
        }
    }

    /// A request that came to nothing new is counted, but is no event.
    pub(super) fn tell_of(&mut self, known: &Enqueued) {
        self.changes.notes.push(known.job.note("job.deduplicated", Some(known.how.as_str())));
    }

    /// From now on the order's message stands for this job.
    pub(super) fn remember(&mut self, order: &Enqueue, job: JobId) {
        if let Some(message) = message_key(order) {
            self.messages.insert(message.clone(), job);
            self.changes.messages.push((message, job));
        }
    }

    fn holder(&self, key: &dedupe::Key) -> Option<Holder<'a>> {
        if let Some(at) = self.keys.get(key) {
            return Some(Holder::Here(*at));
        }
        self.view.dedupe(key).map(Holder::There)
    }

    /// The job because of which an order would make no new one. Looking changes nothing.
    pub fn stands_for(&self, order: &Enqueue) -> Option<JobId> {
        let entry = self.defs.newest(&order.org, &order.kind)?;
        let inside = super::inside(order, entry);
        let key = entry.dedupe_key(&super::facts(order, &inside))?;
        match self.stand_in(entry.job_type.dedupe.mode, &key)?.0 {
            Holder::Here(at) => Some(self.made[at].job.id),
            Holder::There(job) => Some(job.id),
        }
    }

    /// Who stands for a key so that nothing new is made, and how.
    fn stand_in(&self, mode: Mode, key: &dedupe::Key) -> Option<(Holder<'a>, How)> {
        let holder = self.holder(key)?;
        let how = match (mode, holder) {
            (Mode::MergeDuplicate, Holder::Here(_)) => How::Merged,
            (Mode::DropDuplicate | Mode::Once, Holder::Here(_)) => How::Dropped,
            (_, Holder::Here(_)) => How::AlreadyQueued,
            (_, Holder::There(job)) => match (mode, &job.status) {
                (Mode::DropDuplicate, Status::Ended { how: End::Completed, .. }) | (Mode::Once, _) => How::Dropped,
                (_, Status::Ended { .. }) | (Mode::None, _) => return None,
                (Mode::SingleFlight, _) => How::AlreadyQueued,
                (Mode::DropDuplicate, _) => How::Dropped,
                (Mode::MergeDuplicate, Status::Queued { .. } | Status::AwaitingTool { pause: Pause::Retry, .. }) => {
                    How::Merged
                }
                (Mode::MergeDuplicate, _) => return None,
            },
        };
        Some((holder, how))
    }

    /// What a duplicate comes to, if it makes no new job.
    pub(super) fn duplicate(
        &mut self,
        order: &Enqueue,
        entry: &Entry,
        key: &dedupe::Key,
    ) -> Result<Option<Enqueued>, EnqueueError> {
        let (job, how) = match self.stand_in(entry.job_type.dedupe.mode, key) {
            None => return Ok(None),
            Some((Holder::Here(at), how)) => {
                if how == How::Merged {
                    let cold = &mut self.made[at].cold;
                    cold.payload = merged(entry, &cold.payload, &order.payload)?;
                }
                let made = &self.made[at];
                return Ok(Some(standing(&made.job, &made.cold, None, how)));
            }
            Some((Holder::There(job), how)) => (job, how),
        };
        let Some((_, cold, ending)) = self.view.record(job.id) else { return Ok(None) };
        if how != How::Merged {
            return Ok(Some(standing(job, cold, ending, how)));
        }
        let waiting = self.merged.get(&job.id).unwrap_or(&cold.payload);
        let cold = Cold { payload: merged(entry, waiting, &order.payload)?, ..cold.clone() };
        self.merged.insert(job.id, cold.payload.clone());
        let event = job.tells("job.merged", json!({ "payload_sha256": cold.payload.digest() }));
        let changes = std::mem::take(&mut self.changes);
        self.changes =
            changes.and(event).job(Change::Put(job.clone())).job(Change::Payload(job.id, cold.payload.clone()));
        Ok(Some(Enqueued { job: job.clone(), cold, ending: None, how }))
    }

    /// Whoever runs under the key hands it to the job that is about to be made; whether somebody
    /// did.
    pub(super) fn succeed(&mut self, key: &dedupe::Key) -> bool {
        let Some(Holder::There(job)) = self.holder(key) else { return false };
        if job.is_ended() {
            return false;
        }
        let changes = std::mem::take(&mut self.changes);
        self.changes = changes.job(Change::Put(Job { dedupe: None, ..job.clone() }));
        true
    }
}

/// What a message stands for is an answer only to somebody who asks for the same.
fn same(order: &Enqueue, known: Enqueued) -> Result<Option<Enqueued>, EnqueueError> {
    if known.job.kind.name == order.kind { Ok(Some(known)) } else { Err(EnqueueError::MessageOfAnotherType) }
}

fn standing(job: &Job, cold: &Cold, ending: Option<&Ending>, how: How) -> Enqueued {
    Enqueued { job: job.clone(), cold: cold.clone(), ending: ending.cloned(), how }
}

/// The payload after merging, which must still fit.
fn merged(entry: &Entry, waiting: &Json, incoming: &Json) -> Result<Json, EnqueueError> {
    let (waiting, incoming) = (waiting.value(), incoming.value());
    let value = match &entry.hooks {
        Some(hooks) => hooks.merge(&waiting, &incoming),
        None => dedupe::merge_patch(&waiting, &incoming),
    };
    if let Some(shape) = &entry.payload {
        shape.check(&value).map_err(|detail| EnqueueError::InvalidPayload { detail })?;
    }
    let payload = Json::of(&value);
    if payload.len() > limits::PAYLOAD_BYTES {
        return Err(EnqueueError::PayloadTooLarge { bytes: payload.len(), max: limits::PAYLOAD_BYTES });
    }
    Ok(payload)
}
