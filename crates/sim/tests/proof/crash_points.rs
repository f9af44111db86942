//! Every commit of every story is a crash point, on both databases.

use baton_sim::crash::{
    Batches, Cancels, Door, Duplicates, Full, Lanes, Retention, Retries, Runs, Schedules, Sinks, Spine, Story, Workers,
    explore,
};
use baton_sim::lab::Place;
use baton_store::faults::Mishap;

/// Fewer points would mean that a story no longer happens.
const POINTS_MIN: u64 = 10;

fn every_point<S: Story>(place: Place, mishap: Mishap) {
    match explore::<S>(place, mishap, None) {
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
            every_point::<Spine>(Place::$place, Mishap::$mishap);
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

macro_rules! stories {
    ($($name:ident: $story:ident;)*) => {$(
        mod $name {
            use super::{Mishap, Place, every_point, $story};

            #[test]
            fn killed_before_any_commit_on_sqlite() {
                every_point::<$story>(Place::Sqlite, Mishap::CrashBefore);
            }

            #[test]
            fn killed_after_any_commit_on_sqlite() {
                every_point::<$story>(Place::Sqlite, Mishap::CrashAfter);
            }

            #[test]
            fn killed_before_any_commit_on_postgres() {
                every_point::<$story>(Place::Postgres, Mishap::CrashBefore);
            }

            #[test]
            fn killed_after_any_commit_on_postgres() {
                every_point::<$story>(Place::Postgres, Mishap::CrashAfter);
            }
        }
    )*};
}

stories! {
    lanes_are_never_over_their_limit: Lanes;
    duplicates_are_one_job: Duplicates;
    what_has_no_room_is_refused_until_there_is: Full;
    retries_stay_within_their_budgets: Retries;
    cancelled_jobs_end_and_asked_ones_go_on: Cancels;
    batches_are_whole_and_dead_letters_are_made_anew_once: Batches;
    schedules_lose_and_double_no_moment: Schedules;
    sinks_have_one_row_a_key: Sinks;
    keys_decisions_and_webhooks_are_as_they_were_said: Door;
    what_is_forgotten_can_still_be_verified: Retention;
    runs_come_to_the_same_end_and_cost_the_same: Runs;
    what_workers_outside_do_is_done_and_charged_once: Workers;
}
