//! Some hundreds of seeds, and the proof that a seed is always the same story.

use baton_sim::simulation::run;

/// Seeds per test; the tests run beside each other.
const SEEDS: u64 = 100;

fn seeds(from: u64) {
    // Handlers are asked to panic now and then; that is not news.
    std::panic::set_hook(Box::new(|_| {}));
    let failed = (from..from + SEEDS).find_map(|seed| run(seed, None).err());
    let _ = std::panic::take_hook();
    if let Some(e) = failed {
        panic!("{e:?}");
    }
}

#[test]
fn the_first_hundred_seeds_hold() {
    seeds(0);
}

#[test]
fn the_second_hundred_seeds_hold() {
    seeds(100);
}

#[test]
fn the_third_hundred_seeds_hold() {
    seeds(200);
}

#[test]
fn the_same_seed_tells_the_same_history() {
    std::panic::set_hook(Box::new(|_| {}));
    let twice = (1_000..1_010)
        .map(|seed| (run(seed, None).map_err(|e| format!("{e:?}")), run(seed, None).map_err(|e| format!("{e:?}"))));
    let twice = twice.collect::<Vec<_>>();
    let _ = std::panic::take_hook();
    for (first, second) in twice {
        assert_eq!(first.unwrap(), second.unwrap());
    }
    assert_ne!(run(1_000, None).unwrap().history, run(1_001, None).unwrap().history);
}
