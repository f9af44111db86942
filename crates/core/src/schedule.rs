//! Which due job goes next.
//!
//! Decided here and nowhere else, so that both databases choose alike. The store shows the heads
//! of some lanes; this says which of them are handed out.
//!
//! Inside a lane: lower priority numbers first, then the order of arrival. Across lanes: the
//! interactive class before the background one, and in each class the lanes take turns, so that a
//! busy lane delays another by one job and no more. A background job that has waited for
//! [`Rules::aging`] goes first after at most [`Rules::burst`] interactive jobs in a row, whatever its
//! number; that holds inside each lane and across lanes. Among background jobs alone the numbers
//! decide.
//!
//! Invariants
//! - Never more jobs than asked for, never more from a lane than it has slots.
//! - A job that brings its slot (it only paused for a tool) needs no free one.

use crate::job;
use crate::lane::LaneKey;
use crate::name::OrgId;
use crate::rules::Rules;
use crate::time::Micros;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A lane among the lanes of all orgs.
pub type LaneId = (OrgId, LaneKey);

/// Where a job stands inside its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub priority: i32,
    /// The order of arrival.
    pub order: i64,
}

/// What the lanes are served by first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    Interactive,
    Background,
}

impl Class {
    pub const ALL: [Self; 2] = [Self::Interactive, Self::Background];

    pub const fn of(priority: i32) -> Self {
        if priority >= job::BACKGROUND { Self::Background } else { Self::Interactive }
    }

    /// As it stands in the store.
    pub const fn number(self) -> i16 {
        match self {
            Self::Interactive => 0,
            Self::Background => 1,
        }
    }
}

/// What somebody who asks for jobs remembers from one claim to the next. Losing it costs nobody
/// more than a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// The lane that was served last, per class; the next one after it comes first.
    pub interactive: Option<LaneId>,
    pub background: Option<LaneId>,
    /// Interactive jobs handed out since the last background one.
    pub burst: u32,
    /// The same per lane, for lanes that have no row to remember it.
    pub bursts: BTreeMap<LaneId, u32>,
}

/// Lanes without a row whose bursts are remembered; then all is forgotten.
const BURSTS_MAX: usize = 10_000;

impl Turns {
    pub const fn last(&self, class: Class) -> Option<&LaneId> {
        match class {
            Class::Interactive => self.interactive.as_ref(),
            Class::Background => self.background.as_ref(),
        }
    }

    fn served(&mut self, class: Class, lane: &LaneId) {
        match class {
            Class::Interactive => self.interactive = Some(lane.clone()),
            Class::Background => self.background = Some(lane.clone()),
        }
    }
}

/// A due job, as the store shows it.
#[derive(Clone, Debug)]
pub struct Head<T> {
    pub place: Place,
    /// Since when it could have been handed out.
    pub since: Micros,
    /// A slot of its lane must be free for it: it holds none yet, and is counted there.
    pub needs_slot: bool,
    pub item: T,
}

/// A lane with its next jobs, best first; behind them may be one that has waited for longer.
#[derive(Clone, Debug)]
pub struct Lane<T> {
    pub id: LaneId,
    /// Slots that can be given; `None` has no limit.
    pub free: Option<u32>,
    /// What the lane's row remembers; `None` has no row.
    pub burst: Option<u32>,
    pub interactive: VecDeque<Head<T>>,
    pub background: VecDeque<Head<T>>,
}

impl<T> Lane<T> {
    fn queue(&mut self, class: Class) -> &mut VecDeque<Head<T>> {
        match class {
            Class::Interactive => &mut self.interactive,
            Class::Background => &mut self.background,
        }
    }

    /// The place of the next job of a class that can be handed out.
    fn next(&self, class: Class) -> Option<usize> {
        let queue = match class {
            Class::Interactive => &self.interactive,
            Class::Background => &self.background,
        };
        queue.iter().position(|head| !head.needs_slot || self.free != Some(0))
    }

