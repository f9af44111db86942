//! Limits with a name. Those an operator may change are in the configuration as well.

/// Largest payload of a job, as canonical JSON text.
pub const PAYLOAD_BYTES: usize = 256 * 1024;
/// Largest result of a job, as canonical JSON text.
pub const RESULT_BYTES: usize = 256 * 1024;
/// Longest error message that is kept.
pub const ERROR_CHARS: usize = 2_000;
/// Longest code of a failure.
pub const CODE_CHARS: usize = 64;
/// Longest idempotency key.
pub const IDEMPOTENCY_KEY_CHARS: usize = 255;
/// Jobs that one command may touch at once.
pub const JOBS_PER_COMMAND: usize = 1_000;
/// A job can be scheduled, or given a deadline, this far ahead.
pub const AHEAD: crate::time::Span = crate::time::Span::secs(366 * 24 * 60 * 60);

/// Jobs of one batch.
pub const BATCH_JOBS: usize = 1_000;
/// Longest message id.
pub const MESSAGE_ID_CHARS: usize = 255;
/// How long a message id is remembered.
pub const MESSAGE_KEPT: crate::time::Span = crate::time::Span::secs(24 * 60 * 60);
/// Longest reason given for a cancellation.
pub const REASON_CHARS: usize = 200;
/// Longest note on the progress of a job, and thread or turn of its running context.
pub const NOTE_CHARS: usize = 200;
/// Largest question of a job, and answer to it, as canonical JSON text.
pub const QUESTION_BYTES: usize = 16 * 1024;
/// After how long it is worth asking again when a queue is full: at least, and at most.
pub const FULL_RETRY: crate::time::Span = crate::time::Span::secs(1);
pub const FULL_RETRY_MAX: crate::time::Span = crate::time::Span::secs(30);
/// Jobs whose history is removed in one commit.
pub const PRUNE_JOBS: usize = 50;
/// Events that a job may have and still be pruned with others; one with more goes alone.
pub const PRUNE_EVENTS: usize = 5_000;

/// Projects, job types or responsibilities that one key names.
pub const GRANT_NAMES: usize = 100;
/// Sessions of one key that were left and are not over yet.
pub const ENDED_SESSIONS: usize = 100;
/// Options of one decision.
pub const OPTIONS: usize = 20;
/// How often one decision is escalated.
pub const ESCALATIONS: usize = 5;
/// Longest text that people are asked.
pub const PROMPT_CHARS: usize = 2_000;
/// Webhooks of one org that are told things.
pub const WEBHOOKS: usize = 100;
/// Longest address of an endpoint.
pub const URL_BYTES: usize = 2_048;
/// Job types that one org registers, versions of each, and the largest one as canonical JSON text.
pub const JOB_TYPES: usize = 1_000;
pub const JOB_TYPE_VERSIONS: u32 = 1_000;
pub const JOB_TYPE_BYTES: usize = 64 * 1024;
/// Schemas of all versions of all types that one org registers, together.
pub const JOB_TYPE_SCHEMAS: usize = 4 * 1024 * 1024;
/// Longest text that says what a type does.
pub const SUMMARY_CHARS: usize = 500;
/// Attempts, and failures, that a type may allow; jobs at the same time in a lane of its own, and those that may
/// wait there.
pub const JOB_TYPE_ATTEMPTS: u32 = 100;
pub const LANE_LIMIT: u32 = 100_000;
pub const LANE_DEPTH: u32 = 10_000_000;
/// A lease lasts at least, and at most.
pub const LEASE_MIN: crate::time::Span = crate::time::Span::secs(1);
pub const LEASE_MAX: crate::time::Span = crate::time::Span::secs(60 * 60);
/// Signals that one run may be given.
pub const SIGNALS: u32 = 1_000;
/// Longest label that people give to something.
pub const LABEL_CHARS: usize = 100;

/// A run document, as it was written.
pub const DOCUMENT_BYTES: usize = 1024 * 1024;
/// Problems of one run document that are told; whoever wrote it mends those first.
pub const PROBLEMS: usize = 50;
/// Longest name of a run.
pub const RUN_NAME_CHARS: usize = 200;
/// Longest text of what a run, or one of its agents, is about.
pub const RUN_TASK_CHARS: usize = 10_000;
pub const SUBTASK_CHARS: usize = 10_000;
/// Labels of one run, the longest name and the longest value of one.
pub const RUN_LABELS: usize = 20;
pub const RUN_LABEL_NAME_CHARS: usize = 64;
pub const RUN_LABEL_CHARS: usize = 200;
/// Agents of one run.
pub const RUN_AGENTS: usize = 1_000;
/// Tasks of one agent.
pub const AGENT_TASKS: usize = 1_000;
/// Steps of one task.
pub const TASK_STEPS: usize = 10_000;
/// Steps of one run, over all its tasks.
pub const RUN_STEPS: usize = 20_000;
/// Attempts of a run, an agent, a task or a step.
pub const PLAN_ATTEMPTS: u32 = 10;
/// Agents, tasks or steps that go at the same time.
pub const PLAN_WIDTH: u32 = 100;
/// Failures that a run may be told to bear.
pub const FAILURE_BUDGET: u32 = 1_000;
/// Largest input of a step, as canonical JSON text: as it was written, and with all that it names.
pub const INPUT_BYTES: usize = 64 * 1024;
/// Lists and objects inside each other in the input of a step.
pub const INPUT_DEPTH: usize = 32;

/// Cuts a message to a length in characters, never inside one. NUL, which PostgreSQL cannot
/// store, is shown as its picture.
pub fn cut(text: &str, chars: usize) -> String {
    let text = text.replace('\0', "\u{2400}");
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
