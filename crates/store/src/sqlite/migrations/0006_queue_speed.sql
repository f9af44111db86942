-- What is read and written for every job, faster. Nothing means anything else than before.
--
-- SQLite builds a temporary table for every IN with more than two values, each time that a row is written: the same
-- said with OR costs a fraction. And a trigger that says ABORT makes it copy every page that a statement touches,
-- in case it must be undone; what fails here undoes its whole transaction anyway, so FAIL is enough.

CREATE TABLE live_next (
    org          TEXT    NOT NULL,
    id           BLOB    NOT NULL,
    project      TEXT    NOT NULL,
    type         TEXT    NOT NULL,
    version      INTEGER NOT NULL,
    priority     INTEGER NOT NULL,
    ord          INTEGER NOT NULL,
    phase        INTEGER NOT NULL CHECK (phase BETWEEN 0 AND 3),
    class        INTEGER NOT NULL CHECK (class = 0 OR class = 1),
    slot         INTEGER NOT NULL CHECK (slot = 0 OR slot = 1),
    state        TEXT    NOT NULL CHECK (state = 'queued' OR state = 'executing' OR state = 'awaiting_tool'
                                         OR state = 'awaiting_user_confirmation'),
    pause        TEXT    CHECK (pause = 'tool' OR pause = 'retry'),
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
    CHECK ((due_at IS NOT NULL) = (phase = 1 OR phase = 2)),
    CHECK (state <> 'queued' OR due_at IS NOT NULL),
    CHECK (state <> 'executing' OR started_at IS NOT NULL),
    CHECK ((slot = 0) = (state = 'executing' OR pause IS 'tool'))
) WITHOUT ROWID;
INSERT INTO live_next SELECT * FROM live;
DROP TABLE live;
ALTER TABLE live_next RENAME TO live;
CREATE INDEX live_ready ON live (class, org, lane, slot, priority, ord) WHERE phase = 1;
CREATE INDEX live_scheduled ON live (due_at) WHERE phase = 2;
CREATE INDEX live_leased ON live (lease_until) WHERE phase = 3;
CREATE UNIQUE INDEX live_dedupe ON live (org, type, dedupe) WHERE dedupe IS NOT NULL;
CREATE INDEX live_aging ON live (org, lane, since) WHERE phase = 1 AND slot = 1 AND class = 1;

CREATE TABLE job_next (
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
    -- Known at its birth.
    lane           TEXT,
    max_failures   INTEGER,
    dedupe_key     TEXT,
    requeued_from  BLOB,
    schedule       BLOB,
    -- Known when it has ended.
    failures       INTEGER,
    aside          TEXT,
    PRIMARY KEY (org, id),
    CHECK ((state IS NULL) = (ended_at IS NULL)),
    CHECK ((state IS NULL) = (head_n IS NULL)),
    CHECK ((state IS 'completed') = (result IS NOT NULL)),
    CHECK ((state IS 'failed') <= (error_code IS NOT NULL)),
    CHECK (ended_at IS NULL OR ended_at >= created_at)
) WITHOUT ROWID;
INSERT INTO job_next SELECT * FROM job;
DROP TABLE job;
ALTER TABLE job_next RENAME TO job;
CREATE INDEX job_by_project ON job (org, project, id);
CREATE UNIQUE INDEX job_requeued ON job (org, requeued_from) WHERE requeued_from IS NOT NULL;
CREATE TRIGGER job_end_is_final BEFORE UPDATE ON job WHEN OLD.state IS NOT NULL
BEGIN SELECT RAISE(FAIL, 'an ended job never changes'); END;
CREATE TRIGGER job_end_is_never_removed BEFORE DELETE ON job
WHEN OLD.state IS NOT NULL AND EXISTS (SELECT 1 FROM event e WHERE e.org = OLD.org AND e.subject = OLD.id)
BEGIN SELECT RAISE(ABORT, 'an ended job goes only with its history'); END;

-- Lanes that are paused: every claim asks which.
CREATE INDEX doc_paused ON doc (org, key) WHERE class = 'lane' AND flag = 1;