    /// The place of the background job that has waited for longest, if that is too long.
    fn aged(&self, now: Micros, rules: &Rules) -> Option<usize> {
        let can = |head: &Head<T>| !head.needs_slot || self.free != Some(0);
        let old = |head: &Head<T>| now.since(head.since) > rules.aging;
        let aged = self.background.iter().enumerate().filter(|(_, head)| can(head) && old(head));
        aged.min_by_key(|(_, head)| (head.since, head.place)).map(|(at, _)| at)
    }
}

/// A job to hand out.
#[derive(Clone, Debug)]
pub struct Picked<T> {
    pub lane: LaneId,
    /// What the lane's row shall remember from now on.
    pub burst: u32,
    pub item: T,
}

/// What is handed out.
#[derive(Clone, Debug)]
pub struct Choice<T> {
    /// In their order.
    pub picked: Vec<Picked<T>>,
    /// With more slots there would have been more.
    pub left: bool,
}

/// Chooses up to `slots` jobs.
pub fn pick<T>(lanes: Vec<Lane<T>>, turns: &mut Turns, slots: usize, now: Micros, rules: &Rules) -> Choice<T> {
    let mut ring = Ring::new(lanes);
    let mut picked = Vec::new();
    while picked.len() < slots {
        let Some((at, turn)) = ring.turn(turns, now, rules) else { break };
        let lane = &mut ring.lanes[at];
        turns.served(turn.class(), &lane.id);
        let aged = match turn {
            Turn::Aged => lane.aged(now, rules),
            // The turn was given to the lane's interactive jobs, but it has had enough of them.
            Turn::Interactive if burst(lane, turns) >= rules.burst => lane.aged(now, rules),
            Turn::Interactive | Turn::Background => None,
        };
        let from = if aged.is_some() { Class::Background } else { turn.class() };
        let Some(at) = aged.or_else(|| lane.next(from)) else { break };
        let Some(head) = lane.queue(from).remove(at) else { break };
        if head.needs_slot {
            lane.free = lane.free.map(|free| free.saturating_sub(1));
        }
        let burst = match from {
            Class::Interactive => burst(lane, turns).saturating_add(1),
            Class::Background => 0,
        };
        turns.burst = if from == Class::Interactive { turns.burst.saturating_add(1) } else { 0 };
        remember(lane, turns, burst);
        picked.push(Picked { lane: lane.id.clone(), burst, item: head.item });
    }
    let left = picked.len() == slots && ring.turn(turns, now, rules).is_some();
    Choice { picked, left }
}

/// The last lanes that were looked at, per class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    pub interactive: Option<LaneId>,
    pub background: Option<LaneId>,
}

/// What lanes had to offer before any of it was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    interactive: bool,
    aged: bool,
}

impl Offer {
    pub fn of<T>(lanes: &[Lane<T>], now: Micros, rules: &Rules) -> Self {
        Self {
            interactive: lanes.iter().any(|lane| lane.next(Class::Interactive).is_some()),
            aged: lanes.iter().any(|lane| lane.aged(now, rules).is_some()),
        }
    }
}

impl Turns {
    /// A look that found nothing to hand out moves on, so that the next one sees other lanes. Aged
    /// jobs that were seen and not served are stayed with.
    pub fn move_on(&mut self, before: &Self, offer: Offer, looked: Looked) {
        if self.interactive == before.interactive && !offer.interactive {
            self.interactive = looked.interactive.or(self.interactive.take());
        }
        if self.background == before.background && !offer.aged {
            self.background = looked.background.or(self.background.take());
        }
    }
}

/// What a lane's turn is for.
#[derive(Clone, Copy)]
enum Turn {
    Interactive,
    Background,
    /// Something has waited in it for too long.
    Aged,
}

impl Turn {
    const fn class(self) -> Class {
        match self {
            Self::Interactive => Class::Interactive,
            Self::Background | Self::Aged => Class::Background,
        }
    }
}

/// The lanes in the order of their turns. What a lane can give only gets less, so one that was found empty is not
/// looked at again.
struct Ring<T> {
    lanes: Vec<Lane<T>>,
    /// Places of lanes that may have something.
    interactive: BTreeSet<usize>,
    background: BTreeSet<usize>,
    aged: BTreeSet<usize>,
}

