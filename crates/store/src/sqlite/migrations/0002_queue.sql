-- The queue: lanes, dedupe keys, retries, pauses for people, messages, sinks, documents, retention.

-- A lane that counts something. max NULL has no limit.
CREATE TABLE lane (
    org     TEXT    NOT NULL,
    key     TEXT    NOT NULL,
    max     INTEGER CHECK (max > 0),
    running INTEGER NOT NULL CHECK (running >= 0),
    waiting INTEGER NOT NULL CHECK (waiting >= 0),
    outside INTEGER NOT NULL CHECK (outside BETWEEN 0 AND waiting),
    burst   INTEGER NOT NULL,
    PRIMARY KEY (org, key)
) WITHOUT ROWID;

-- Jobs from outside that wait in project lanes. One row a writer; their sum counts.
CREATE TABLE crowd (
    writer  TEXT    PRIMARY KEY,
    waiting INTEGER NOT NULL
) WITHOUT ROWID;

ALTER TABLE job ADD COLUMN lane TEXT;
ALTER TABLE job ADD COLUMN max_failures INTEGER;
ALTER TABLE job ADD COLUMN dedupe_key TEXT;
ALTER TABLE job ADD COLUMN requeued_from BLOB;
ALTER TABLE job ADD COLUMN schedule BLOB;
-- Known when it has ended.
ALTER TABLE job ADD COLUMN failures INTEGER;
ALTER TABLE job ADD COLUMN aside TEXT;
CREATE UNIQUE INDEX job_requeued ON job (org, requeued_from) WHERE requeued_from IS NOT NULL;

-- class: 0 interactive, 1 background. slot: 0 brings its own, 1 needs one of its lane.
CREATE TABLE live_next (
    org          TEXT    NOT NULL,
    id           BLOB    NOT NULL,
    project      TEXT    NOT NULL,
    type         TEXT    NOT NULL,
    version      INTEGER NOT NULL,
    priority     INTEGER NOT NULL,
    ord          INTEGER NOT NULL,
    phase        INTEGER NOT NULL CHECK (phase BETWEEN 0 AND 3),
    class        INTEGER NOT NULL CHECK (class IN (0, 1)),
    slot         INTEGER NOT NULL CHECK (slot IN (0, 1)),
    state        TEXT    NOT NULL
        CHECK (state IN ('queued', 'executing', 'awaiting_tool', 'awaiting_user_confirmation')),
    pause        TEXT    CHECK (pause IN ('tool', 'retry')),
    due_at       INTEGER,
    since        INTEGER NOT NULL,
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
    max_failures INTEGER NOT NULL,
    token        INTEGER NOT NULL,
    wakes        INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    started_at   INTEGER,
    has_deadline INTEGER NOT NULL,
    aside        TEXT,
    head_n       INTEGER NOT NULL CHECK (head_n > 0),
    head_hash    BLOB    NOT NULL,
    head_at      INTEGER NOT NULL,
    PRIMARY KEY (org, id),
    CHECK ((state = 'executing') = (phase = 3)),
    CHECK ((state = 'executing') = (worker IS NOT NULL)),
    CHECK ((state = 'executing') = (lease_until IS NOT NULL)),
    CHECK ((state = 'awaiting_tool') = (pause IS NOT NULL)),
    CHECK ((due_at IS NOT NULL) = (phase IN (1, 2))),
    CHECK (state <> 'queued' OR due_at IS NOT NULL),
    CHECK (state <> 'executing' OR started_at IS NOT NULL),
    CHECK ((slot = 0) = (state = 'executing' OR pause IS 'tool'))
) WITHOUT ROWID;
INSERT INTO live_next
SELECT org, id, project, type, version, priority, ord, phase, priority >= 200,
       NOT (state = 'executing' OR pause IS 'tool'), state, pause, due_at, coalesce(due_at, created_at),
       'project:' || project, 1, 1, 1, NULL, worker, lease_until, attempts, max_attempts, 0, max_attempts, token,
       wakes, created_at, started_at, has_deadline, NULL, head_n, head_hash, head_at
