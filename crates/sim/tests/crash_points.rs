//! Every commit of a scenario is a crash point, on both databases.

use baton_sim::crash::explore;
use baton_sim::lab::Place;
use baton_store::faults::Mishap;

/// Fewer points would mean that the scenario no longer happens.
const POINTS_MIN: u64 = 20;

fn every_point(place: Place, mishap: Mishap) {
    match explore(place, mishap, None) {
        // No PostgreSQL to try it on.
        Ok(0) => assert_eq!(place, Place::Postgres),
        Ok(points) => assert!(points >= POINTS_MIN, "only {points} points"),
        Err(e) => panic!("{e:?}"),
    }
}

macro_rules! points {
    ($($name:ident: $place:ident $mishap:ident;)*) => {$(
        #[test]
        fn $name() {
            every_point(Place::$place, Mishap::$mishap);
        }
    )*};
}

points! {
    a_crash_before_any_commit_loses_nothing_on_sqlite: Sqlite CrashBefore;
    a_crash_after_any_commit_loses_nothing_on_sqlite: Sqlite CrashAfter;
    a_lost_answer_to_any_commit_is_asked_after_on_sqlite: Sqlite AnswerLost;
    a_lost_commit_is_repeated_on_sqlite: Sqlite CommitLost;
    a_crash_before_any_commit_loses_nothing_on_postgres: Postgres CrashBefore;
    a_crash_after_any_commit_loses_nothing_on_postgres: Postgres CrashAfter;
    a_lost_answer_to_any_commit_is_asked_after_on_postgres: Postgres AnswerLost;
    a_lost_commit_is_repeated_on_postgres: Postgres CommitLost;
}
