//! The statements of the hot path, prepared once per connection. Each handles many rows.

use super::block::{BITS, LAST};
use super::rows::{COLD, DOC};
use super::run_rows::{AGENT, RUN};
use futures_util::future::try_join_all;
use tokio_postgres::{Client, Error, Statement};

/// The columns of `live` that make a job, in the order `rows::live_job` reads them.
pub(super) const LIVE: &str = "l.org, l.id, l.project, l.type, l.version, l.priority, l.state, l.pause, l.due_at, \
    l.worker, l.lease_until, l.attempts, l.max_attempts, l.token, l.wakes, l.created_at, l.started_at, l.has_deadline, \
    l.head_n, l.head_hash, l.head_at, l.ord, l.since, l.lane, l.lane_max, l.kept, l.outside, l.dedupe, l.failures, \
    l.max_failures, l.aside";
pub(super) const LIVE_LEN: usize = 31;

/// The columns of `job` that make an ended job, in the order `rows::ended_job` reads them.
pub(super) const ENDED: &str = "j.org, j.id, j.project, j.type, j.version, j.priority, j.state, j.ended_at, \
    j.attempts, j.max_attempts, j.token, j.created_at, j.started_at, j.deadline_at, j.head_n, j.head_hash, j.head_at, \
    j.lane, j.failures, j.max_failures, j.aside";
pub(super) const ENDED_LEN: usize = 21;

/// Appends events, given as this parameter. They stand in blocks, in their order. Blocks are not taken before the transaction
/// has an id: see the tailer. As a condition that names nothing of a row, it is looked at once and first.
pub(super) fn insert_events(n: usize) -> String {
    format!(
        "INSERT INTO event (pos, org, subject, n, at, kind, actor, data, hash) \
         SELECT (b.taken[1 + ((k.o - 1) >> {BITS})::int] << {BITS}) | ((k.o - 1) & {LAST}), \
         k.org, k.subject, k.n, k.at, k.kind, k.actor, k.data, k.hash \
         FROM (SELECT ARRAY(SELECT nextval('event_block') FROM generate_series(1, (cardinality(${n}::event_told[]) + {LAST}) >> {BITS}) \
         WHERE pg_current_xact_id() IS NOT NULL) AS taken OFFSET 0) b \
         CROSS JOIN unnest(${n}::event_told[]) WITH ORDINALITY AS k(org, subject, n, at, kind, actor, data, hash, o)"
    )
}

/// New counts of lanes, given as this parameter. Of those that were not locked the rows must be as a transaction has left
/// them, if there is a parameter that names it.
fn update_lanes(n: usize, left_by: Option<usize>) -> String {
    let (rows, as_left) = match left_by {
        Some(m) => (
            format!(
                "unnest(${n}::lane_counted[], ${m}::int[]) AS k(org, key, max, running, waiting, outside, burst, left_by)"
            ),
            "AND (k.left_by IS NULL OR lane.xmin = k.left_by)",
        ),
        None => (format!("unnest(${n}::lane_counted[]) k"), ""),
    };
    format!(
        "UPDATE lane SET max = k.max, running = k.running, waiting = k.waiting, outside = k.outside, burst = k.burst \
         FROM {rows} CROSS JOIN LATERAL (SELECT x.ctid FROM lane x WHERE x.org = k.org AND x.key = k.key OFFSET 0) t \
         WHERE lane.ctid = t.ctid {as_left} RETURNING 1"
    )
}

/// How many more wait in all, or fewer.
fn add_crowd(n: usize) -> String {
    format!(
        "INSERT INTO crowd (writer, waiting) SELECT (pg_backend_pid() % 32)::text, ${n}::bigint WHERE ${n}::bigint <> 0 \
         ON CONFLICT (writer) DO UPDATE SET waiting = crowd.waiting + excluded.waiting"
    )
}

/// Ends of jobs, given as this parameter.
fn end_jobs(n: usize) -> String {
    format!(
        "UPDATE job SET state = k.state, ended_at = k.ended_at, result = k.result, error_code = k.error_code, \
         error = k.error, attempts = k.attempts, token = k.token, started_at = k.started_at, head_n = k.head_n, \
         head_hash = k.head_hash, head_at = k.head_at, failures = k.failures, aside = k.aside, \
         max_attempts = k.max_attempts FROM unnest(${n}::job_ended[]) k \
         CROSS JOIN LATERAL (SELECT x.ctid FROM job x WHERE x.org = k.org AND x.id = k.id OFFSET 0) t \
         WHERE job.ctid = t.ctid RETURNING 1"
    )
}