impl<T> Ring<T> {
    fn new(mut lanes: Vec<Lane<T>>) -> Self {
        lanes.sort_by(|a, b| a.id.cmp(&b.id));
        let having = |queue: fn(&Lane<T>) -> &VecDeque<Head<T>>| -> BTreeSet<usize> {
            (0..lanes.len()).filter(|at| !queue(&lanes[*at]).is_empty()).collect()
        };
        let (interactive, background) = (having(|lane| &lane.interactive), having(|lane| &lane.background));
        Self { aged: background.clone(), lanes, interactive, background }
    }

    /// Whose turn it is, and what for.
    fn turn(&mut self, turns: &Turns, now: Micros, rules: &Rules) -> Option<(usize, Turn)> {
        let Self { lanes, interactive, background, aged } = self;
        let next = |class| move |lane: &Lane<T>| lane.next(class).is_some();
        let Some(first) = after(lanes, interactive, turns.last(Class::Interactive), next(Class::Interactive)) else {
            let lane = after(lanes, background, turns.last(Class::Background), next(Class::Background))?;
            return Some((lane, Turn::Background));
        };
        if turns.burst >= rules.burst
            && let Some(aged) =
                after(lanes, aged, turns.last(Class::Background), |lane| lane.aged(now, rules).is_some())
        {
            return Some((aged, Turn::Aged));
        }
        Some((first, Turn::Interactive))
    }
}

/// The first lane after `last` that will do, round the ring. Those that will not are let go.
fn after<T>(
    lanes: &[Lane<T>],
    among: &mut BTreeSet<usize>,
    last: Option<&LaneId>,
    will_do: impl Fn(&Lane<T>) -> bool,
) -> Option<usize> {
    let from = last.map_or(0, |last| lanes.partition_point(|lane| lane.id <= *last));
    loop {
        let at = among.range(from..).next().or_else(|| among.first()).copied()?;
        if will_do(&lanes[at]) {
            return Some(at);
        }
        among.remove(&at);
    }
}

fn burst<T>(lane: &Lane<T>, turns: &Turns) -> u32 {
    lane.burst.unwrap_or_else(|| turns.bursts.get(&lane.id).copied().unwrap_or(0))
}

