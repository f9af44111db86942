//! What clients ask for, drawn from the seed.

use super::clock::SimClock;
use super::kinds::{self, MAY_HANG, NAMES};
use crate::lab::name;
use baton_core::dedupe::Mode;
use baton_core::job::enqueue::Enqueue;
use baton_core::job::{BACKGROUND, INTERACTIVE};
use baton_core::rng::Rng;
use baton_core::time::Span;
use baton_core::{Json, OrgId};
use baton_store::Clock;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) const PROJECTS: [&str; 3] = ["p0", "p1", "p2"];

const DEEDS: [&str; 14] = [
    "done", "done", "done", "fail", "panic", "park", "wait", "stumble", "stumble", "ask", "ask", "ask", "talk", "hang",
];

/// Behind all other background jobs, until it has waited for too long.
const LAST: i32 = 300;

/// A job that a client wants.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub n: u64,
    pub project: &'static str,
    pub kind: &'static str,
    pub payload: Value,
    deadline: Option<Span>,
    delay: Option<Span>,
    priority: Option<i32>,
}

pub(super) fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize]
}

/// What a job asks, if it asks: some questions answer themselves after a while.
fn question(rng: &mut Rng) -> Value {
    let options = json!([
        { "name": "confirm" },
        { "name": "stop", "effect": "cancel" },
        { "name": "break", "effect": "fail" },
    ]);
    let breach = match rng.below(7) {
        0 => json!("wait"),
        1 => json!("cancel"),
        2 => json!("fail"),
        3 => json!({ "choose": "confirm" }),
        4 => json!({ "escalate": { "to": "somebody_else", "withinMs": 15_000, "then": "cancel" } }),
        _ => return json!({ "prompt": "sure?", "options": options }),
    };
    json!({ "prompt": "sure?", "options": options, "withinMs": 10_000, "onBreach": breach })
}

impl Order {
    pub fn draw(n: u64, rng: &mut Rng) -> Self {
        // Some more often than others, because most of what they can do needs two of them.
        let kind = if rng.chance(1, 3) { pick(rng, &["merge", "polite"]) } else { pick(rng, &NAMES) };
        let deed = match pick(rng, &DEEDS) {
            // Some listen when they are told to end: they finish, or give up.
            "hang" if MAY_HANG.contains(&kind) => pick(rng, &["hang", "obey", "balk"]),
            "hang" => "done",
            deed => deed,
        };
        // Some handlers take longer than their lease, and live by their heartbeats.
        let ms = pick(rng, &[0, 0, 5, 500, 3_000, 45_000]);
        Self {
            n,
            project: pick(rng, &PROJECTS),
            kind,
            payload: json!({
                "n": n, "k": rng.below(2), "ms": ms, "then": deed, "times": 1 + rng.below(3), "question": question(rng),
            }),
            deadline: rng.chance(1, 6).then(|| Span::secs(1 + rng.below(120).cast_signed())),
            delay: rng.chance(1, 4).then(|| Span::millis(rng.below(60_000).cast_signed())),
            priority: rng.chance(1, 3).then(|| pick(rng, &[INTERACTIVE, BACKGROUND, 7, LAST])),
        }
    }

    /// Moments are far enough ahead for whichever clock will judge them.
    pub fn enqueue(&self, clocks: &[Arc<SimClock>]) -> Enqueue {
        let now = clocks.iter().map(|c| c.now()).max();
        let ahead = |span: Option<Span>| Some(now?.plus(span?));
        Enqueue {
            priority: self.priority,
            not_before: ahead(self.delay),
            deadline: ahead(self.deadline),
            ..Enqueue::new(OrgId::default(), name(self.project), name(self.kind), Json::of(&self.payload))
        }
    }

    pub fn dedupes(&self) -> bool {
        kinds::mode(self.kind) != Mode::None
    }
}
