//! Handing out jobs: what the database found becomes lanes for [`schedule::pick`], and what that
//! picks is claimed. The databases find, the core chooses; here the two meet.

use crate::group::{Ask, Claimed, Env, Leased};
use baton_core::canon::Json;
use baton_core::command::Actor;
use baton_core::job::claim::claim;
use baton_core::job::{Cold, Job};
use baton_core::schedule::{self, Class, Head, Lane, LaneId, Looked, Offer, Place};
use baton_core::{JobId, Micros, World, doc};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Lanes that one claim walks over to find some that have something to give.
pub(crate) const LOOK_MAX: usize = 1_000;
/// Ready rows of one lane that a claim looks at for one that it can run.
pub(crate) const SCAN_MAX: usize = 1_000;
/// Background lanes looked at beyond those that are needed, for jobs that have waited too long.
pub(crate) const PROBE: usize = 4;

/// A due job that the database found for an ask.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub place: Place,
    pub job: Arc<Job>,
    pub payload: Json,
}

/// The same once its job is part of the world.
struct Offered {
    job: JobId,
    payload: Json,
}

/// What the database found for an ask.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Heads of lanes that may give something, by lane.
    pub lanes: BTreeMap<LaneId, Vec<Candidate>>,
    pub looked: Looked,
    /// Not all lanes were looked at, or some were in other hands.
    pub more: bool,
    pub next_due: Option<Micros>,
    /// Scheduled jobs joined the ready ones, which is worth a commit of its own.
    pub promoted: bool,
}

pub(crate) fn hand_out(ask: &Ask, found: Found, world: &mut World, env: &Env<'_>) -> Claimed {
    let actor = Actor::Worker(ask.worker.clone());
    let rules = &env.defs.rules;
    let (more, next_due) = (found.more, found.next_due);
    let lanes: Vec<Lane<Offered>> =
        found.lanes.into_iter().map(|(id, heads)| lane(ask, id, heads, world, env)).collect();
    let offer = Offer::of(&lanes, env.now, rules);
    let unseen = lanes.iter().any(|lane| may_have_more(lane, ask.slots));
    let mut turns = ask.turns.clone();
    let mut leased = Vec::new();
    let schedule::Choice { picked, left } = schedule::pick(lanes, &mut turns, ask.slots, env.now, rules);
    for picked in picked {
        let (org, key) = &picked.lane;
        let Offered { job, payload } = picked.item;
        // A command of this group may have merged something into it.
        let payload = world.new_payload(org, job).cloned().unwrap_or(payload);
        let Some(ready) = world.job(org, job) else { continue };
        if let Some(changes) = claim(ready, &payload, &ask.worker, env.defs, env.now) {
            world.apply(org, &actor, env.now, changes);
            world.set_burst(org, key, picked.burst);
            leased.extend(world.job(org, job).map(|job| Leased { job: job.clone(), payload, at: env.now }));
        }
    }
    turns.move_on(&ask.turns, offer, found.looked);
    let filled = leased.len() >= ask.slots;
    let left = filled && (left || more || unseen);
    Claimed { leased, next_due, now: env.now, turns, more: more && !filled, left, asked_at: None }
}

type Newborn<'w> = (Place, &'w Arc<Job>, &'w Cold);

/// The jobs that a group has brought in, where nobody else waits before them.
pub(crate) fn newborn(ask: &Ask, world: &World, paused: &BTreeSet<LaneId>) -> Found {
    let mut lanes: BTreeMap<LaneId, (u32, Vec<Newborn<'_>>)> = BTreeMap::new();
    let wanted = world.newborn().filter(|(job, _)| ask.wants(job));
    for (order, (job, cold)) in (0..).zip(wanted) {
        let (waiting, heads) = lanes.entry((job.org.clone(), job.lane.key.clone())).or_default();
        *waiting += u32::from(job.lane.kept && job.status.waits());
        heads.push((Place { priority: job.priority, order }, job, cold));
    }
    let pausing = |(org, lane): &LaneId| {
        let mut docs = world.doc_writes().filter(|(_, key, doc)| key.class == doc::Class::Lane && doc.flag);
        docs.any(|(of, key, _)| of == org && key.key == lane.as_str())
    };
    lanes.retain(|id, (waiting, _)| {
        let others = world.lane(&id.0, &id.1).is_some_and(|row| row.waiting > *waiting);
        !others && !paused.contains(id) && !pausing(id)
    });
    let best = |mut heads: Vec<Newborn<'_>>| {
        heads.sort_unstable_by_key(|(place, ..)| *place);
        let best = heads.into_iter().take(ask.slots);
        best.map(|(place, job, cold)| Candidate { place, job: job.clone(), payload: cold.payload.clone() }).collect()
    };
    Found { lanes: lanes.into_iter().map(|(id, (_, heads))| (id, best(heads))).collect(), ..Found::default() }
}

/// Whether the database may know more jobs of a lane that could go than it has shown. It shows as many as are wanted; where
/// slots are needed and there are no more than that, those behind get none.
fn may_have_more<T>(lane: &Lane<T>, wanted: usize) -> bool {
    let roomy = lane.free.is_none_or(|free| free as usize > wanted);
    let all = lane.interactive.iter().chain(&lane.background);
    all.filter(|head| roomy || !head.needs_slot).count() >= wanted
}

/// A lane as it stands now: a command of this group may have touched it or its jobs.
fn lane(ask: &Ask, id: LaneId, heads: Vec<Candidate>, world: &mut World, env: &Env<'_>) -> Lane<Offered> {
    let (org, key) = &id;
    let mut queues: [Vec<Head<Offered>>; 2] = [Vec::new(), Vec::new()];
    for Candidate { place, mut job, payload } in heads {
        let id = job.id;
        Arc::make_mut(&mut job).ready_at(env.now);
        world.load_job(org, id, Some(job));
        let Some(job) = world.job(org, id) else { continue };
        let entry = env.defs.entry(org, &job.kind);
        if !job.claimable(env.now) || !entry.is_some_and(|entry| ask.serves(entry.served)) {
            continue;
        }
        let head = Head { place, since: job.since, needs_slot: job.needs_slot(), item: Offered { job: id, payload } };
        queues[usize::from(Class::of(head.place.priority) == Class::Background)].push(head);
    }
    let [interactive, background] = queues.map(|mut queue| {
        queue.sort_by_key(|head| head.place);
        VecDeque::from(queue)
    });
    let row = world.lane(org, key);
    let (free, burst) = (row.and_then(|row| row.free()), row.map(|row| row.burst));
    Lane { free, burst, interactive, background, id }
}