/// What goes with every move of jobs, from this parameter on: counts of lanes, how many wait in all, events.
pub(super) fn beside(first: usize, left_by: Option<usize>) -> String {
    let (lanes, crowd, events) = (update_lanes(first, left_by), add_crowd(first + 1), insert_events(first + 2));
    format!("n AS ({lanes}), c AS ({crowd}), t AS ({events})")
}

/// Aborts the commit unless this part has touched as many rows as the parameter has.
pub(super) fn exactly(part: &str, n: usize, what: &str) -> String {
    let touched = format!("(SELECT count(*) FROM {part})");
    format!("CASE WHEN {touched} <> cardinality(${n}) THEN baton_must_be({touched}, cardinality(${n}), '{what}') END")
}

/// Jobs that leave `live` ($1 and $2), that change in it ($3) and that end ($4), behind something that is looked at before the
/// first of them is locked. Of those that were not locked the rows must still be as a transaction has left them ($8 and $9).
/// What is ready stays ready while its moment is not touched, also if the clock has jumped back.
pub(super) fn moves(behind: &str) -> String {
    let ended = end_jobs(4);
    // Of the row itself, so that it is asked again of one that somebody else has just changed.
    let as_left = "(k.left_by IS NULL OR live.xmin = k.left_by)";
    format!(
        "d AS (DELETE FROM live USING {behind}unnest($1::text[], $2::uuid[], $8::int[]) AS k(org, id, left_by) \
         CROSS JOIN LATERAL (SELECT x.ctid FROM live x WHERE x.org = k.org AND x.id = k.id OFFSET 0) t \
         WHERE live.ctid = t.ctid AND {as_left} RETURNING 1), \
         u AS (UPDATE live SET phase = CASE WHEN live.phase = 1 AND live.due_at = k.due_at THEN 1 \
         ELSE k.phase END, state = k.state, pause = k.pause, due_at = k.due_at, \
         worker = k.worker, lease_until = k.lease_until, attempts = k.attempts, token = k.token, wakes = k.wakes, \
         started_at = k.started_at, head_n = k.head_n, head_hash = k.head_hash, head_at = k.head_at, \
         slot = k.slot, dedupe = k.dedupe, failures = k.failures, aside = k.aside, max_attempts = k.max_attempts \
         FROM {behind}unnest($3::job_moved[], $9::int[]) AS k(org, id, phase, state, pause, due_at, worker, lease_until, attempts, \
         token, wakes, started_at, head_n, head_hash, head_at, slot, dedupe, failures, aside, max_attempts, left_by) \
         CROSS JOIN LATERAL (SELECT x.ctid FROM live x WHERE x.org = k.org AND x.id = k.id OFFSET 0) t \
         WHERE live.ctid = t.ctid AND {as_left} RETURNING 1), \
         e AS ({ended})"
    )
}

/// Moves of jobs, and what goes with that.
fn put_moves() -> String {
    let (moves, beside) = (moves(""), beside(5, None));
    let left = exactly("d", 1, "a removal of live jobs");
    let moved = exactly("u", 3, "an update of live jobs");
    let (over, lanes) = (exactly("e", 4, "an end of jobs"), exactly("n", 5, "an update of lanes"));
    format!("WITH {moves}, {beside} SELECT {left}, {moved}, {over}, {lanes}")
}

/// New jobs ($1), those of them that live ($2), and what goes with that.
fn put_births() -> String {
    let (births, beside, lanes) = (births(), beside(3, None), exactly("n", 3, "an update of lanes"));
    format!("WITH {births}, {beside} SELECT {lanes}")
}

/// The same where no lane counts them, and nobody counts who waits: a part that has nothing to do costs as much as two new jobs.
fn put_open_births() -> String {
    format!("WITH {} {}", births(), insert_events(3))
}

