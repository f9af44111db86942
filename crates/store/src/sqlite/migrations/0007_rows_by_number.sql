-- The rows of a job are found by a number, the order of its arrival, instead of by the texts of its key: every step in
-- the life of a job writes them. What never changes stands in `job` alone, and few jobs stand in the index of those that
-- have waited for longest. Nothing means anything else than before.

CREATE TABLE job_next (
    -- The order of arrival. Those that had ended before there was one for them have negative numbers.
    ord            INTEGER PRIMARY KEY,
    org            TEXT    NOT NULL,
    id             BLOB    NOT NULL,
    project        TEXT    NOT NULL,
    type           TEXT    NOT NULL,
    version        INTEGER NOT NULL,
    priority       INTEGER NOT NULL,
    payload        TEXT    NOT NULL,
    source_session TEXT,
    deadline_at    INTEGER,
    created_at     INTEGER NOT NULL,
    max_attempts   INTEGER NOT NULL,
    lane           TEXT,
    max_failures   INTEGER,
    dedupe_key     TEXT,
    requeued_from  BLOB,
    schedule       BLOB,
    -- From here on: known when it has ended.
    state          TEXT    CHECK (state = 'completed' OR state = 'failed' OR state = 'cancelled'),
    ended_at       INTEGER,
    result         TEXT,
    error_code     TEXT,
    error          TEXT,
    attempts       INTEGER,
    token          INTEGER,
    started_at     INTEGER,
    head_n         INTEGER,
    head_hash      BLOB,
    head_at        INTEGER,
    failures       INTEGER,
    aside          TEXT,
    CHECK ((state IS NULL) = (ended_at IS NULL)),
    CHECK ((state IS NULL) = (head_n IS NULL)),
    CHECK ((state IS 'completed') = (result IS NOT NULL)),
    CHECK ((state IS 'failed') <= (error_code IS NOT NULL)),
    CHECK (ended_at IS NULL OR ended_at >= created_at)
);
INSERT INTO job_next (ord, org, id, project, type, version, priority, payload, source_session, deadline_at, created_at,
    max_attempts, lane, max_failures, dedupe_key, requeued_from, schedule, state, ended_at, result, error_code, error,
    attempts, token, started_at, head_n, head_hash, head_at, failures, aside)
SELECT coalesce(l.ord, row_number() OVER (ORDER BY j.org, j.id) - 1 - (SELECT count(*) FROM job)), j.org, j.id, j.project, j.type, j.version,
    j.priority, j.payload, j.source_session, j.deadline_at, j.created_at, j.max_attempts, j.lane,
    coalesce(j.max_failures, l.max_failures), j.dedupe_key, j.requeued_from, j.schedule, j.state, j.ended_at, j.result,
    j.error_code, j.error, j.attempts, j.token, j.started_at, j.head_n, j.head_hash, j.head_at, j.failures, j.aside
FROM job j LEFT JOIN live l ON l.org = j.org AND l.id = j.id;

CREATE TABLE live_next (
    ord          INTEGER PRIMARY KEY,
    org          TEXT    NOT NULL,
    id           BLOB    NOT NULL,
    type         TEXT    NOT NULL,
    priority     INTEGER NOT NULL,
    phase        INTEGER NOT NULL CHECK (phase BETWEEN 0 AND 3),
    class        INTEGER NOT NULL CHECK (class = 0 OR class = 1),
    slot         INTEGER NOT NULL CHECK (slot = 0 OR slot = 1),
    state        TEXT    NOT NULL CHECK (state = 'queued' OR state = 'executing' OR state = 'awaiting_tool'
                                         OR state = 'awaiting_user_confirmation'),
    pause        TEXT    CHECK (pause = 'tool' OR pause = 'retry'),
    due_at       INTEGER,
    since        INTEGER NOT NULL,
    -- It could be handed out at another moment than it arrived, or the clock had jumped back: among others of its
    -- priority, its number does not tell how long it has waited.
    late         INTEGER NOT NULL,
    lane         TEXT    NOT NULL,
    lane_max     INTEGER,
    kept         INTEGER NOT NULL,
    outside      INTEGER NOT NULL,
    dedupe       TEXT,
    worker       TEXT,
    lease_until  INTEGER,
    attempts     INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    failures     INTEGER NOT NULL,
    token        INTEGER NOT NULL,
    wakes        INTEGER NOT NULL,
    started_at   INTEGER,
    aside        TEXT,
    head_n       INTEGER NOT NULL CHECK (head_n > 0),
    head_hash    BLOB    NOT NULL,
    head_at      INTEGER NOT NULL,
    CHECK ((state = 'executing') = (phase = 3)),
    CHECK ((state = 'executing') = (worker IS NOT NULL)),
    CHECK ((state = 'executing') = (lease_until IS NOT NULL)),
    CHECK ((state = 'awaiting_tool') = (pause IS NOT NULL)),
    CHECK ((due_at IS NOT NULL) = (phase = 1 OR phase = 2)),
    CHECK (state <> 'queued' OR due_at IS NOT NULL),
    CHECK (state <> 'executing' OR started_at IS NOT NULL),
    CHECK ((slot = 0) = (state = 'executing' OR pause IS 'tool'))
);
INSERT INTO live_next (ord, org, id, type, priority, phase, class, slot, state, pause, due_at, since, late, lane,
    lane_max, kept, outside, dedupe, worker, lease_until, attempts, max_attempts, failures, token, wakes, started_at, aside,
    head_n, head_hash, head_at)
SELECT ord, org, id, type, priority, phase, class, slot, state, pause, due_at, since, since <> created_at, lane, lane_max,
    kept, outside, dedupe, worker, lease_until, attempts, max_attempts, failures, token, wakes, started_at, aside, head_n, head_hash,
    head_at
FROM live ORDER BY ord;

DROP TABLE job;
ALTER TABLE job_next RENAME TO job;
CREATE UNIQUE INDEX job_by_id ON job (org, id);
CREATE INDEX job_by_project ON job (org, project, id);
CREATE UNIQUE INDEX job_requeued ON job (org, requeued_from) WHERE requeued_from IS NOT NULL;
CREATE TRIGGER job_end_is_final BEFORE UPDATE ON job WHEN OLD.state IS NOT NULL
BEGIN SELECT RAISE(FAIL, 'an ended job never changes'); END;
CREATE TRIGGER job_end_is_never_removed BEFORE DELETE ON job
WHEN OLD.state IS NOT NULL AND EXISTS (SELECT 1 FROM event e WHERE e.org = OLD.org AND e.subject = OLD.id)
BEGIN SELECT RAISE(ABORT, 'an ended job goes only with its history'); END;

DROP TABLE live;
ALTER TABLE live_next RENAME TO live;
-- By type, so that whoever asks for some does not read through all others that wait in the lane. Behind the priority stands
-- the number, as in every index.
CREATE INDEX live_ready ON live (class, org, lane, slot, type, priority) WHERE phase = 1;
CREATE INDEX live_scheduled ON live (due_at) WHERE phase = 2;
CREATE INDEX live_leased ON live (lease_until) WHERE phase = 3;
CREATE UNIQUE INDEX live_dedupe ON live (org, type, dedupe) WHERE dedupe IS NOT NULL;
-- All others have waited for longest where they arrived first, which the index of ready jobs tells.
CREATE INDEX live_late ON live (org, lane, since) WHERE phase = 1 AND slot = 1 AND class = 1 AND late = 1;
