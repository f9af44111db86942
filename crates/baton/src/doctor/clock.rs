//! Whether the clock can be right, and agrees with the others that matter.

use super::finding::{Check, Finding};
use baton_core::Micros;
use baton_core::time::Span;
use baton_wire::Time;

/// Nobody can have had this binary before: the start of 2026.
const EARLIEST: Micros = Micros(1_767_225_600_000_000);
/// The start of 2100.
const LATEST: Micros = Micros(4_102_444_800_000_000);
/// Clocks that differ by more make times of different machines hard to compare.
const SKEW_FELT: Span = Span::secs(5);
/// With more than this, deadlines and expiries are met at the wrong moment.
const SKEW_HARMFUL: Span = Span::secs(60);

pub fn sane(now: Micros) -> Finding {
    if now < EARLIEST || now > LATEST {
        let detail = format!("the system's clock says {}, which cannot be", Time(now));
        return Finding::problem(Check::Clock, detail, "set the clock, and let NTP keep it right");
    }
    Finding::ok(Check::Clock, format!("the system's clock says {:.19}Z", Time(now).to_string()))
}

/// Another clock that was read between two looks at ours; `coarse` is how exactly it tells the time.
#[derive(Clone, Copy, Debug)]
pub struct Other<'a> {
    pub whose: &'a str,
    pub says: Micros,
    pub coarse: Span,
}

pub fn compare(other: Other<'_>, before: Micros, after: Micros) -> Finding {
    let Other { whose, says, coarse } = other;
    // It was read at some moment in between, and cut off to what it tells.
    let early = before.0.saturating_sub(says.0.saturating_add(coarse.0));
    let late = says.0.saturating_sub(after.0);
    let (apart, which) = if late > early { (late, "ahead of") } else { (early, "behind") };
    if apart <= SKEW_FELT.0 {
        return Finding::ok(Check::Clock, format!("{whose} has the same time"));
    }
    let detail = format!("{whose} is {} s {which} this machine", apart / 1_000_000);
    let advice = "let NTP keep both clocks right";
    if apart > SKEW_HARMFUL.0 {
        Finding::problem(Check::Clock, detail, advice)
    } else {
        Finding::warning(Check::Clock, detail, advice)
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    const NOW: Micros = Micros(1_800_000_000_000_000);

    #[test]
    fn a_clock_that_was_never_set_is_told() {
        assert_eq!(sane(NOW).verdict, Verdict::Ok);
        assert_eq!(sane(Micros(0)).verdict, Verdict::Problem);
        assert_eq!(sane(Micros(i64::MAX)).verdict, Verdict::Problem);
    }

    #[test]
    fn clocks_are_compared_as_exactly_as_they_can_be() {
        let check = |seconds: i64, coarse: Span| {
            let says = Micros(NOW.0 + seconds * 1_000_000);
            compare(Other { whose: "it", says, coarse }, NOW, Micros(NOW.0 + 100_000))
        };
        for (seconds, expected) in [
            (0, Verdict::Ok),
            (5, Verdict::Ok),
            (6, Verdict::Warning),
            (-6, Verdict::Warning),
            (61, Verdict::Problem),
            (-61, Verdict::Problem),
        ] {
            assert_eq!(check(seconds, Span(0)).verdict, expected, "{seconds}");
        }
        assert_eq!(check(-6, Span::secs(1)).verdict, Verdict::Ok, "it tells whole seconds only");
        assert!(check(-61, Span(0)).detail.contains("behind") && check(61, Span(0)).detail.contains("ahead"));
    }
}