fn births() -> &'static str {
    "j AS (INSERT INTO job (org, id, project, type, version, priority, payload, source_session, deadline_at, \
         created_at, max_attempts, lane, max_failures, dedupe_key, requeued_from, schedule) \
         SELECT k.* FROM unnest($1::job_born[]) k), \
         l AS (INSERT INTO live (ord, org, id, project, type, version, priority, phase, state, pause, due_at, worker, \
         lease_until, attempts, max_attempts, token, wakes, created_at, started_at, has_deadline, head_n, head_hash, \
         head_at, class, slot, since, lane, lane_max, kept, outside, dedupe, failures, max_failures, aside) \
         SELECT nextval('job_order'), k.* FROM unnest($2::job_entered[]) k)"
}

/// Locks these jobs in this order; then the lanes that they count in, and more of them, in the order of their keys. A job
/// never changes its lane. Jobs come first, in the columns in front; lanes in those behind.
fn lock_jobs(jobs: &str, lanes: &str) -> String {
    let nothing = ["NULL"; LIVE_LEN].join(", ");
    format!(
        "WITH j AS MATERIALIZED (SELECT l.* FROM ({jobs}) k CROSS JOIN LATERAL \
         (SELECT {LIVE} FROM live l WHERE l.org = k.org AND l.id = k.id OFFSET 0 FOR UPDATE) l) \
         SELECT j.*, NULL::text, NULL::text, NULL::int, NULL::int, NULL::int, NULL::int, NULL::int FROM j \
         UNION ALL SELECT {nothing}, x.* FROM (SELECT DISTINCT u.org, u.lane FROM (SELECT j.org, j.lane FROM j WHERE j.kept \
         {lanes}) u ORDER BY u.org, u.lane) k CROSS JOIN LATERAL (SELECT org, key, max, running, waiting, outside, burst \
         FROM lane z WHERE z.org = k.org AND z.key = k.lane OFFSET 0 FOR UPDATE) x"
    )
}

/// Lanes that are paused and known to those who hand out what comes in. With more, nobody does.
pub(super) const PAUSED_MAX: usize = 1_000;

/// Scheduled jobs that join the ready ones at once.
const PROMOTED_MAX: usize = 1_000;

