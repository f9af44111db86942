//! Requests that no decent client sends, as many as anybody likes, each repeatable by its number.
//!
//! What there is to ask comes from the server's own document ([`target`]), so a new route is shouted at
//! without a word here. Each request is made from the run's seed and its number alone: one that broke
//! something is made again without those before it.
//!
//! Elsewhere: what must hold afterwards (the tests of `baton-api` and `baton` that use this).

mod body;
mod draw;
mod frames;
mod framing;
mod head;
mod plan;
mod route;
mod slow;
mod talk;
mod target;

pub use plan::Plan;
pub use slow::{Drip, Waits, drips};
pub use talk::{Broken, Heard, PATIENCE, drip, shout};
pub use target::{Target, targets};

use draw::Draw;

/// What is shouted at.
#[derive(Clone, Debug)]
pub struct Aim {
    pub targets: Vec<Target>,
    /// A key that opens everything.
    pub key: String,
    /// Values that exist, by the names of the parameters that they are for. Never the id of `key`:
    /// it would be rotated sooner or later.
    pub known: Vec<(&'static str, String)>,
}

/// One request and how it goes on.
#[derive(Clone, Debug)]
pub struct Shout {
    pub what: &'static str,
    pub bytes: Vec<u8>,
    pub then: Then,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Then {
    /// The request is whole, whatever is wrong with it: it must be answered.
    Listen,
    /// Something may be missing: some patience, then the caller hangs up, so that the server need not wait
    /// as long as it may.
    HangUp { after_ms: u64 },
    /// If it becomes a socket, this is said on it before hanging up.
    Frames(Vec<u8>),
}

/// Kinds of requests, by how many of ten are of it.
const KINDS: u64 = 10;
/// Of ten, those that go from route to route.
const ROUTED: u64 = 3;

impl Aim {
    /// Requests after which every route was asked at least once.
    pub fn round(&self) -> u64 {
        (self.targets.len() as u64).div_ceil(ROUTED) * KINDS
    }

    /// The request of this number. The same for the same seed.
    pub fn shout(&self, seed: u64, number: u64) -> Shout {
        let mut draw = Draw::of(seed, number);
        let turn = number / KINDS;
        match number % KINDS {
            kind @ 0..ROUTED => {
                let target = &self.targets[((turn * ROUTED + kind) % self.targets.len() as u64) as usize];
                route::wrong(self, target, &mut draw)
            }
            3 => body::damaged(self, &mut draw),
            4 => body::enormous(self, &mut draw),
            5 => route::stranger(self, &mut draw),
            6 => head::abused(self, &mut draw),
            7 => framing::abused(self, &mut draw),
            8 => frames::garbage(self, &mut draw),
            _ => route::noise(self, &mut draw),
        }
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.key)
    }

    /// Any route that takes a body.
    fn taker(&self, draw: &mut Draw) -> &Target {
        let takers: Vec<_> = self.targets.iter().filter(|target| !target.bodies.is_empty()).collect();
        takers.get(draw.below(takers.len())).copied().unwrap_or(&self.targets[0])
    }

    fn any(&self, draw: &mut Draw) -> &Target {
        &self.targets[draw.below(self.targets.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn aim() -> Aim {
        let document = json!({ "paths": {
            "/a": { "post": { "requestBody": { "content": { "application/json": { "examples": {
                "one": { "value": { "type": "noop", "n": [1, { "deep": true }] } } } } } } } },
            "/b/{jobId}": { "get": { "parameters": [{ "in": "query", "name": "limit" }] } },
        } });
        Aim { targets: targets(&document), key: "bk_1".to_owned(), known: vec![("jobId", "job_1".to_owned())] }
    }

    #[test]
    fn a_request_is_made_again_from_its_seed_and_number() {
        let aim = aim();
        let bytes = |seed, number| aim.shout(seed, number).bytes;
        for number in 0..200 {
            assert_eq!(bytes(7, number), bytes(7, number), "{number}");
        }
        assert_ne!(bytes(7, 3), bytes(8, 3));
        assert_ne!(bytes(7, 3), bytes(7, 13));
    }

    #[test]
    fn every_route_has_its_turn_in_a_round() {
        let aim = aim();
        let all: Vec<_> = (0..aim.round()).map(|number| aim.shout(7, number)).collect();
        for word in ["POST /a", "GET /b/"] {
            assert!(all.iter().any(|shout| shout.bytes.starts_with(word.as_bytes())), "{word}");
        }
        let kinds: std::collections::BTreeSet<_> = all.iter().map(|shout| shout.what).collect();
        assert_eq!(kinds.len() as u64, KINDS - ROUTED + 1, "{kinds:?}");
    }
}
