//! Every counter there is, with what it counts. Those whose labels are known begin at zero: one that
//! only appears with its first event has no increase to alert on.
//!
//! Elsewhere: counting, where it happens (`baton-engine`, [`crate::metrics`]).

use baton_core::definition::Definitions;

pub const REQUESTS: &str = "baton_http_requests_total";

/// What a counter is divided by.
enum By {
    Nothing,
    Type,
    Outcome(&'static [&'static str]),
    /// Among others by something that is not known beforehand.
    Open,
}

const COUNTERS: [(&str, By, &str); 16] = [
    (REQUESTS, By::Open, "HTTP requests by method, route and status"),
    ("baton_jobs_enqueued_total", By::Type, "Jobs taken in, by type"),
    ("baton_dedupe_hits_total", By::Type, "Requests that came to no new job, because of their key or message, by type"),
    ("baton_job_attempts_total", By::Type, "Executions begun, by type"),
    ("baton_job_retries_total", By::Type, "Failures after which a job is tried again, by type"),
    ("baton_jobs_completed_total", By::Type, "Jobs completed, by type"),
    ("baton_jobs_failed_total", By::Open, "Jobs failed for good, by type and reason"),
    ("baton_jobs_cancelled_total", By::Type, "Jobs cancelled, by type"),
    (
        "baton_jobs_recovered_total",
        By::Outcome(&["requeued", "failed", "cancelled"]),
        "Jobs taken back from workers that were gone, by outcome",
    ),
    ("baton_jobs_pruned_total", By::Nothing, "Ended jobs that were forgotten"),
    (
        "baton_handlers_ended_total",
        By::Outcome(&["completed", "failed", "parked", "asked", "released", "stopped"]),
        "Executions ended, by outcome",
    ),
    ("baton_hooks_failed_total", By::Type, "Hooks that panicked or wrote rows that do not fit, by type"),
    ("baton_leases_lost_total", By::Nothing, "Leases lost while their job ran"),
    ("baton_outcomes_discarded_total", By::Nothing, "Outcomes that came too late"),
    ("baton_timers_fired_total", By::Nothing, "Timers fired"),
    ("baton_seals_total", By::Nothing, "Seals made"),
];

pub fn describe() {
    for (name, _, what) in &COUNTERS {
        metrics::describe_counter!(*name, *what);
    }
}

/// Adding nothing makes a counter appear, and leaves one alone that has already counted.
pub fn begin(definitions: &Definitions) {
    for (name, by, _) in &COUNTERS {
        match by {
            By::Nothing => metrics::counter!(*name).increment(0),
            By::Type => {
                for job_type in definitions.job_types() {
                    metrics::counter!(*name, "type" => job_type.name.to_string()).increment(0);
                }
            }
            By::Outcome(outcomes) => {
                for outcome in *outcomes {
                    metrics::counter!(*name, "outcome" => *outcome).increment(0);
                }
            }
            By::Open => {}
        }
    }
}
