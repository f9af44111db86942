//! Whether to try what pays only sometimes: seldom where it was in vain again and again, and never not at all.

/// Times that it is left out at most before it is tried again.
const RESTS_MAX: u32 = 64;

#[derive(Debug, Default)]
pub(super) struct Doubts {
    /// How often it is still left out.
    rests: u32,
    /// How often that will be the next time.
    vain: u32,
}

impl Doubts {
    /// Whether to leave it out this time.
    pub fn rests(&mut self) -> bool {
        let rests = self.rests > 0;
        self.rests = self.rests.saturating_sub(1);
        rests
    }

    /// Whether it will be left out for a while.
    pub const fn are_strong(&self) -> bool {
        self.rests > 1
    }

    /// What came of trying.
    pub fn tried(&mut self, paid: bool) {
        self.vain = if paid { 0 } else { (2 * self.vain + 1).min(RESTS_MAX) };
        self.rests = self.vain;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_vain_is_tried_seldom_and_what_pays_always() {
        let mut doubts = Doubts::default();
        let mut tries = 0;
        for _ in 0..1_000 {
            if !doubts.rests() {
                tries += 1;
                doubts.tried(false);
            }
        }
        assert!((10..30).contains(&tries), "{tries}");
        while doubts.rests() {}
        doubts.tried(true);
        assert!(!doubts.rests() && !doubts.rests());
    }
}
