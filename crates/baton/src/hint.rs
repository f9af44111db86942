//! What to do next about a refusal, in the commands of this program. What the server hints at is
//! meant for whoever speaks HTTP to it.

const HINTS: [(&str, &str); 20] = [
    ("job_not_found", "a project's jobs are listed by: baton jobs list --project PROJECT; old ones are forgotten"),
    ("lane_not_found", "lanes are listed by: baton lanes list; that of a project is called project:PROJECT"),
    ("schedule_not_found", "schedules are listed by: baton schedules list --project PROJECT"),
    ("invalid_transition", "see how it stands with: baton jobs get JOB, or baton runs show RUN"),
    ("run_not_found", "runs are listed by: baton runs list"),
    ("agent_not_found", "a run's agents are shown by: baton runs show RUN --json"),
    ("attempts_exhausted", "start it anew from its document with: baton run FILE"),
    (
        "insufficient_credits",
        "see what there is with: baton credits balance; an admin gives more with: baton credits grant",
    ),
    ("internal_job", "steer its run with: baton runs pause, resume or cancel RUN"),
    ("part_not_found", "tasks and steps are named as in the document: baton why AGENT.TASK.STEP"),
    ("already_requeued", "see what became of it with: baton jobs get JOB"),
    ("decision_closed", "see how it was decided with: baton decisions show DECISION"),
    ("decision_not_found", "open ones are listed by: baton decisions list"),
    ("unauthenticated", "give a key with --key, BATON_KEY or a context; keys are made by: baton keys create"),
    ("key_not_found", "keys are listed by: baton keys list"),
    ("unknown_job_type", "choose one of the known types, or start a server that knows this one"),
    ("invalid_schedule", "an expression looks like '*/5 * * * *', a zone like Europe/Berlin"),
    ("batch_size", "do it in several goes; a file is cut up by: split -l 1000 FILE"),
    ("invalid_cursor", "use a cursor as it was printed, with the command that printed it"),
    ("idempotency_key_reused", "use another --idempotency-key for another request"),
];

pub fn about(code: &str) -> Option<&'static str> {
    HINTS.iter().find(|(known, _)| *known == code).map(|(_, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_api::problem::CODES;

    #[test]
    fn hints_are_about_codes_that_exist() {
        for (code, _) in HINTS {
            assert!(CODES.iter().any(|known| known.code == code), "{code}");
        }
        assert!(about("job_not_found").is_some() && about("moon").is_none());
    }
}
