-- The spine: jobs, what is live of them, history, timers, idempotency, definitions, seals.
-- Ids are 16-byte blobs, digests 32-byte blobs, times microseconds since 1970.

-- Everything about a job that is written at its birth or at its end.
CREATE TABLE job (
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
    state          TEXT    CHECK (state IN ('completed', 'failed', 'cancelled')),
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
    PRIMARY KEY (org, id),
    CHECK ((state IS NULL) = (ended_at IS NULL)),
    CHECK ((state IS NULL) = (head_n IS NULL)),
    CHECK ((state IS 'completed') = (result IS NOT NULL)),
    CHECK ((state IS 'failed') <= (error_code IS NOT NULL)),
    CHECK (ended_at IS NULL OR ended_at >= created_at)
) WITHOUT ROWID;
CREATE INDEX job_by_project ON job (org, project, id);

CREATE TRIGGER job_end_is_final BEFORE UPDATE ON job WHEN OLD.state IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'an ended job never changes'); END;
CREATE TRIGGER job_end_is_never_removed BEFORE DELETE ON job WHEN OLD.state IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'an ended job is never removed'); END;

-- The hot part of a job that has not ended: what claims and decisions look at.
-- phase: 0 parked, 1 ready, 2 scheduled, 3 leased. Only ready rows are in the claim index.
CREATE TABLE live (
    org          TEXT    NOT NULL,
    id           BLOB    NOT NULL,
    project      TEXT    NOT NULL,
    type         TEXT    NOT NULL,
    version      INTEGER NOT NULL,
    priority     INTEGER NOT NULL,
    ord          INTEGER NOT NULL,
    phase        INTEGER NOT NULL CHECK (phase BETWEEN 0 AND 3),
    state        TEXT    NOT NULL CHECK (state IN ('queued', 'executing', 'awaiting_tool')),
    pause        TEXT    CHECK (pause IN ('tool', 'retry')),
    due_at       INTEGER,
    worker       TEXT,
    lease_until  INTEGER,
    attempts     INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    token        INTEGER NOT NULL,
    wakes        INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    started_at   INTEGER,
    has_deadline INTEGER NOT NULL,
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
    CHECK (state <> 'executing' OR started_at IS NOT NULL)
) WITHOUT ROWID;
CREATE INDEX live_ready ON live (priority, ord) WHERE phase = 1;
CREATE INDEX live_scheduled ON live (due_at) WHERE phase = 2;
CREATE INDEX live_leased ON live (lease_until) WHERE phase = 3;

CREATE TABLE event (
    org     TEXT    NOT NULL,
    pos     INTEGER NOT NULL,
    subject BLOB    NOT NULL,
    n       INTEGER NOT NULL CHECK (n > 0),
    at      INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    actor   TEXT    NOT NULL,
    data    TEXT    NOT NULL,
    hash    BLOB    NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (org, pos)
) WITHOUT ROWID;
CREATE UNIQUE INDEX event_by_subject ON event (org, subject, n);

CREATE TRIGGER event_is_never_changed BEFORE UPDATE ON event
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER event_is_never_removed BEFORE DELETE ON event
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

CREATE TABLE timer (
    org     TEXT    NOT NULL,
    subject BLOB    NOT NULL,
    kind    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (org, subject, kind)
) WITHOUT ROWID;
CREATE INDEX timer_due ON timer (at);

CREATE TABLE once (
    org        TEXT    NOT NULL,
    scope      TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    request    BLOB    NOT NULL,
    status     INTEGER NOT NULL,
    body       TEXT    NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (org, scope, key)
) WITHOUT ROWID;
CREATE INDEX once_expiry ON once (expires_at);

CREATE TABLE definition (
    org       TEXT    NOT NULL,
    class     TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    id        BLOB    NOT NULL,
    head_n    INTEGER NOT NULL,
    head_hash BLOB    NOT NULL,
    head_at   INTEGER NOT NULL,
    PRIMARY KEY (org, class, name)
) WITHOUT ROWID;
CREATE UNIQUE INDEX definition_by_id ON definition (org, id);

CREATE TABLE definition_version (
    org           TEXT    NOT NULL,
    id            BLOB    NOT NULL,
    version       INTEGER NOT NULL,
    digest        BLOB    NOT NULL,
    body          TEXT    NOT NULL,
    PRIMARY KEY (org, id, version)
) WITHOUT ROWID;

CREATE TRIGGER definition_version_is_never_changed BEFORE UPDATE ON definition_version
BEGIN SELECT RAISE(ABORT, 'definition versions are immutable'); END;
CREATE TRIGGER definition_version_is_never_removed BEFORE DELETE ON definition_version
BEGIN SELECT RAISE(ABORT, 'definition versions are immutable'); END;

CREATE TABLE seal (
    org      TEXT    NOT NULL,
    n        INTEGER NOT NULL CHECK (n > 0),
    from_pos INTEGER NOT NULL,
    to_pos   INTEGER NOT NULL,
    count    INTEGER NOT NULL CHECK (count > 0),
    root     BLOB    NOT NULL,
    prev     BLOB    NOT NULL,
    at       INTEGER NOT NULL,
    mac      BLOB    NOT NULL,
    PRIMARY KEY (org, n),
    CHECK (to_pos > from_pos)
) WITHOUT ROWID;

CREATE TRIGGER seal_is_never_changed BEFORE UPDATE ON seal
BEGIN SELECT RAISE(ABORT, 'seals are append-only'); END;
CREATE TRIGGER seal_is_never_removed BEFORE DELETE ON seal
BEGIN SELECT RAISE(ABORT, 'seals are append-only'); END;
