//! Seeded chance. The seed is drawn once per command by whoever submits it, so that deciding
//! the same command again draws the same numbers.

/// `SplitMix64`: tiny, well spread, and good enough for jitter and ids. Not for secrets.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`; 0 when the bound is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// True `of` times out of `out_of`, on average.
    pub const fn chance(&mut self, of: u64, out_of: u64) -> bool {
        self.below(out_of) < of
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn the_same_seed_draws_the_same_numbers() {
        let draw = |seed| {
            let mut rng = Rng::new(seed);
            (0..32).map(|_| rng.below(1_000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert!(draw(7).iter().all(|n| *n < 1_000));
    }
}
