//! Chances, and what is picked with them.

use baton_core::rng::Rng;
use serde_json::{Number, Value, json};

pub struct Draw(Rng);

/// Words that mean something somewhere, and some that mean something elsewhere.
const WORDS: [&str; 22] = [
    "",
    "echo",
    "noop",
    "p",
    "admin",
    "tail",
    "queued",
    "job.completed",
    "confirm",
    "30 5 1 1 *",
    "UTC",
    "2026-01-01T00:00:00Z",
    "9999-12-31T23:59:60Z",
    "\u{0}",
    "\u{fc}",
    "\u{202e}\u{1f4a9}",
    "../..",
    "'; DROP TABLE job; --",
    "{{7*7}}",
    "%s%n",
    "job_018bcfe568007001800000000000002a",
    "https://127.0.0.1:1/",
];

const NUMBERS: [i128; 12] = [
    0,
    -1,
    1,
    127,
    65_536,
    i32::MAX as i128 + 1,
    (1 << 53) + 1,
    i64::MAX as i128,
    i64::MIN as i128,
    u64::MAX as i128,
    253_402_300_800_000,
    -62_135_596_800_001,
];

impl Draw {
    /// The chances of one request, without those of the others before it.
    pub const fn of(seed: u64, number: u64) -> Self {
        // Mixed once: neighbouring seeds would draw each other's numbers.
        Self(Rng::new(Rng::new(seed ^ number.rotate_left(32)).next_u64()))
    }

    pub const fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }

    pub const fn chance(&mut self, of: u64, out_of: u64) -> bool {
        self.0.chance(of, out_of)
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    pub const fn byte(&mut self) -> u8 {
        self.0.next_u64() as u8
    }

    pub fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most + 1)).map(|_| self.byte()).collect()
    }

    pub fn word(&mut self) -> &'static str {
        self.pick(&WORDS)
    }

    /// A value of any type, not too large.
    pub fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 7 } else { 9 }) {
            0 => Value::Null,
            1 => json!(self.chance(1, 2)),
            2 => Number::from_i128(NUMBERS[self.below(NUMBERS.len())]).map_or(Value::Null, Value::Number),
            3 => json!([1e308, -1e-308, 0.1, -0.0, 1e19][self.below(5)]),
            4 => json!(self.word()),
            5 => json!(self.word().repeat(self.below(40))),
            6 => json!("x".repeat(self.below(400))),
            7 => Value::Array((0..self.below(4)).map(|_| self.value(depth - 1)).collect()),
            _ => Value::Object((0..self.below(4)).map(|n| (format!("k{n}"), self.value(depth - 1))).collect()),
        }
    }
}
