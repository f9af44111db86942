//! One suite of store behaviours. Every database must pass all of it.
//!
//! A case is an async function over a fresh [`Lab`]; it fails by panicking or by an error. Its
//! name is a sentence. [`for_each_case!`] lists them all, so that a test file can make tests of
//! them and the saboteur can run them against a broken committer.

mod basics;
mod between_turns;
mod claims;
mod clock;
mod corruption;
mod cursor;
mod dedupe;
mod definitions;
mod groups;
mod lanes;
mod leases;
mod limits;
mod lists;
mod lost_commit;
mod need;
mod odd_commands;
mod once;
mod opening;
mod orders;
mod parking;
mod plans;
mod races;
mod retention;
mod runs;
mod seals;
mod standing_by;
pub(crate) mod steps;
mod succession;
mod successors;
mod tampering;
mod tenants;
mod timers;

use crate::lab::{Lab, Place};
use anyhow::Result;
use futures_util::future::BoxFuture;
use std::time::Duration;

/// Cases take a moment. Whoever still waits after this waits for something that never comes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where a case can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// One node: a file, and PostgreSQL.
    OneNode,
    /// Several nodes on one database: a simulated disk, and PostgreSQL.
    Nodes,
    SqliteFile,
    Postgres,
}

pub struct Case {
    pub name: &'static str,
    pub needs: Needs,
    pub run: fn(Lab) -> BoxFuture<'static, Result<()>>,
}

impl Case {
    pub fn places(&self) -> &'static [Place] {
        match self.needs {
            Needs::OneNode => &[Place::Sqlite, Place::Postgres],
            Needs::Nodes => &[Place::SqliteDisk, Place::Postgres],
            Needs::SqliteFile => &[Place::Sqlite],
            Needs::Postgres => &[Place::Postgres],
        }
    }
}

macro_rules! cases {
    ($($module:ident :: $name:ident : $needs:ident,)*) => {
        pub const CASES: &[Case] = &[$(
            Case { name: stringify!($name), needs: Needs::$needs, run: |lab| Box::pin($module::$name(lab)) },
        )*];

        /// Calls a macro with the names of all cases.
        #[macro_export]
        macro_rules! for_each_case {
            ($each:ident) => { $each! { $($name)* } };
        }
    };
}