FROM live;
DROP TABLE live;
ALTER TABLE live_next RENAME TO live;
CREATE INDEX live_ready ON live (class, org, lane, slot, priority, ord) WHERE phase = 1;
CREATE INDEX live_scheduled ON live (due_at) WHERE phase = 2;
CREATE INDEX live_leased ON live (lease_until) WHERE phase = 3;
CREATE UNIQUE INDEX live_dedupe ON live (org, type, dedupe) WHERE dedupe IS NOT NULL;
INSERT INTO lane SELECT org, lane, 1, sum(slot = 0), sum(slot = 1), sum(slot = 1), 0 FROM live GROUP BY org, lane;
INSERT INTO crowd SELECT 'migration', count(*) FROM live WHERE slot = 1;

-- Completed jobs that still stand for their duplicates.
CREATE TABLE dropped (
    org  TEXT NOT NULL,
    type TEXT NOT NULL,
    key  TEXT NOT NULL,
    job  BLOB NOT NULL,
    PRIMARY KEY (org, type, key)
) WITHOUT ROWID;
CREATE INDEX dropped_by_job ON dropped (org, job);

-- Failed jobs that were not made anew.
CREATE TABLE dead_letter (
    org     TEXT NOT NULL,
    id      BLOB NOT NULL,
    project TEXT NOT NULL,
    type    TEXT NOT NULL,
    PRIMARY KEY (org, id)
) WITHOUT ROWID;
CREATE INDEX dead_letter_by_project ON dead_letter (org, project, id);
INSERT INTO dead_letter SELECT org, id, project, type FROM job WHERE state = 'failed';

CREATE TABLE message (
    org        TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    job        BLOB    NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (org, id)
) WITHOUT ROWID;
CREATE INDEX message_expiry ON message (expires_at);

CREATE TABLE sink (
    org   TEXT    NOT NULL,
    space TEXT    NOT NULL,
    key   TEXT    NOT NULL,
    value TEXT    NOT NULL,
    at    INTEGER NOT NULL,
    PRIMARY KEY (org, space, key)
) WITHOUT ROWID;

CREATE TABLE doc (
    org       TEXT    NOT NULL,
    class     TEXT    NOT NULL,
    key       TEXT    NOT NULL,
    id        BLOB    NOT NULL,
    flag      INTEGER NOT NULL,
    body      TEXT    NOT NULL,
    head_n    INTEGER NOT NULL CHECK (head_n > 0),
    head_hash BLOB    NOT NULL,
    head_at   INTEGER NOT NULL,
    PRIMARY KEY (org, class, key)
) WITHOUT ROWID;
CREATE UNIQUE INDEX doc_by_id ON doc (org, id);

-- What retention removed: an event's place and hash stay, so that seals can still be verified.
-- by and n name the event that says so.
CREATE TABLE pruned (
    org  TEXT    NOT NULL,
    pos  INTEGER NOT NULL,
    hash BLOB    NOT NULL CHECK (length(hash) = 32),
    by   BLOB    NOT NULL,
    n    INTEGER NOT NULL,
    PRIMARY KEY (org, pos)
) WITHOUT ROWID;
CREATE TRIGGER pruned_is_never_changed BEFORE UPDATE ON pruned
BEGIN SELECT RAISE(ABORT, 'what was pruned stays told'); END;
CREATE TRIGGER pruned_is_never_removed BEFORE DELETE ON pruned
BEGIN SELECT RAISE(ABORT, 'what was pruned stays told'); END;

DROP TRIGGER event_is_never_removed;
CREATE TRIGGER event_is_never_removed BEFORE DELETE ON event
WHEN NOT EXISTS (SELECT 1 FROM pruned p WHERE p.org = OLD.org AND p.pos = OLD.pos AND p.hash = OLD.hash)
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
DROP TRIGGER job_end_is_never_removed;
CREATE TRIGGER job_end_is_never_removed BEFORE DELETE ON job
WHEN OLD.state IS NOT NULL AND EXISTS (SELECT 1 FROM event e WHERE e.org = OLD.org AND e.subject = OLD.id)
BEGIN SELECT RAISE(ABORT, 'an ended job goes only with its history'); END;
