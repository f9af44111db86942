//! Taking jobs in: what a single job, a batch, a repetition and a schedule have in common.
//!
//! One intake serves one command. It remembers what the command has taken in so far, so that the
//! jobs of a batch see each other as they would see jobs of earlier commands.

use super::enqueue::{Enqueue, EnqueueError, Enqueued, How, Origin};
use super::{Change, Cold, Ending, Job, Pause, Status};
use crate::canon::Json;
use crate::changes::Changes;
use crate::command::{Ctx, Reads};
use crate::dedupe::{self, Mode};
use crate::definition::{Definitions, Entry, Moment};
use crate::event::Head;
use crate::id::JobId;
use crate::lane::{self, LaneKey};
use crate::limits;
use crate::rules::Rules;
use crate::template::Facts;
use crate::time::Micros;
use crate::timer;
use crate::world::View;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What taking this order in must see.
pub(crate) fn reads(order: &Enqueue, defs: &Definitions) -> Reads {
    let mut reads = Reads::none();
    let Some(entry) = defs.newest(&order.kind) else { return reads };
    let inside = inside(order, entry);
    let facts = facts(order, &inside);
    if let Ok((place, _)) = entry.job_type.lane.place(&facts, defs.rules.max_per_project)
        && place.kept
    {
        reads.lanes.insert(place.key);
    }
    reads.dedupes.extend(entry.job_type.dedupe.key(&order.kind, &facts));
    // What is no message id is refused before anybody looks for it.
    reads.messages.extend(order.message_id.clone().filter(|id| is_message_id(id)));
    reads.crowd = counted(order, entry);
    reads
}

/// The payload as a value, if anybody will look at it.
fn inside(order: &Enqueue, entry: &Entry) -> Value {
    if entry.job_type.looks_inside() { order.payload.value() } else { Value::Null }
}

fn facts<'a>(order: &'a Enqueue, inside: &'a Value) -> Facts<'a> {
    Facts { project: &order.project, session: order.source_session.as_ref(), payload: inside }
}

fn is_message_id(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= limits::MESSAGE_ID_CHARS && !text.contains('\0')
}

