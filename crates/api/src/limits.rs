//! The limits of HTTP, each with its name. Pages and waits are in [`baton_wire::limit`].

use baton_core::time::Span;
use std::time::Duration;

/// Connections at once; who comes then waits in the listener's backlog.
pub const CONNECTIONS: usize = 512;
/// How long a new connection may take to agree on keys, where TLS is spoken.
pub const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);
/// A connection that sends no complete head for this long is closed, idle ones included.
pub const HEAD_WAIT: Duration = Duration::from_secs(20);
/// Head of a request, in bytes.
pub const HEAD_BYTES: usize = 64 * 1024;
/// Headers of a request.
pub const HEADERS: usize = 100;
/// Body of a request.
pub const BODY_BYTES: usize = 1024 * 1024;
/// Body of a request with many jobs.
pub const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// Such bodies in memory at once.
pub const BATCHES: usize = 8;
/// How long one may wait for others to be done with.
pub const BATCH_WAIT: Duration = Duration::from_secs(10);
/// How long a body may take to arrive.
pub const BODY_WAIT: Duration = Duration::from_secs(10);
/// How deep a payload may be nested, so that every answer around it stays readable: parsers
/// commonly stop at 128.
pub const PAYLOAD_DEPTH: usize = 64;
/// Payloads and results in one page of jobs, together. A page holds at least one job.
pub const PAGE_BYTES: usize = 8 * 1024 * 1024;
/// Looks at the store for one page of schedules: deleted ones stand in between.
pub const SCHEDULE_ROUNDS: usize = 10;
/// Looks at the store for one page of decisions: those that are not wanted stand in between.
pub const DECISION_ROUNDS: usize = 5;
/// The same for one page of runs.
pub const RUN_ROUNDS: usize = 10;
/// Looks at the store for one page of steps, and steps that are read in each.
pub const STEP_ROUNDS: usize = 20;
pub const STEPS_READ: usize = 100;
/// Workers of one run that are asked when they last beat.
pub const RUN_BEATS: usize = 16;
/// Jobs, and decisions, that are looked at to say why a run waits.
pub const WHY_ROWS: usize = 50;
/// Looks at the store for what became of one task or step, and records that are read in each.
pub const WHY_ROUNDS: usize = 100;
pub const WHY_READ: usize = 200;
/// The same for one page of webhooks.
pub const WEBHOOK_ROUNDS: usize = 10;
/// How long a key is trusted without asking the store again: as long can a revoked one go on at
/// another node.
pub const KEY_TRUST: Span = Span::secs(1);
/// How long a login link works.
pub const TICKET_LIFE: Duration = Duration::from_secs(30);
/// Login links that wait to be used at a node, and of one key among them.
pub const TICKETS: usize = 1_024;
pub const TICKETS_PER_KEY: usize = 4;
/// Looks at once for keys that a node has not seen lately, and how long one waits for its turn.
pub const STRANGERS: usize = 4;
pub const STRANGER_WAIT: Duration = Duration::from_secs(2);
/// Keys that a node remembers.
pub const KEYS_KNOWN: usize = 10_000;
/// How long a request waits for another with its idempotency key.
pub const FLIGHT_WAIT: Duration = Duration::from_secs(10);
/// Requests that wait for one of them.
pub const FLIGHT_WAITERS: usize = 1_000;
/// How long a connection may accept nothing of what it is sent before it is closed.
pub const WRITE_WAIT: Duration = Duration::from_secs(30);
/// Listeners at once, over sockets and streams together.
pub const LISTENERS: usize = 256;
/// Listeners with one key, so that it cannot take all the places.
pub const LISTENERS_PER_KEY: usize = 64;
/// Workers that wait for jobs at once, and of one key among them.
pub const WORKERS_WAITING: usize = 256;
pub const WORKERS_WAITING_PER_KEY: usize = 64;
/// How long a listener may take to accept what it is sent.
pub const LISTENER_SLOW: Duration = Duration::from_secs(10);
/// How long a socket that is closed may take to hear why.
pub const LISTENER_FAREWELL: Duration = Duration::from_secs(8);
/// How often a listener is told that nothing happened, and its key is looked at again.
pub const LISTENER_BEAT: Duration = Duration::from_secs(15);
/// Beats that a socket may leave unanswered.
pub const LISTENER_SILENT: u32 = 3;
/// Pieces of a stream on their way to one listener.
pub const LISTENER_QUEUE: usize = 4;
/// A piece is sent when it has this many bytes; the last event in it may make it somewhat longer.
pub const LISTENER_CHUNK: usize = 64 * 1024;
/// Largest message of a listener; nothing it says matters.
pub const LISTENER_MESSAGE: usize = 4 * 1024;
/// Names of one kind that a listener may filter by.
pub const LISTENER_NAMES: usize = 50;
/// How long a stream's reader is asked to wait before it comes again.
pub const RECONNECT_MS: u32 = 1_000;
/// The last events that are kept for listeners, of all orgs that are listened to, roughly.
pub const RECENT_BYTES: usize = 32 * 1024 * 1024;
/// Events that are read at once for listeners.
pub const RECENT_BATCH: usize = 500;
/// A result up to this size is kept with the event that tells of it; larger ones are read by everybody
/// who hears of them.
pub const RECENT_RESULT: usize = 4 * 1024;
/// Jobs of which it is remembered which chat session they belong to.
pub const THREADS_KNOWN: usize = 20_000;
/// How long the store may take to answer before the request is given up.
pub const STORE_WAIT: Duration = Duration::from_secs(30);
/// How long verifying the whole history may take.
pub const AUDIT_WAIT: Duration = Duration::from_secs(15 * 60);
/// Verifications of the history at once.
pub const AUDITS: usize = 1;
/// How long open requests may go on once the server stops.
pub const DRAIN: Duration = Duration::from_secs(10);
/// What `Retry-After` says when trying again can help.
pub const RETRY_AFTER_S: u32 = 1;
/// Projects whose queue depth is shown one by one: the deepest. The sums count all.
pub const METRIC_PROJECTS: usize = 500;
/// How often recorded samples are folded, so that nobody scraping costs no memory.
pub const METRICS_UPKEEP: Duration = Duration::from_secs(10);
/// How long the listener rests when the system is out of sockets.
pub const ACCEPT_REST: Duration = Duration::from_millis(500);