fn remember<T>(lane: &mut Lane<T>, turns: &mut Turns, burst: u32) {
    if let Some(kept) = &mut lane.burst {
        *kept = burst;
    } else if burst == 0 {
        turns.bursts.remove(&lane.id);
    } else {
        if turns.bursts.len() >= BURSTS_MAX {
            turns.bursts.clear();
        }
        turns.bursts.insert(lane.id.clone(), burst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;
    use proptest::prelude::*;

    const NOW: Micros = Micros(1_000_000_000);

    fn rules() -> Rules {
        Rules::default()
    }

    fn id(name: &str) -> LaneId {
        (OrgId::default(), LaneKey::new(name).unwrap())
    }

    fn head(priority: i32, order: i64, waited: Span) -> Head<(i32, i64)> {
        let since = Micros(NOW.0 - waited.0);
        Head { place: Place { priority, order }, since, needs_slot: true, item: (priority, order) }
    }

    /// A lane of one slot's limit or none, with (priority, order) of its jobs; all fresh.
    fn lane(name: &str, free: Option<u32>, jobs: &[(i32, i64)]) -> Lane<(i32, i64)> {
        let mut jobs = jobs.to_vec();
        jobs.sort_unstable();
        let (interactive, background): (VecDeque<_>, VecDeque<_>) =
            jobs.into_iter().map(|(p, o)| head(p, o, Span(0))).partition(|h| h.place.priority < job::BACKGROUND);
        Lane { id: id(name), free, burst: Some(0), interactive, background }
    }

    fn chosen<T>(lanes: Vec<Lane<T>>, turns: &mut Turns, slots: usize, now: Micros, rules: &Rules) -> Vec<Picked<T>> {
        pick(lanes, turns, slots, now, rules).picked
    }

    fn orders(picked: &[Picked<(i32, i64)>]) -> Vec<i64> {
        picked.iter().map(|p| p.item.1).collect()
    }

    #[test]
    fn inside_a_lane_priority_counts_and_then_arrival() {
        let lanes = vec![lane("a", None, &[(200, 1), (100, 4), (50, 9), (100, 2)])];
        let picked = chosen(lanes, &mut Turns::default(), 9, NOW, &rules());
        assert_eq!(orders(&picked), [9, 2, 4, 1]);
    }

    #[test]
    fn lanes_take_turns_and_the_next_claim_goes_on_where_the_last_one_ended() {
        let lanes = || {
            vec![
                lane("a", None, &[(100, 1), (100, 2), (100, 3)]),
                lane("b", None, &[(100, 4), (100, 5)]),
                lane("c", None, &[(100, 6)]),
            ]
        };
        let mut turns = Turns::default();
        assert_eq!(orders(&chosen(lanes(), &mut turns, 6, NOW, &rules())), [1, 4, 6, 2, 5, 3]);
        let mut turns = Turns::default();
        assert_eq!(orders(&chosen(lanes(), &mut turns, 1, NOW, &rules())), [1]);
        assert_eq!(orders(&chosen(lanes(), &mut turns, 2, NOW, &rules())), [4, 6]);
    }

    #[test]
    fn a_full_lane_gives_only_what_brings_its_slot() {
        let mut full = lane("a", Some(0), &[(100, 1), (100, 2)]);
        assert!(chosen(vec![full.clone()], &mut Turns::default(), 9, NOW, &rules()).is_empty());
        full.interactive[1].needs_slot = false;
        assert_eq!(orders(&chosen(vec![full], &mut Turns::default(), 9, NOW, &rules())), [2]);
    }

    #[test]
    fn the_interactive_class_goes_first_across_lanes() {
        let lanes = vec![lane("a", None, &[(200, 1)]), lane("b", None, &[(199, 2), (0, 3)])];
        assert_eq!(orders(&chosen(lanes, &mut Turns::default(), 9, NOW, &rules())), [3, 2, 1]);
    }

    #[test]
    fn an_aged_background_job_goes_after_three_interactive_ones_and_a_fresh_one_waits() {
        for (waited, expected) in
            [(Span::secs(16), [1, 2, 3, 90, 4, 5, 6, 91, 7]), (Span::secs(15), [1, 2, 3, 4, 5, 6, 7, 8, 9])]
        {
            let mut busy = lane("a", None, &[]);
            busy.interactive = (1..=9).map(|order| head(100, order, Span(0))).collect();
            busy.background = (90..=92).map(|order| head(200, order, waited)).collect();
            let picked = chosen(vec![busy], &mut Turns::default(), 9, NOW, &rules());
            assert_eq!(orders(&picked), expected);
        }
    }

    #[test]
    fn an_aged_job_of_a_high_number_does_not_wait_behind_fresh_background_jobs() {
        let mut busy = lane("a", None, &[(100, 1), (100, 2), (100, 3), (100, 4), (200, 5), (200, 6)]);
        busy.background.push_back(head(300, 7, Span::secs(16)));
        let picked = chosen(vec![busy.clone()], &mut Turns::default(), 9, NOW, &rules());
        assert_eq!(orders(&picked), [1, 2, 3, 7, 4, 5, 6]);
        // Without interactive jobs there is nothing to be guarded from.
        busy.interactive.clear();
        assert_eq!(orders(&chosen(vec![busy], &mut Turns::default(), 9, NOW, &rules())), [5, 6, 7]);
    }

    #[test]
    fn the_burst_is_remembered_from_claim_to_claim_in_the_row_and_without_one() {
        for row in [true, false] {
            let (mut turns, mut burst) = (Turns::default(), 0);
            let mut served = Vec::new();
            for round in 0..8 {
                let mut busy = lane("a", Some(1), &[]);
                busy.burst = row.then_some(burst);
                busy.interactive = VecDeque::from([head(100, round, Span(0))]);
                busy.background = VecDeque::from([head(200, 100 + round, Span::secs(60))]);
                let picked = chosen(vec![busy], &mut turns, 1, NOW, &rules());
                burst = picked[0].burst;
                served.push(picked[0].item.0);
            }
            assert_eq!(served, [100, 100, 100, 200, 100, 100, 100, 200]);
        }
    }

    #[test]
    fn a_lane_of_aged_background_jobs_is_not_starved_by_other_lanes() {
        let mut turns = Turns::default();
        let mut served = Vec::new();
        for round in 0..8 {
            let mut quiet = lane("z", Some(1), &[]);
            quiet.background = VecDeque::from([head(200, 500 + round, Span::secs(60))]);
            let busy = lane("a", Some(1), &[(100, round)]);
            served.push(chosen(vec![busy, quiet], &mut turns, 1, NOW, &rules())[0].item.0);
        }
        assert_eq!(served, [100, 100, 100, 200, 100, 100, 100, 200]);
    }

    fn any_lanes() -> impl Strategy<Value = Vec<Lane<(i32, i64)>>> {
        let job = (prop_oneof![Just(50), Just(100), Just(200), Just(300)], 0i64..40, any::<bool>());
        let one = (proptest::option::of(0u32..4), 0u32..6, proptest::collection::vec(job, 0..8));
        proptest::collection::vec(one, 0..6).prop_map(|lanes| {
            let named = lanes.into_iter().enumerate();
            named
                .map(|(i, (free, burst, jobs))| {
                    let pairs: Vec<_> = jobs.iter().map(|(p, waited, _)| (*p, *waited)).collect();
                    let mut lane = lane(&format!("l{i}"), free, &pairs);
                    lane.burst = Some(burst);
                    for head in lane.interactive.iter_mut().chain(&mut lane.background) {
                        head.since = Micros(NOW.0 - Span::secs(head.place.order).0);
                        head.needs_slot = head.place.order % 5 != 0;
                    }
                    lane
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn no_more_than_asked_for_and_no_lane_over_its_limit(lanes in any_lanes(), slots in 0usize..20) {
            let Choice { picked, left } = pick(lanes.clone(), &mut Turns::default(), slots, NOW, &rules());
            prop_assert!(picked.len() <= slots);
            for lane in &lanes {
                let given = picked.iter().filter(|p| p.lane == lane.id && p.item.1 % 5 != 0).count();
                prop_assert!(lane.free.is_none_or(|free| given <= free as usize));
            }
            // What could have been handed out was, while there were slots.
            let possible: usize = lanes.iter().map(|lane| {
                let all = lane.interactive.iter().chain(&lane.background);
                let (bring, want): (Vec<_>, Vec<_>) = all.partition(|h| !h.needs_slot);
                bring.len() + lane.free.map_or(want.len(), |free| want.len().min(free as usize))
            }).sum();
            prop_assert_eq!(picked.len(), slots.min(possible));
            prop_assert_eq!(left, possible > slots);
        }

        #[test]
        fn between_two_jobs_of_a_busy_lane_every_other_ready_lane_had_its_turn(
            names in 2usize..6, slots in 2usize..30,
        ) {
            let lanes = (0..names).map(|n| {
                let jobs: Vec<_> = (0..40).map(|k| (100, k)).collect();
                lane(&format!("l{n}"), None, &jobs)
            }).collect();
            let picked = chosen(lanes, &mut Turns::default(), slots, NOW, &rules());
            for window in picked.windows(names) {
                let mut seen: Vec<_> = window.iter().map(|p| p.lane.clone()).collect();
                seen.sort();
                seen.dedup();
                prop_assert_eq!(seen.len(), names);
            }
        }

        #[test]
        fn inside_a_lane_an_aged_job_waits_for_at_most_a_burst(lanes in any_lanes(), slots in 1usize..30) {
            let picked = chosen(lanes.clone(), &mut Turns::default(), slots, NOW, &rules());
            for lane in lanes.iter().filter(|lane| lane.burst == Some(0)) {
                let mut burst = 0;
                for p in picked.iter().filter(|p| p.lane == lane.id) {
                    burst = if p.item.0 < job::BACKGROUND { burst + 1 } else { 0 };
                    prop_assert_eq!(p.burst, burst);
                }
            }
        }
    }
}