/// Among those that the configured caps are about.
fn counted(order: &Enqueue, entry: &Entry) -> bool {
    order.origin.is_outside() && entry.job_type.lane.is_default()
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

/// Who already stands for what is asked for.
enum Holder<'a> {
    /// Made by this very command.
    Here(usize),
    There(&'a Job),
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
            let queued = json!({
                "from": "received",
                "lane": job.lane.key.as_str(),
                "payload_sha256": cold.payload.digest(),
                "requeued_from": cold.requeued_from,
                "session": cold.source_session,
                "version": job.kind.version,
            });
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
        if !rules.enabled {
            return Err(EnqueueError::Disabled);
        }
        let entry = self.check(order, cx)?;
        let inside = inside(order, entry);
        let facts = facts(order, &inside);
        if let Some(shape) = &entry.payload {
            shape.check(&inside).map_err(|detail| EnqueueError::InvalidPayload { detail })?;
        }
        if let Some(known) = self.said_before(order, cx.now)? {
            self.tell_of(&known);
            return Ok(known);
        }
        let key = entry.job_type.dedupe.key(&order.kind, &facts);
        if let Some(key) = &key
            && let Some(duplicate) = self.duplicate(order, entry, key)?
        {
            // Said again, the message still stands for this job, also when it has ended.
            self.remember(order, duplicate.job.id);
            self.tell_of(&duplicate);
            return Ok(duplicate);
        }
        let (place, depth) = entry
            .job_type
            .lane
            .place(&facts, rules.max_per_project)
            .map_err(|field| EnqueueError::InvalidPayload { detail: format!("the lane is named after {field}") })?;
        let counted = counted(order, entry);
        self.admit(order, &place, depth, counted, &rules)?;
        let follow_up = key.as_ref().is_some_and(|key| self.succeed(key));
        let made = self.make(order, entry, place, counted, key, cx);
        let how = if follow_up { How::FollowUp } else { How::Enqueued };
        Ok(Enqueued { job: made.job.clone(), cold: made.cold.clone(), ending: None, how })
    }

    fn check(&self, order: &Enqueue, cx: &Ctx<'_>) -> Result<&'a Entry, EnqueueError> {
        let Some(entry) = self.defs.newest(&order.kind) else {
            let mut known = self.defs.job_types().map(|t| t.name.as_str()).collect::<Vec<_>>();
            known.dedup();
            return Err(EnqueueError::UnknownType { name: order.kind.clone(), known: known.join(", ") });
        };
        let bytes = order.payload.len();
        if bytes > limits::PAYLOAD_BYTES {
            return Err(EnqueueError::PayloadTooLarge { bytes, max: limits::PAYLOAD_BYTES });
        }
        if order.message_id.as_ref().is_some_and(|id| !is_message_id(id)) {
            return Err(EnqueueError::BadMessageId);
        }
        let horizon = cx.now.plus(limits::AHEAD);
        for (what, at) in [("the start", order.not_before), ("the deadline", order.deadline)] {
            if at.is_some_and(|at| at > horizon) {
                return Err(EnqueueError::TooFarAhead { what });
            }
        }
        if order.deadline.is_some_and(|at| at <= cx.now) {
            return Err(EnqueueError::DeadlinePast);
        }
        Ok(entry)
    }

    /// What the same message came to before.
    fn said_before(&self, order: &Enqueue, now: Micros) -> Result<Option<Enqueued>, EnqueueError> {
        let Some(message) = &order.message_id else { return Ok(None) };
        if let Some(id) = self.messages.get(message)
            && let Some(made) = self.made.iter().find(|made| made.job.id == *id)
        {
            return Ok(Some(standing(&made.job, &made.cold, None, How::SameMessage)));
        }
        let known = self.messages.get(message).copied().or_else(|| self.view.message(message, now));
        let Some(id) = known else { return Ok(None) };
        match self.view.record(id) {
            Some((job, cold, ending)) => Ok(Some(standing(job, cold, ending, How::SameMessage))),
            None => Err(EnqueueError::MessageForgotten { job: id }),
        }
    }

    /// A request that came to nothing new is counted, but is no event.
    fn tell_of(&mut self, known: &Enqueued) {
        self.changes.notes.push(known.job.note("job.deduplicated", Some(known.how.as_str())));
    }

    /// From now on the order's message stands for this job.
    fn remember(&mut self, order: &Enqueue, job: JobId) {
        if let Some(message) = &order.message_id {
            self.messages.insert(message.clone(), job);
            self.changes.messages.push((message.clone(), job));
        }
    }

    fn holder(&self, key: &dedupe::Key) -> Option<Holder<'a>> {
        if let Some(at) = self.keys.get(key) {
            return Some(Holder::Here(*at));
        }
        self.view.dedupe(key).map(Holder::There)
    }

    /// What a duplicate comes to, if it makes no new job.
    fn duplicate(
        &mut self,
        order: &Enqueue,
        entry: &Entry,
        key: &dedupe::Key,
    ) -> Result<Option<Enqueued>, EnqueueError> {
        let mode = entry.job_type.dedupe.mode;
        let how = match self.holder(key) {
            None => return Ok(None),
            Some(Holder::Here(at)) => {
                if mode == Mode::MergeDuplicate {
                    let cold = &mut self.made[at].cold;
                    cold.payload = merged(entry, &cold.payload, &order.payload)?;
                    let made = &self.made[at];
                    return Ok(Some(standing(&made.job, &made.cold, None, How::Merged)));
                }
                let made = &self.made[at];
                let how = if mode == Mode::DropDuplicate { How::Dropped } else { How::AlreadyQueued };
                return Ok(Some(standing(&made.job, &made.cold, None, how)));
            }
            Some(Holder::There(job)) => match (mode, &job.status) {
                (_, Status::Ended { how, .. }) => {
                    let dropped = mode == Mode::DropDuplicate && *how == super::End::Completed;
                    dropped.then_some((job, How::Dropped))
                }
                (Mode::None, _) => None,
                (Mode::SingleFlight, _) => Some((job, How::AlreadyQueued)),
                (Mode::DropDuplicate, _) => Some((job, How::Dropped)),
                (Mode::MergeDuplicate, Status::Queued { .. } | Status::AwaitingTool { pause: Pause::Retry, .. }) => {
                    Some((job, How::Merged))
                }
                (Mode::MergeDuplicate, _) => None,
            },
        };
        let Some((job, how)) = how else { return Ok(None) };
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
    fn succeed(&mut self, key: &dedupe::Key) -> bool {
        let Some(Holder::There(job)) = self.holder(key) else { return false };
        if job.is_ended() {
            return false;
        }
        let changes = std::mem::take(&mut self.changes);
        self.changes = changes.job(Change::Put(Job { dedupe: None, ..job.clone() }));
        true
    }

    /// Refuses what would wait behind too many.
    fn admit(
        &mut self,
        order: &Enqueue,
        place: &lane::Place,
        depth: Option<u32>,
        counted: bool,
        rules: &Rules,
    ) -> Result<(), EnqueueError> {
        let own = self.waiting.get(&place.key).copied().unwrap_or(0);
        if place.kept && order.origin.is_outside() {
            let waiting = self.view.lane(&place.key).map_or(0, |row| row.waiting) + own;
            if let Some(limit) = depth.filter(|depth| waiting >= *depth) {
                return Err(EnqueueError::QueueFull { what: format!("lane {}", place.key), limit, waiting });
            }
        }
        if counted {
            let waiting = self.view.crowd().saturating_add(self.crowd);
            if waiting >= rules.max_global {
                let what = "the queue of all projects".to_owned();
                return Err(EnqueueError::QueueFull { what, limit: rules.max_global, waiting });
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
        counted: bool,
        key: Option<dedupe::Key>,
        cx: &mut Ctx<'_>,
    ) -> &Made {
        let kind = &entry.job_type;
        let due_at = order.not_before.map_or(cx.now, |at| at.max(cx.now));
        let max_attempts = kind.max_attempts.unwrap_or(self.defs.rules.max_attempts).max(1);
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
            counted,
            dedupe: key.as_ref().map(|key| key.text.clone()),
            aside: None,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Refusal;
    use crate::definition::JobType;
    use crate::job::batch::Batch;
    use crate::job::bench_top::{BenchTop, NOW, done, echo_type, enqueue};
    use crate::job::settle::Outcome;
    use crate::job::{Failure, State};
    use crate::lane::Limit;
    use crate::name::OrgId;
    use crate::time::Span;

    fn deduped(mode: Mode) -> BenchTop {
        let rule = dedupe::Rule { mode, key: Some("{project}:{payload.k}".parse().unwrap()) };
        BenchTop::of(JobType { dedupe: rule, ..echo_type() })
    }

    fn order(key: &str, more: &str) -> Enqueue {
        Enqueue { payload: Json::of(&json!({ "k": key, more: true })), ..enqueue() }
    }

    /// Brings the job with a key into a state, asks again, and says what became of it.
    fn asked_again(mode: Mode, state: &str) -> How {
        let mut top = deduped(mode);
        let job = top.done(&order("a", "first")).job;
        top.track(job.id);
        let held = (state != "queued").then(|| top.claim());
        if let Some(held) = &held {
            match state {
                "retry" => top.settle(held, Outcome::Failed(Failure::transient("x", "x"))),
                "tool" => top.settle(held, Outcome::Park { until: None, seen: 0 }),
                "asked" => top.settle(held, Outcome::Ask(Json::of(&json!({})))),
                "completed" => top.settle(held, done()),
                "failed" => top.settle(held, Outcome::Failed(Failure::fatal("x", "x"))),
                "stopped" => top.settle(held, Outcome::Stopped),
                _ => crate::job::settle::Settled::Now,
            };
        }
        let again = top.done(&order("a", "second"));
        assert_eq!(again.how.is_new(), again.job.id != job.id);
        again.how
    }

    #[test]
    fn every_mode_in_every_state() {
        use How::{AlreadyQueued, Dropped, Enqueued, FollowUp, Merged};
        let states = ["queued", "running", "retry", "tool", "asked", "completed", "failed", "stopped"];
        for (mode, expected) in [
            (Mode::None, [Enqueued; 8]),
            (
                Mode::SingleFlight,
                [
                    AlreadyQueued,
                    AlreadyQueued,
                    AlreadyQueued,
                    AlreadyQueued,
                    AlreadyQueued,
                    Enqueued,
                    Enqueued,
                    Enqueued,
                ],
            ),
            (Mode::DropDuplicate, [Dropped, Dropped, Dropped, Dropped, Dropped, Dropped, Enqueued, Enqueued]),
            (Mode::MergeDuplicate, [Merged, FollowUp, Merged, FollowUp, FollowUp, Enqueued, Enqueued, Enqueued]),
        ] {
            for (state, expected) in states.into_iter().zip(expected) {
                assert_eq!(asked_again(mode, state), expected, "{mode:?} {state}");
            }
        }
    }

    #[test]
    fn merging_takes_the_new_payload_in_and_one_follow_up_is_enough() {
        let mut top = deduped(Mode::MergeDuplicate);
        let first = top.done(&order("a", "first"));
        top.track(first.job.id);
        let merged = top.done(&order("a", "second"));
        assert_eq!(merged.cold.payload.value(), json!({ "first": true, "k": "a", "second": true }));
        assert!(top.kinds().contains(&"job.merged"));
        top.claim();
        let next = top.done(&order("a", "third"));
        assert_eq!(next.how, How::FollowUp);
        let more = top.done(&order("a", "fourth"));
        assert_eq!((more.how, more.job.id), (How::Merged, next.job.id));
        assert_eq!(more.cold.payload.value(), json!({ "fourth": true, "k": "a", "third": true }));
        assert_eq!(top.done(&order("b", "other")).how, How::Enqueued);
    }

    #[test]
    fn a_key_that_cannot_be_filled_in_has_no_duplicates() {
        let mut top = deduped(Mode::SingleFlight);
        for _ in 0..2 {
            let made = top.done(&enqueue());
            assert_eq!((made.how, made.job.dedupe), (How::Enqueued, None));
        }
    }

    #[test]
    fn a_message_is_one_job_for_a_day() {
        let mut top = BenchTop::new();
        let said = Enqueue { message_id: Some("m-1".to_owned()), ..enqueue() };
        let first = top.done(&said);
        let again = top.done(&Enqueue { payload: Json::of(&json!({ "other": 1 })), ..said.clone() });
        assert_eq!((again.how, again.job.id), (How::SameMessage, first.job.id));
        top.now = NOW.plus(limits::MESSAGE_KEPT);
        assert_eq!(top.done(&said).how, How::Enqueued);
        for (mode, key) in [(Mode::SingleFlight, "single"), (Mode::DropDuplicate, "drop")] {
            let mut top = deduped(mode);
            let first = top.done(&order(key, "x")).job.id;
            let said = Enqueue { message_id: Some("m-2".to_owned()), ..order(key, "x") };
            assert_eq!(top.done(&said).job.id, first, "it came to a job that was there");
            top.track(first);
            let job = top.claim();
            top.settle(&job, Outcome::Failed(Failure::fatal("x", "x")));
            assert_eq!(top.done(&said).how, How::SameMessage, "and it stays with it");
        }
        for bad in ["", &"x".repeat(256), "a\0b"] {
            let bad = Enqueue { message_id: Some(bad.to_owned()), ..enqueue() };
            assert_eq!(top.refuse(&bad).code(), "invalid_message_id");
        }
    }

    #[test]
    fn a_project_and_the_whole_queue_have_room_for_so_many() {
        let rules = Rules { max_per_project: 2, max_global: 3, ..Rules::default() };
        let mut top = BenchTop::with(Definitions::with([Entry::plain(echo_type())], rules));
        let other = Enqueue { project: "p2".parse().unwrap(), ..enqueue() };
        top.enqueue();
        top.enqueue();
        let full = top.refuse(&enqueue());
        assert_eq!(full, EnqueueError::QueueFull { what: "lane project:p1".to_owned(), limit: 2, waiting: 2 });
        top.done(&other);
        assert_eq!(top.refuse(&other).code(), "queue_full", "all projects together");
        let own = Enqueue { origin: Origin::Engine, ..enqueue() };
        top.done(&own);
        top.claim();
        assert_eq!(top.done(&other).how, How::Enqueued, "what runs does not wait");
    }

    #[test]
    fn a_lane_of_its_own_has_its_own_depth() {
        let lane = lane::Rule::Own { key: "k:{payload.k}".parse().unwrap(), limit: Limit::None, depth: Some(1) };
        let mut top = BenchTop::of(JobType { lane, ..echo_type() });
        let job = top.done(&order("a", "x")).job;
        assert_eq!((job.lane.key.as_str(), job.lane.max, job.counted), ("k:a", None, false));
        assert_eq!(top.refuse(&order("a", "x")).code(), "queue_full");
        top.done(&order("b", "x"));
        assert_eq!(top.refuse(&enqueue()).code(), "invalid_payload", "the lane has no name");
    }

    #[test]
    fn a_batch_is_taken_whole_or_not_at_all_and_sees_itself() {
        let rules = Rules { max_per_project: 3, ..Rules::default() };
        let rule = dedupe::Rule { mode: Mode::SingleFlight, key: Some("{payload.k}".parse().unwrap()) };
        let kind = JobType { dedupe: rule, ..echo_type() };
        let mut top = BenchTop::with(Definitions::with([Entry::plain(kind)], rules));
        let batch =
            |keys: &[&str]| Batch { org: OrgId::default(), jobs: keys.iter().map(|key| order(key, "x")).collect() };
        assert_eq!(top.refuse(&batch(&["a", "b", "c", "d"])).code(), "queue_full");
        assert!(top.kinds().is_empty());
        let taken = top.done(&batch(&["a", "b", "a", "c"]));
        assert_eq!(taken[2].how, How::AlreadyQueued);
        assert_eq!(taken[2].job.id, taken[0].job.id);
        assert_eq!(top.kinds().len(), 3);
        assert_eq!(top.refuse(&batch(&[])).code(), "batch_size");
    }

    #[test]
    fn a_queue_that_is_switched_off_takes_nothing() {
        let rules = Rules { enabled: false, ..Rules::default() };
        let mut top = BenchTop::with(Definitions::with([Entry::plain(echo_type())], rules));
        assert_eq!(top.refuse(&enqueue()).code(), "queue_disabled");
    }

    #[test]
    fn lanes_count_who_waits_and_who_runs_whatever_happens() {
        let mut top = BenchTop::new();
        let key = LaneKey::of_project(&"p1".parse().unwrap());
        let counts = |top: &BenchTop| {
            let row = top.world.lane(&OrgId::default(), &key).unwrap();
            (row.waiting, row.running)
        };
        top.enqueue();
        assert_eq!(counts(&top), (1, 0));
        let job = top.claim();
        assert_eq!(counts(&top), (0, 1));
        top.settle(&job, Outcome::Park { until: Some(NOW), seen: 0 });
        assert_eq!(counts(&top), (0, 1), "waiting for its tool it keeps its slot");
        let job = top.claim();
        top.settle(&job, Outcome::Failed(Failure::transient("x", "x")));
        assert_eq!(counts(&top), (1, 0), "waiting to try again it does not");
        top.now = NOW.plus(Span::secs(99));
        let job = top.claim();
        top.settle(&job, Outcome::Ask(Json::of(&json!({}))));
        assert_eq!(counts(&top), (1, 0), "nor waiting for a person");
        top.done(&crate::job::cancel::Cancel { org: OrgId::default(), job: job.id, reason: None });
        assert_eq!(counts(&top), (0, 0));
        assert_eq!(top.latest().status.state(), State::Cancelled);
    }
}
