//! Typed ids: a UUID v7 behind a prefix that says what it names (`job_…`).
//!
//! Ids sort by creation. They are derived from the command's seed, so a command that is
//! decided again (after a deadlock, or alone after its group failed) draws the same ids.

use crate::rng::Rng;
use crate::time::Micros;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// Says why a text is not an id of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an id of the form {prefix}_ followed by 32 hexadecimal digits")]
pub struct BadId {
    pub text: String,
    pub prefix: &'static str,
}

macro_rules! typed_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name(pub Uuid);

        // As its bytes, but compared as a number: most of what is looked up is looked up by an id.
        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                self.0.as_u128().cmp(&other.0.as_u128())
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl $name {
            pub const PREFIX: &'static str = $prefix;
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut hex = [0u8; 32];
                f.write_str(concat!($prefix, "_"))?;
                f.write_str(self.0.simple().encode_lower(&mut hex))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = BadId;
            fn from_str(text: &str) -> Result<Self, BadId> {
                let bad = || BadId { text: text.chars().take(64).collect(), prefix: $prefix };
                let hex = text.strip_prefix(concat!($prefix, "_")).ok_or_else(bad)?;
                let plain = hex.len() == 32
                    && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
                if !plain {
                    return Err(bad());
                }
                Uuid::try_parse(hex).map(Self).map_err(|_| bad())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                String::deserialize(d)?.parse().map_err(de::Error::custom)
            }
        }
    };
}

typed_id!(
    /// A job: one piece of queued work.
    JobId, "job"
);
typed_id!(
    /// A definition: the thing of which versions are registered.
    DefinitionId, "def"
);

typed_id!(
    /// A cold thing: a schedule, a lane that was paused.
    DocId, "doc"
);

typed_id!(
    /// A question to people.
    DecisionId, "dec"
);
typed_id!(
    /// A key that somebody comes in with.
    KeyId, "key"
);

typed_id!(
    /// An endpoint that is told what happens.
    WebhookId, "whk"
);

typed_id!(
    /// A run: agents at work on one plan and one budget.
    RunId, "run"
);
typed_id!(
    /// One agent of one attempt of a run.
    AgentId, "agt"
);

/// The seed of one command: drawn at submission, kept through every retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed {
    pub high: u64,
    pub low: u64,
    /// When the command was submitted; the time part of the ids it draws.
    pub at: Micros,
}

/// Draws ids from a command's seed. Rewound by making it anew from the same seed.
#[derive(Clone, Debug)]
pub struct Ids {
    seed: Seed,
    drawn: u64,
}

impl Ids {
    pub const fn new(seed: Seed) -> Self {
        Self { seed, drawn: 0 }
    }

    pub fn uuid(&mut self) -> Uuid {
        self.drawn += 1;
        // Two independent streams give 128 spread bits; the counter keeps later ids distinct.
        let high = Rng::new(self.seed.high ^ self.drawn.rotate_left(32)).next_u64();
        let low = Rng::new(self.seed.low.wrapping_add(self.drawn)).next_u64();
        let millis = u128::from(self.seed.at.as_millis().max(0) as u64) & 0xFFFF_FFFF_FFFF;
        // The counter leads the random part, so ids of one command sort as they were drawn.
        let rand_a = u128::from(self.drawn.min(0xFFF));
        let bits = (millis << 80)
            | (0x7 << 76)
            | (rand_a << 64)
            | (0b10 << 62)
            | (u128::from(high ^ low.rotate_left(17)) & 0x3FFF_FFFF_FFFF_FFFF);
        Uuid::from_u128(bits)
    }

    pub fn job(&mut self) -> JobId {
        JobId(self.uuid())
    }

    pub fn definition(&mut self) -> DefinitionId {
        DefinitionId(self.uuid())
    }

    pub fn doc(&mut self) -> DocId {
        DocId(self.uuid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: Seed = Seed { high: 1, low: 2, at: Micros(1_700_000_000_000_000) };

    #[test]
    fn rewinding_draws_the_same_ids_in_rising_order() {
        let draw = || {
            let mut ids = Ids::new(SEED);
            (0..100).map(|_| ids.job()).collect::<Vec<_>>()
        };
        let first = draw();
        assert_eq!(first, draw());
        assert!(first.windows(2).all(|w| w[0] < w[1]));
        assert_eq!(first[0].0.get_version_num(), 7);
    }

    #[test]
    fn text_goes_there_and_back_and_nothing_else_is_accepted() {
        let id = Ids::new(SEED).job();
        assert_eq!(id.to_string().parse::<JobId>(), Ok(id));
        let hex = &id.to_string()[4..];
        for bad in [
            "",
            "job_",
            "run_00",
            hex,
            &format!("JOB_{hex}"),
            &format!("job_{}", hex.to_uppercase()),
            &format!("job_{hex}0"),
        ] {
            assert!(bad.parse::<JobId>().is_err(), "{bad}");
        }
    }
}