cases! {
    basics::an_enqueued_job_can_be_read_back: OneNode,
    basics::a_refusal_writes_nothing: OneNode,
    basics::a_job_goes_from_enqueue_over_claim_to_done: OneNode,
    claims::lower_priority_numbers_go_first_and_then_whoever_came_first: OneNode,
    claims::a_claim_never_takes_more_jobs_than_it_has_slots: OneNode,
    claims::only_the_kinds_asked_for_are_claimed: OneNode,
    claims::jobs_of_other_kinds_do_not_stand_in_the_way: OneNode,
    claims::a_delayed_job_is_claimed_only_after_its_moment_which_is_told_meanwhile: OneNode,
    claims::a_delayed_job_has_its_place_by_priority_and_arrival_once_it_is_due: OneNode,
    claims::a_job_that_is_given_back_keeps_its_place: OneNode,
    claims::those_who_are_let_in_together_are_served_as_they_came: SqliteFile,
    claims::no_job_is_claimed_twice_however_many_ask_at_once: Nodes,
    groups::many_at_once_share_few_commits_and_all_succeed: OneNode,
    groups::a_refused_member_does_not_touch_its_neighbours: OneNode,
    groups::a_panicking_member_does_not_touch_its_neighbours: OneNode,
    groups::a_member_that_panics_while_naming_what_it_reads_does_not_touch_its_neighbours: OneNode,
    groups::a_member_that_panics_while_it_is_applied_does_not_touch_its_neighbours: OneNode,
    groups::a_member_that_breaks_a_constraint_does_not_touch_its_neighbours: OneNode,
    groups::a_member_that_takes_an_id_that_is_taken_does_not_touch_its_neighbours: OneNode,
    groups::a_member_that_waits_for_a_row_that_is_held_does_not_touch_its_neighbours: Postgres,
    groups::several_bad_members_of_one_group_each_get_their_own_error: OneNode,
    groups::a_turn_answers_each_settlement_by_itself: OneNode,
    groups::settling_and_claiming_in_one_turn_is_one_commit: OneNode,
    groups::a_member_sees_what_those_before_it_decided: OneNode,
    groups::a_group_of_one_is_as_good_as_any: OneNode,
    need::a_command_gets_to_see_what_it_turns_out_to_need: OneNode,
    need::needs_that_cross_are_met_while_others_touch_the_same_jobs: Nodes,
    need::what_is_needed_may_have_ended: OneNode,
    need::a_command_that_always_needs_more_is_turned_away: OneNode,
    need::looking_at_what_was_not_named_fails_that_command_only: OneNode,
    once::a_repetition_gets_the_same_bytes_and_does_nothing: OneNode,
    once::a_key_that_was_used_for_another_request_is_refused: OneNode,
    once::a_refusal_is_not_remembered: OneNode,
    once::a_failure_is_not_remembered: OneNode,
    once::an_answer_that_cannot_be_rendered_is_not_committed: OneNode,
    once::fifty_at_once_with_one_key_have_one_effect: OneNode,
    once::two_requests_at_once_with_one_key_have_one_effect: OneNode,
    once::two_nodes_racing_with_one_key_have_one_effect: Nodes,
    once::two_nodes_racing_for_an_expired_key_have_one_effect: Nodes,
    once::an_expired_key_may_be_used_anew: OneNode,
    once::only_expired_keys_are_purged: OneNode,
    once::purging_beside_a_key_that_is_used_anew_loses_no_record: OneNode,
    once::the_same_key_in_another_scope_or_org_is_another_key: OneNode,
    lost_commit::a_lost_commit_is_there_once_and_its_caller_hears_so: OneNode,
    lost_commit::a_lost_commit_that_had_nothing_to_see_is_there_once: OneNode,
    lost_commit::a_commit_that_is_lost_again_and_again_is_there_once: OneNode,
    lost_commit::a_lost_commit_under_a_key_is_there_once_and_is_replayed: OneNode,
    lost_commit::a_turn_whose_commit_is_lost_is_taken_once: OneNode,
    lost_commit::commits_lost_among_many_are_each_there_once: OneNode,
    lost_commit::commits_lost_beside_a_bad_member_are_each_there_once: OneNode,
    lost_commit::two_nodes_losing_commits_get_along: Nodes,
    lost_commit::a_lost_commit_that_tells_no_event_is_accounted_for_too: OneNode,
    lost_commit::a_lost_commit_is_not_taken_for_made_because_some_rows_were_to_stay_as_they_are: OneNode,
    lost_commit::a_conflict_without_end_is_given_up_and_leaves_nothing: OneNode,
    lost_commit::answers_that_are_always_lost_are_always_found: OneNode,
    leases::only_the_holder_of_the_lease_can_settle: OneNode,
    leases::settling_twice_with_one_lease_is_told_and_changes_nothing: OneNode,
    leases::a_late_worker_is_refused_and_the_next_is_not_disturbed: OneNode,
    leases::a_failed_job_keeps_its_error_and_no_result: OneNode,
    leases::a_beat_extends_what_is_held_and_tells_what_is_lost: OneNode,
    leases::expired_leases_are_found_oldest_first: OneNode,
    leases::a_lease_that_was_extended_is_not_taken_back: OneNode,
    leases::of_two_nodes_that_recover_a_job_one_wins: Nodes,
    leases::a_worker_that_settles_and_a_node_that_recovers_cannot_both_win: Nodes,
    leases::what_another_node_did_to_a_job_is_seen_by_whoever_handed_it_out: Nodes,
    leases::what_becomes_of_a_job_that_is_waited_for_is_seen: Postgres,
    leases::a_job_whose_workers_keep_dying_fails_in_the_end: OneNode,
    leases::a_node_finds_its_own_leases_only: Nodes,
    parking::a_parked_job_waits_until_it_is_woken: OneNode,
    parking::a_wake_up_before_parking_makes_the_job_due_at_once: OneNode,
    parking::a_wake_up_while_queued_is_not_forgotten: OneNode,
    parking::parking_until_a_moment_ends_at_that_moment_or_with_a_wake_up: OneNode,
    parking::two_wake_ups_wake_once: OneNode,
    parking::many_wake_ups_at_once_are_all_counted: Nodes,
    parking::parking_and_waking_at_once_never_leaves_a_job_asleep: Nodes,
    parking::a_parked_job_is_no_longer_its_workers: OneNode,
    parking::an_ended_job_cannot_be_woken: OneNode,
    timers::a_timer_is_found_when_it_is_due_and_the_next_is_told: OneNode,
    timers::a_refused_command_sets_no_timer: OneNode,
    timers::a_timer_that_fires_fails_the_job_and_fences_its_worker: OneNode,
    timers::of_two_nodes_that_fire_a_timer_one_wins: Nodes,
    timers::ending_a_job_takes_its_timer_along: OneNode,
    timers::a_worker_that_settles_and_a_timer_that_fires_cannot_both_win: Nodes,
    timers::a_timer_that_was_moved_or_cleared_is_not_fired: OneNode,
    timers::kinds_of_a_newer_baton_do_not_hide_ours: OneNode,
    timers::setting_a_timer_is_told_to_whoever_watches: OneNode,
    cursor::readers_beside_eight_writers_on_two_nodes_see_every_event_once: Nodes,
    cursor::readers_beside_eight_writers_on_one_node_see_every_event_once: OneNode,
    cursor::positions_that_were_taken_and_never_used_do_not_stop_readers: OneNode,
    cursor::a_reader_goes_on_where_it_was_after_a_restart: OneNode,
    cursor::whoever_watches_is_told_of_events_and_jobs: OneNode,
    cursor::pools_and_workers_outside_are_told_only_of_jobs_they_can_do: OneNode,
    cursor::another_node_is_told_of_jobs_and_events: Postgres,
    runs::the_database_itself_refuses_to_change_what_ended_of_a_run: OneNode,
    runs::every_kind_of_tampering_with_a_run_is_named: OneNode,
    runs::tampering_with_an_orgs_credits_is_named: OneNode,
    runs::runs_of_another_org_do_not_exist: OneNode,
    runs::commands_reach_only_runs_of_ones_own: OneNode,
    runs::what_was_there_before_there_were_runs_is_still_there: Postgres,
    tenants::reading_shows_only_what_is_ones_own: OneNode,
    tenants::commands_reach_only_what_is_ones_own: OneNode,
    tenants::the_same_id_in_two_orgs_is_two_jobs: OneNode,
    tenants::a_key_of_another_org_is_another_key: OneNode,
    lists::the_newest_come_first: OneNode,
    lists::pages_have_no_gap_and_no_repetition_while_jobs_are_added: OneNode,
    lists::filters_go_by_the_face_that_users_know: OneNode,
    lists::a_filter_finds_what_stands_far_behind: OneNode,
    lists::a_page_ends_when_it_is_large_enough: OneNode,
    lists::depths_count_what_has_not_ended_by_project_and_state: OneNode,
    orders::jobs_are_listed_both_ways: OneNode,
    orders::dead_letters_are_listed_both_ways: OneNode,
    orders::lanes_and_documents_are_listed_both_ways: OneNode,
    orders::orgs_are_listed_both_ways: OneNode,
    definitions::registering_again_changes_nothing: OneNode,
    definitions::a_version_means_one_thing_for_ever: OneNode,
    definitions::definitions_survive_a_restart: OneNode,
    definitions::of_two_nodes_that_register_the_same_one_does_and_both_are_content: Nodes,
    definitions::two_nodes_that_register_different_versions_make_one_chain: Nodes,
    definitions::of_two_nodes_that_disagree_about_a_version_one_is_refused: Nodes,
    tampering::the_database_itself_refuses_to_change_the_past: OneNode,
    tampering::the_database_itself_refuses_states_that_cannot_be: OneNode,
    tampering::every_kind_of_tampering_with_a_job_is_named: OneNode,
    tampering::a_job_that_stands_where_nobody_looks_for_it_is_named: SqliteFile,
    tampering::a_job_that_lost_half_of_its_rows_is_named: OneNode,
    seals::a_sealed_history_verifies_under_its_key: OneNode,
    seals::a_seal_must_follow_the_one_before: OneNode,
    seals::of_two_nodes_that_close_a_range_one_wins: Nodes,
    seals::seals_made_with_another_key_are_found: OneNode,
    seals::a_history_rewritten_with_all_its_hashes_is_found: OneNode,
    seals::a_job_removed_without_a_trace_is_found: OneNode,
    seals::a_whole_history_removed_without_a_trace_is_found: OneNode,
    seals::a_tail_cut_off_with_its_rows_turned_back_is_found: OneNode,
    seals::a_seal_that_was_changed_or_removed_is_found: OneNode,
    seals::other_orgs_are_sealed_apart: OneNode,
    opening::a_store_that_is_opened_again_has_forgotten_nothing: OneNode,
    opening::a_closed_store_says_so: OneNode,
    opening::whoever_is_promised_something_while_the_store_closes_has_it: OneNode,
    opening::a_data_directory_has_one_user_at_a_time: OneNode,
    opening::a_schema_of_the_future_is_refused_unless_it_says_otherwise: OneNode,
    opening::a_migration_that_was_edited_is_noticed: OneNode,
    opening::nodes_that_open_an_empty_database_at_once_all_succeed: Postgres,
    opening::a_url_that_cannot_be_used_is_not_repeated: Postgres,
    opening::a_server_that_cannot_be_reached_is_said_to_be_so: Postgres,
    corruption::a_corrupt_file_is_moved_aside_and_stops_the_start: SqliteFile,
    corruption::a_corrupt_file_is_moved_aside_and_the_start_is_fresh_if_so_wanted: SqliteFile,
    corruption::a_corrupt_file_that_is_only_looked_at_is_left_alone: SqliteFile,
    corruption::each_corrupt_file_is_kept: SqliteFile,
    corruption::a_database_that_is_gone_is_not_mistaken_for_a_first_start: SqliteFile,
    opening::looking_changes_nothing: OneNode,
    opening::a_crash_while_closing_is_a_crash: OneNode,
    cursor::a_place_that_was_never_reached_is_told_apart: OneNode,
    corruption::an_empty_file_is_a_new_database: SqliteFile,
    clock::the_time_of_a_subject_never_goes_backwards: OneNode,
    clock::what_was_due_stays_due_when_the_clock_jumps_back: OneNode,
    clock::a_delayed_job_waits_for_its_moment_whatever_the_clock_did: OneNode,
    clock::leases_hold_when_the_clock_jumps_back: OneNode,
    clock::a_deadline_waits_for_its_moment_whatever_the_clock_did: OneNode,
    races::a_key_that_was_free_is_looked_at_again_after_waiting_for_a_lane: Postgres,
    races::no_more_take_in_side_by_side_than_the_room_is_divided_among: Postgres,
    plans::no_statement_of_the_committer_reads_a_table_from_end_to_end: Postgres,
    plans::no_statement_of_runs_reads_a_table_from_end_to_end: Postgres,
    limits::a_payload_may_be_large_but_not_too_large: OneNode,
    limits::a_result_may_be_large_but_not_too_large: OneNode,
    limits::any_text_survives: OneNode,
    lanes::a_lane_gives_no_more_than_its_limit: OneNode,
    lanes::settling_hands_the_slot_to_the_lanes_next_in_the_same_commit: OneNode,
    succession::whatever_goes_wrong_who_waits_behind_it_is_done_once: OneNode,
    succession::what_rests_on_one_that_was_given_up_is_decided_anew: OneNode,
    succession::who_waits_behind_one_that_is_rejected_is_not_touched: OneNode,
    succession::who_is_there_is_seen_by_those_who_come_behind: OneNode,
    succession::what_has_ended_has_ended_for_those_who_come_behind: OneNode,
    succession::claims_behind_each_other_share_what_there_is: OneNode,
    successors::successors_come_from_the_lanes_of_jobs_that_end_and_no_other: OneNode,
    successors::a_paused_lane_has_no_successors: OneNode,
    successors::successors_of_other_kinds_are_left_where_they_are: OneNode,
    successors::successors_come_in_the_same_order_as_with_a_look_everywhere: OneNode,
    standing_by::who_stands_by_is_handed_what_comes_in: OneNode,
    standing_by::as_many_as_fit_are_handed_over_and_the_rest_waits: OneNode,
    standing_by::who_stands_by_is_not_handed_what_is_not_theirs_or_not_its_turn: OneNode,
    standing_by::who_waits_already_goes_before_who_comes_in: OneNode,
    standing_by::whoever_leaves_does_not_wait_for_a_group_that_is_held_up: Postgres,
    standing_by::whoever_leaves_while_something_comes_in_has_it_or_it_waits: OneNode,
    between_turns::what_comes_in_between_goes_first_where_it_should: Nodes,
    between_turns::who_is_gone_in_between_is_not_handed_out: Nodes,
    between_turns::a_lane_that_is_paused_in_between_gives_nothing: Nodes,
    between_turns::a_lane_that_is_paused_in_between_gives_nothing_for_what_comes_back: Nodes,
    between_turns::a_lease_that_is_lost_in_between_is_refused: Nodes,
    between_turns::one_that_is_to_be_tried_again_at_once_keeps_its_place: OneNode,
    between_turns::a_wide_lane_is_remembered_for_as_many_as_end: Nodes,
    between_turns::a_long_payload_and_a_failure_are_as_ever: OneNode,
    lanes::waiting_for_a_tool_keeps_the_slot_and_other_waiting_gives_it_back: OneNode,
    lanes::a_job_that_goes_on_needs_no_free_slot: OneNode,
    lanes::types_with_and_without_a_limit_share_a_lane_and_only_those_with_one_are_counted: OneNode,
    lanes::a_flooding_project_delays_another_by_one_job_a_turn: OneNode,
    lanes::interactive_goes_first_until_background_has_waited_too_long: OneNode,
    lanes::an_aged_job_of_a_high_number_is_seen_behind_fresh_ones: OneNode,
    lanes::an_aged_job_that_needs_no_slot_is_seen_in_a_full_lane: OneNode,
    lanes::an_aged_job_is_seen_behind_delayed_ones_that_are_due_now: OneNode,
    lanes::whoever_asks_for_one_type_does_not_wait_behind_thousands_of_another: OneNode,
    lanes::one_claim_sees_as_many_aged_jobs_as_it_can_take: OneNode,
    lanes::a_paused_lane_gives_nothing_until_it_is_resumed: OneNode,
    lanes::two_nodes_never_fill_a_lane_beyond_its_limit: Nodes,
    lanes::many_lanes_that_are_full_do_not_hide_one_that_is_not: OneNode,
    lanes::lanes_that_have_emptied_do_not_hide_one_that_has_not: OneNode,
    lanes::however_many_lanes_wait_each_has_its_turn: SqliteFile,
    lanes::who_comes_back_to_a_lane_that_was_forgotten_is_found: OneNode,
    lanes::lanes_that_count_nothing_are_forgotten: OneNode,
    lanes::lanes_are_listed_page_by_page: OneNode,
    lanes::a_late_worker_does_not_free_a_slot_twice: OneNode,
    dedupe::single_flight_gives_the_one_that_has_not_ended: OneNode,
    dedupe::a_dropped_duplicate_is_dropped_while_the_first_is_kept: OneNode,
    dedupe::a_merged_duplicate_changes_what_waits_and_follows_what_runs: OneNode,
    dedupe::two_nodes_racing_with_one_dedupe_key_make_one_job: Nodes,
    dedupe::a_message_is_one_job_for_a_day_whoever_says_it: Nodes,
    dedupe::no_more_wait_than_there_is_room_for_though_two_nodes_take_in: Nodes,
    dedupe::the_room_of_all_is_filled_from_nothing_by_two_nodes_and_never_overfilled: Nodes,
    dedupe::a_duplicate_is_dropped_though_the_first_completes_meanwhile: Nodes,
    dedupe::a_type_with_a_depth_of_its_own_is_held_to_it: OneNode,
    dedupe::a_batch_is_taken_whole_or_not_at_all: OneNode,
    dedupe::a_dead_letter_is_made_anew_once_though_two_nodes_try: Nodes,
    dedupe::dead_letters_are_listed_by_project_and_type_until_they_are_made_anew: OneNode,
    dedupe::what_is_merged_while_it_is_claimed_is_not_lost: Nodes,
    dedupe::a_dead_letter_whose_duplicate_is_there_is_not_made_anew: OneNode,
    dedupe::of_dead_letters_with_one_key_a_filter_makes_one_anew_and_leaves_the_rest: OneNode,
    lanes::lanes_of_other_kinds_do_not_hide_ours: OneNode,
    retention::a_job_that_ended_late_is_kept_although_it_is_old: OneNode,
    retention::the_oldest_go_with_their_history_and_the_seals_still_hold: OneNode,
    retention::what_was_dropped_as_a_duplicate_may_come_again_after_that: OneNode,
    retention::of_two_nodes_that_prune_the_same_one_does: Nodes,
    retention::removing_events_without_saying_so_is_found: OneNode,
    limits::ten_thousand_at_once_are_all_answered_and_none_is_lost: OneNode,
}

/// Runs one case wherever it can run.
pub async fn check(case: &str) {
    let Some(case) = CASES.iter().find(|c| c.name == case) else { panic!("no case is called {case}") };
    for place in case.places() {
        match Lab::new(*place, None).await {
            Ok(Some(lab)) => match tokio::time::timeout(PATIENCE, (case.run)(lab)).await {
                Ok(Ok(())) => {}
                // The reason again behind the trace: whoever sees only the end of what was printed sees it too.
                Ok(Err(e)) => panic!("{} on {place:?}: {e:?}\n{} on {place:?}: {e:#}", case.name, case.name),
                Err(_) => panic!("{} on {place:?} waits for ever", case.name),
            },
            Ok(None) => {}
            Err(e) => panic!("no lab on {place:?}: {e:?}"),
        }
    }
}