/// What rows are sent as: see `listed`.
const TYPES: [&str; 6] = ["job_born", "job_entered", "job_moved", "job_ended", "lane_counted", "event_told"];

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $sql:expr;)*) => {
        const COUNT: usize = [$(stringify!($name),)*].len();

        pub(super) struct Statements { $($(#[$doc])* pub $name: Statement,)* }

        impl Statements {
            /// Their names and texts.
            pub fn texts() -> [(&'static str, String); COUNT] {
                [$((stringify!($name), $sql.to_string()),)*]
            }

            /// All at once: one round trip, not one each. The types of the lists are asked for once, before that.
            pub async fn prepare(client: &Client) -> Result<Self, Error> {
                let lists = TYPES.iter().map(|of| async move { client.prepare(&format!("SELECT $1::{of}[]")).await });
                try_join_all(lists).await?;
                let all = try_join_all(Self::texts().iter().map(|(_, sql)| client.prepare(sql))).await?;
                let [$($name,)*] = <[Statement; COUNT]>::try_from(all)
                    .unwrap_or_else(|_| unreachable!("as many come back as were asked for"));
                Ok(Self { $($name,)* })
            }
        }
    };
}

statements! {
    /// Locks definitions in the order of the keys.
    lock_definitions = "SELECT d.* FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS k(org, class, name, o) \
        CROSS JOIN LATERAL (SELECT org, class, name, id, head_n, head_hash, head_at FROM definition x \
        WHERE x.org = k.org AND x.class = k.class AND x.name = k.name OFFSET 0 FOR UPDATE) d";
    versions = "SELECT v.* FROM unnest($1::text[], $2::uuid[]) AS k(org, id) CROSS JOIN LATERAL \
        (SELECT org, id, version, digest FROM definition_version x WHERE x.org = k.org AND x.id = k.id OFFSET 0) v";
    lock_docs = format!("SELECT d.* FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS k(org, class, key, o) \
        CROSS JOIN LATERAL (SELECT org, class, key, {DOC} FROM doc x \
        WHERE x.org = k.org AND x.class = k.class AND x.key = k.key OFFSET 0 FOR UPDATE) d");
    /// Open rows of runs, in the order of their ids.
    lock_runs = format!("SELECT r.* FROM unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS k(org, id, o) \
        CROSS JOIN LATERAL (SELECT {RUN} FROM run x WHERE x.org = k.org AND x.id = k.id OFFSET 0 FOR UPDATE) r");
    lock_agents = format!("SELECT a.* FROM unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS k(org, id, o) \
        CROSS JOIN LATERAL (SELECT {AGENT} FROM run_agent x WHERE x.org = k.org AND x.id = k.id OFFSET 0 FOR UPDATE) a");
    /// The same with what `now` says, once per key and behind its lock: for groups that lock nothing else.
    lock_agents_now = format!("SELECT baton_now(), pg_current_xact_id()::text, a.* \
        FROM unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS k(org, id, o) LEFT JOIN LATERAL \
        (SELECT {AGENT} FROM run_agent x WHERE x.org = k.org AND x.id = k.id OFFSET 0 FOR UPDATE) a ON true");
    /// Waits for others only near the limit: see the function.
    crowd = "SELECT baton_crowd($1, $2)";
    /// Locks live jobs in the order of their ids, and behind all of them the lanes that they count in.
    lock_jobs = lock_jobs("SELECT k.org, k.id FROM unnest($1::text[], $2::uuid[]) AS k(org, id)", "");
    /// The same with jobs that hold dedupe keys, and with lanes that are named.
    lock_more = lock_jobs("SELECT u.org, u.id FROM ( \
        SELECT k.org COLLATE \"C\" AS org, k.id FROM unnest($1::text[], $2::uuid[]) AS k(org, id) UNION \
        SELECT h.org, h.id FROM unnest($3::text[], $4::text[], $5::text[]) AS k(org, type, key) CROSS JOIN LATERAL \
        (SELECT x.org, x.id FROM live x WHERE x.org = k.org AND x.type = k.type AND x.dedupe = k.key OFFSET 0) h) u \
        ORDER BY u.org, u.id",
        "UNION ALL SELECT k.org COLLATE \"C\", k.lane COLLATE \"C\" FROM unnest($6::text[], $7::text[]) AS k(org, lane)");
    /// Asked after the locks are held: a job that ended meanwhile is found here.
    ended_jobs = format!("SELECT j.* FROM unnest($1::text[], $2::uuid[]) AS k(org, id) \
        CROSS JOIN LATERAL (SELECT {ENDED} FROM job j WHERE j.org = k.org AND j.id = k.id AND j.state IS NOT NULL OFFSET 0) j");
    dropped = "SELECT d.* FROM unnest($1::text[], $2::text[], $3::text[]) AS k(org, type, key) CROSS JOIN LATERAL \
        (SELECT org, type, key, job FROM dropped x WHERE x.org = k.org AND x.type = k.type AND x.key = k.key OFFSET 0) d";
    messages = "SELECT m.* FROM unnest($1::text[], $2::text[]) AS k(org, id) CROSS JOIN LATERAL \
        (SELECT org, id, job, expires_at FROM message x WHERE x.org = k.org AND x.id = k.id OFFSET 0) m";
    requeued = "SELECT r.* FROM unnest($1::text[], $2::uuid[]) AS k(org, id) CROSS JOIN LATERAL \
        (SELECT org, requeued_from, id FROM job x WHERE x.org = k.org AND x.requeued_from = k.id OFFSET 0) r";
    payloads = "SELECT j.* FROM unnest($1::text[], $2::uuid[]) AS k(org, id) CROSS JOIN LATERAL \
        (SELECT org, id, payload FROM job x WHERE x.org = k.org AND x.id = k.id OFFSET 0) j";
    records = format!("SELECT {LIVE}, {ENDED}, {COLD} FROM unnest($1::text[], $2::uuid[]) AS k(org, id) \
        JOIN job j ON j.org = k.org AND j.id = k.id LEFT JOIN live l ON l.org = k.org AND l.id = k.id");
    seals = "SELECT s.* FROM unnest($1::text[]) AS k(org) CROSS JOIN LATERAL \
        (SELECT org, n, to_pos, mac FROM seal x WHERE x.org = k.org ORDER BY n DESC LIMIT 1) s";
    timers = "SELECT t.* FROM unnest($1::text[], $2::uuid[], $3::text[]) AS k(org, subject, kind) CROSS JOIN LATERAL \
        (SELECT org, subject, kind, at FROM timer x WHERE x.org = k.org AND x.subject = k.subject AND x.kind = k.kind OFFSET 0) t";
    lock_onces = "SELECT o.* FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS k(org, scope, key, o) \
        CROSS JOIN LATERAL (SELECT org, scope, key, request, status, body, expires_at FROM once x \
        WHERE x.org = k.org AND x.scope = k.scope AND x.key = k.key OFFSET 0 FOR UPDATE) o";
    /// Scheduled jobs that have come due join the ready ones, and what `now` says, how many there were and when the next
    /// one is due: behind as many as have joined, so it is past if some could not join yet. The time is asked in a query
    /// of its own: a volatile function cannot bound an index scan.
    tick = format!("WITH p AS (UPDATE live SET phase = 1 WHERE ctid = ANY (ARRAY(SELECT ctid FROM live WHERE phase = 2 \
        AND due_at <= (SELECT baton_now() + $1::bigint) ORDER BY due_at LIMIT {PROMOTED_MAX} FOR UPDATE SKIP LOCKED)) \
        RETURNING 1) \
        SELECT baton_now(), pg_current_xact_id()::text, p.n, \
        (SELECT due_at FROM live WHERE phase = 2 ORDER BY due_at LIMIT 1 OFFSET p.n) FROM (SELECT count(*) AS n FROM p) p");
    /// What lanes have to give, round from where the last look ended.
    walk = super::claim::walk_sql();
    /// The same over lanes that are named.
    named = super::claim::named_sql();
    /// Few are, as a rule none.
    paused = format!("SELECT org, key FROM doc WHERE class = 'lane' AND flag ORDER BY org, key LIMIT {PAUSED_MAX} + 1");
    /// The next jobs of lanes in which others end, and the time.
    successors = super::successors::successors_sql();
    /// Asking for the transaction's id gives it one, which it must have before it takes blocks of
    /// positions, and by which its fate can be asked later.
    now = "SELECT baton_now(), pg_current_xact_id()::text";

    put_moves = put_moves();
    /// The same, seeing who comes next.
    put_turn = super::onward::put_turn();
    put_births = put_births();
    put_open_births = put_open_births();
    /// Those that were made in the same commit.
    end_births = format!("WITH e AS ({}) SELECT {}", end_jobs(1), exactly("e", 1, "an end of jobs"));
    /// What goes with moves of jobs, where none move.
    put_beside = format!("WITH {} SELECT {}", beside(1, None), exactly("n", 1, "an update of lanes"));
    /// Another node may have made and completed the job of a key since it was seen to be free.
    still_free = "SELECT baton_raced(count(*), 0::bigint, 'a dedupe key') FROM unnest($1::text[], $2::text[], $3::text[]) \
        AS k(org, type, key) CROSS JOIN LATERAL (SELECT 1 FROM dropped x WHERE x.org = k.org AND x.type = k.type \
        AND x.key = k.key OFFSET 0) d";
    put_payloads = "WITH u AS (UPDATE job SET payload = k.payload FROM unnest($1::text[], $2::uuid[], $3::text[]) \
        AS k(org, id, payload) CROSS JOIN LATERAL (SELECT x.ctid FROM job x WHERE x.org = k.org AND x.id = k.id OFFSET 0) t \
        WHERE job.ctid = t.ctid RETURNING 1) \
        SELECT baton_must_be(count(*), cardinality($1), 'a change of payloads') FROM u";
    /// A lane that another node made meanwhile makes the group look again: see `link::kind`.
    insert_lanes = "INSERT INTO lane (org, key, max, running, waiting, outside, burst) \
        SELECT * FROM unnest($1::text[], $2::text[], $3::int[], $4::int[], $5::int[], $6::int[], $7::int[])";
    put_dropped = "INSERT INTO dropped (org, type, key, job) \
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[]) \
        ON CONFLICT (org, type, key) DO UPDATE SET job = excluded.job";
    put_dead_letters = "INSERT INTO dead_letter (org, id, project, type) \
        SELECT * FROM unnest($1::text[], $2::uuid[], $3::text[], $4::text[])";
    delete_dead_letters = "DELETE FROM dead_letter USING unnest($1::text[], $2::uuid[]) AS k(org, id) \
        WHERE dead_letter.org = k.org AND dead_letter.id = k.id";
    put_messages = "WITH p AS (INSERT INTO message (org, id, job, expires_at) \
        SELECT * FROM unnest($1::text[], $2::text[], $3::uuid[], $4::bigint[]) \
        ON CONFLICT (org, id) DO UPDATE SET job = excluded.job, expires_at = excluded.expires_at \
        WHERE message.expires_at <= $5 RETURNING 1) \
        SELECT baton_raced(count(*), cardinality($1), 'a record of messages') FROM p";
    put_sinks = "INSERT INTO sink (org, space, key, value, at) \
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[]) \
        ON CONFLICT (org, space, key) DO UPDATE SET value = excluded.value, at = excluded.at";
    put_docs = "WITH p AS (INSERT INTO doc (org, class, key, id, flag, body, head_n, head_hash, head_at) \
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::bool[], $6::text[], $7::bigint[], \
        $8::bytea[], $9::bigint[]) ON CONFLICT (org, class, key) DO UPDATE SET flag = excluded.flag, \
        body = excluded.body, head_n = excluded.head_n, head_hash = excluded.head_hash, head_at = excluded.head_at \
        WHERE doc.id = excluded.id RETURNING 1) \
        SELECT baton_raced(count(*), cardinality($1), 'a change of documents') FROM p";
    insert_runs = "INSERT INTO run (org, id, project, state, deleted, body, head_n, head_hash, head_at) \
        SELECT * FROM unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::bool[], $6::text[], $7::bigint[], \
        $8::bytea[], $9::bigint[])";
    update_runs = "WITH u AS (UPDATE run SET state = k.state, deleted = k.deleted, body = k.body, head_n = k.head_n, \
        head_hash = k.head_hash, head_at = k.head_at FROM unnest($1::text[], $2::uuid[], $3::text[], $4::text[], \
        $5::bool[], $6::text[], $7::bigint[], $8::bytea[], $9::bigint[]) \
        AS k(org, id, project, state, deleted, body, head_n, head_hash, head_at) CROSS JOIN LATERAL \
        (SELECT x.ctid FROM run x WHERE x.org = k.org AND x.id = k.id OFFSET 0) t WHERE run.ctid = t.ctid RETURNING 1) \
        SELECT baton_must_be(count(*), cardinality($1), 'an update of runs') FROM u";
    insert_run_plans = "INSERT INTO run_plan (org, id, document, plan) \
        SELECT * FROM unnest($1::text[], $2::uuid[], $3::text[], $4::text[])";
    insert_agents = "INSERT INTO run_agent (org, id, run, run_attempt, place, state, job, body, head_n, head_hash, head_at) \
        SELECT * FROM unnest($1::text[], $2::uuid[], $3::uuid[], $4::int[], $5::int[], $6::text[], $7::uuid[], \
        $8::text[], $9::bigint[], $10::bytea[], $11::bigint[])";
    /// What becomes of agents, with their steps, entries and events: all that a step needs, in one.
    put_steps = format!("WITH u AS (UPDATE run_agent SET state = k.state, job = k.job, body = k.body, head_n = k.head_n, \
        head_hash = k.head_hash, head_at = k.head_at FROM unnest($1::text[], $2::uuid[], $3::text[], $4::uuid[], \
        $5::text[], $6::bigint[], $7::bytea[], $8::bigint[]) AS k(org, id, state, job, body, head_n, head_hash, head_at) \
        CROSS JOIN LATERAL (SELECT x.ctid FROM run_agent x WHERE x.org = k.org AND x.id = k.id OFFSET 0) t \
        WHERE run_agent.ctid = t.ctid RETURNING 1), \
        s AS (INSERT INTO run_step (org, agent, n, run, agent_attempt, task, task_attempt, step, state, ended_at, \
        more, result) SELECT * FROM unnest($9::text[], $10::uuid[], $11::int[], $12::uuid[], $13::int[], $14::int[], \
        $15::int[], $16::int[], $17::text[], $18::bigint[], $19::text[], $20::text[])), \
        l AS (INSERT INTO ledger (org, account, n, kind, amount, balance_after, key, run, at) \
        SELECT * FROM unnest($21::text[], $22::text[], $23::bigint[], $24::text[], $25::bigint[], $26::bigint[], \
        $27::text[], $28::uuid[], $29::bigint[])), \
        e AS ({}) \
        SELECT CASE WHEN count(*) <> cardinality($1) THEN \
        baton_must_be(count(*), cardinality($1), 'an update of agents') END FROM u", insert_events(30));
    insert_tasks = "INSERT INTO run_task (org, agent, n, run, body) \
        SELECT * FROM unnest($1::text[], $2::uuid[], $3::int[], $4::uuid[], $5::text[])";
    insert_attempts = "INSERT INTO run_attempt (org, run, attempt, body) \
        SELECT * FROM unnest($1::text[], $2::uuid[], $3::int[], $4::text[])";
    insert_pruned = "INSERT INTO pruned (org, pos, hash, by, n) \
        SELECT * FROM unnest($1::text[], $2::bigint[], $3::bytea[], $4::uuid[], $5::bigint[])";
    prune_events = "WITH d AS (DELETE FROM event USING unnest($1::text[], $2::uuid[]) AS k(org, id) \
        WHERE event.org = k.org AND event.subject = k.id RETURNING 1) \
        SELECT baton_must_be(count(*), $3, 'a removal of events') FROM d";
    prune_dropped = "DELETE FROM dropped USING unnest($1::text[], $2::uuid[]) AS k(org, id) \
        WHERE dropped.org = k.org AND dropped.job = k.id";
    prune_jobs = "WITH d AS (DELETE FROM job USING unnest($1::text[], $2::uuid[]) AS k(org, id) \
        WHERE job.org = k.org AND job.id = k.id RETURNING 1) \
        SELECT baton_must_be(count(*), cardinality($1), 'a removal of jobs') FROM d";
    /// Another node may have registered the name first, under another id; the count says so.
    put_definitions = "WITH p AS (INSERT INTO definition (org, class, name, id, head_n, head_hash, head_at) \
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::bigint[], $6::bytea[], $7::bigint[]) \
        ON CONFLICT (org, class, name) DO UPDATE SET head_n = excluded.head_n, head_hash = excluded.head_hash, \
        head_at = excluded.head_at WHERE definition.id = excluded.id RETURNING 1) \
        SELECT baton_raced(count(*), cardinality($1), 'a registration of definitions') FROM p";
    insert_versions = "INSERT INTO definition_version (org, id, version, digest, body) \
        SELECT * FROM unnest($1::text[], $2::uuid[], $3::int[], $4::bytea[], $5::text[])";
    put_timers = "INSERT INTO timer (org, subject, kind, at) SELECT * FROM unnest($1::text[], $2::uuid[], $3::text[], $4::bigint[]) \
        ON CONFLICT (org, subject, kind) DO UPDATE SET at = excluded.at";
    delete_timers = "DELETE FROM timer USING unnest($1::text[], $2::uuid[], $3::text[]) AS k(org, subject, kind) \
        CROSS JOIN LATERAL (SELECT x.ctid FROM timer x WHERE x.org = k.org AND x.subject = k.subject AND x.kind = k.kind \
        OFFSET 0) t WHERE timer.ctid = t.ctid";
    /// A record that still speaks is never overwritten: another node was faster, and the count says so.
    put_onces = "WITH p AS (INSERT INTO once (org, scope, key, request, status, body, expires_at) \
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::int[], $6::text[], $7::bigint[]) \
        ON CONFLICT (org, scope, key) DO UPDATE SET request = excluded.request, status = excluded.status, \
        body = excluded.body, expires_at = excluded.expires_at WHERE once.expires_at <= $8 RETURNING 1) \
        SELECT baton_raced(count(*), cardinality($1), 'a record of idempotency keys') FROM p";
    insert_seals = "INSERT INTO seal (org, n, from_pos, to_pos, count, root, prev, at, mac) \
        SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bytea[], \
        $8::bigint[], $9::bytea[])";
    purge_onces = "DELETE FROM once WHERE ctid = ANY (ARRAY(SELECT ctid FROM once WHERE expires_at <= $1 \
        ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED))";
    purge_messages = "DELETE FROM message WHERE ctid = ANY (ARRAY(SELECT ctid FROM message WHERE expires_at <= $1 \
        ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED))";
    purge_lanes = "DELETE FROM lane WHERE ctid = ANY (ARRAY(SELECT ctid FROM lane WHERE running = 0 AND waiting = 0 \
        LIMIT $1 FOR UPDATE SKIP LOCKED))";
}
