//! The harness bites: with a committer that is broken on purpose, conformance, crash points and
//! simulation each fail. A proving ground that lets these through would prove nothing.

use baton_sim::conformance::CASES;
use baton_sim::crash::{Spine, explore};
use baton_sim::lab::{Lab, Place};
use baton_sim::simulation;
use baton_store::faults::{Mishap, Sabotage};
use std::time::Duration;

/// A broken committer may also leave a case waiting for ever.
const PATIENCE: Duration = Duration::from_secs(20);
/// Seeds in which a broken committer must have been caught.
const SEEDS: u64 = 40;

/// The cases that notice, wherever the place allows them to run.
async fn noticed(place: Place, sabotage: Sabotage) -> Vec<&'static str> {
    let mut noticed = Vec::new();
    for case in CASES.iter().filter(|case| case.places().contains(&place)) {
        let Some(lab) = Lab::new(place, Some(sabotage)).await.expect("a lab") else { return vec!["no database here"] };
        // In a task of its own, so that a panic is its own too.
        let ran = tokio::time::timeout(PATIENCE, tokio::spawn((case.run)(lab))).await;
        if !matches!(ran, Ok(Ok(Ok(())))) {
            noticed.push(case.name);
        }
        if !noticed.is_empty() {
            break;
        }
    }
    noticed
}

macro_rules! conformance_notices {
    ($($name:ident: $place:ident $sabotage:ident;)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            assert!(!noticed(Place::$place, Sabotage::$sabotage).await.is_empty(), "nobody noticed");
        }
    )*};
}

conformance_notices! {
    conformance_notices_an_early_answer_on_sqlite: Sqlite AckEarly;
    conformance_notices_an_early_answer_on_postgres: Postgres AckEarly;
    conformance_notices_a_blind_repetition_on_sqlite: Sqlite RepeatBlindly;
    conformance_notices_a_blind_repetition_on_postgres: Postgres RepeatBlindly;
    conformance_notices_what_rests_on_a_group_that_failed: Sqlite KeepAhead;
}

#[test]
fn crash_points_notice_an_early_answer_on_sqlite() {
    assert!(explore::<Spine>(Place::Sqlite, Mishap::CrashBefore, Some(Sabotage::AckEarly)).is_err());
}

#[test]
fn crash_points_notice_an_early_answer_on_postgres() {
    let explored = explore::<Spine>(Place::Postgres, Mishap::CrashBefore, Some(Sabotage::AckEarly));
    assert!(explored.is_err() || matches!(explored, Ok(0)), "{explored:?}");
}

#[test]
fn crash_points_notice_a_blind_repetition() {
    assert!(explore::<Spine>(Place::Sqlite, Mishap::AnswerLost, Some(Sabotage::RepeatBlindly)).is_err());
}

fn some_seed_fails(sabotage: Sabotage) {
    std::panic::set_hook(Box::new(|_| {}));
    let caught = (0..SEEDS).find_map(|seed| simulation::run(seed, Some(sabotage)).err());
    let of_runs = (0..SEEDS).find_map(|seed| simulation::runs::run(seed, Some(sabotage)).err());
    let _ = std::panic::take_hook();
    let (caught, of_runs) = (caught.expect("no seed noticed"), of_runs.expect("no seed of runs noticed"));
    assert!(format!("{caught:?}").contains("replay it with: cargo xtask sim --seed"), "{caught:?}");
    assert!(format!("{of_runs:?}").contains("replay it with: cargo xtask sim --of runs --seed"), "{of_runs:?}");
}

#[test]
fn simulation_notices_an_early_answer() {
    some_seed_fails(Sabotage::AckEarly);
}

#[test]
fn simulation_notices_a_blind_repetition() {
    some_seed_fails(Sabotage::RepeatBlindly);
}
