//! Logs and counters of what becomes of jobs, told by the store once it is committed.

use baton_core::event::Note;
use baton_core::rules::Rules;
use baton_store::Observer;

/// Tells each move of a job once, on the node that committed it.
pub struct Chronicler {
    rules: Rules,
}

impl Chronicler {
    pub const fn new(rules: Rules) -> Self {
        Self { rules }
    }

    fn count(&self, note: &Note) {
        let kind = || note.kind.to_string();
        if let Some(ran) = note.ran {
            metrics::histogram!("baton_job_run_seconds", "type" => kind()).record(ran.to_std().as_secs_f64());
        }
        match note.what {
            "job.queued" => metrics::counter!("baton_jobs_enqueued_total", "type" => kind()).increment(1),
            "job.deduplicated" => metrics::counter!("baton_dedupe_hits_total", "type" => kind()).increment(1),
            "job.started" => {
                metrics::counter!("baton_job_attempts_total", "type" => kind()).increment(1);
                if let Some(waited) = note.waited.filter(|w| note.background && *w > self.rules.aging) {
                    metrics::histogram!("baton_aged_background_wait_seconds", "type" => kind())
                        .record(waited.to_std().as_secs_f64());
                }
            }
            "job.retry_scheduled" => metrics::counter!("baton_job_retries_total", "type" => kind()).increment(1),
            "job.completed" => metrics::counter!("baton_jobs_completed_total", "type" => kind()).increment(1),
            "job.failed" => {
                let reason = note.reason.clone().unwrap_or_default();
                metrics::counter!("baton_jobs_failed_total", "type" => kind(), "reason" => reason).increment(1);
            }
            "job.hook_failed" => metrics::counter!("baton_hooks_failed_total", "type" => kind()).increment(1),
            "job.cancelled" => metrics::counter!("baton_jobs_cancelled_total", "type" => kind()).increment(1),
            _ => {}
        }
    }
}

impl Observer for Chronicler {
    fn committed(&self, notes: &[Note]) {
        for note in notes {
            self.count(note);
            tracing::info!(
                jobId = %note.job,
                projectId = %note.project,
                r#type = %note.kind,
                attempt = note.attempt,
                reason = note.reason.as_deref().unwrap_or(""),
                "{}",
                note.what
            );
        }
    }
}
