-- Runs: what is open of them (a run, its agents), what has ended (steps, tasks, attempts), and money.

CREATE TABLE run (
    org        TEXT    NOT NULL,
    id         BLOB    NOT NULL,
    project    TEXT    NOT NULL,
    state      TEXT    NOT NULL CHECK (state IN ('created', 'pending', 'running', 'paused', 'resuming', 'completed',
                                                 'failed', 'cancelled', 'retrying', 'skipped')),
    deleted    INTEGER NOT NULL,
    body       TEXT    NOT NULL,
    head_n     INTEGER NOT NULL CHECK (head_n > 0),
    head_hash  BLOB    NOT NULL,
    head_at    INTEGER NOT NULL,
    PRIMARY KEY (org, id)
) WITHOUT ROWID;
CREATE INDEX run_by_project ON run (org, project, id);
CREATE INDEX run_by_state ON run (org, state, id);
CREATE TRIGGER run_is_never_removed BEFORE DELETE ON run
BEGIN SELECT RAISE(ABORT, 'runs are never removed'); END;

-- What was asked for, and what it was understood as.
CREATE TABLE run_plan (
    org      TEXT NOT NULL,
    id       BLOB NOT NULL,
    document TEXT NOT NULL,
    plan     TEXT NOT NULL,
    PRIMARY KEY (org, id)
) WITHOUT ROWID;
CREATE TRIGGER run_plan_is_never_changed BEFORE UPDATE ON run_plan
BEGIN SELECT RAISE(ABORT, 'plans are immutable'); END;
CREATE TRIGGER run_plan_is_never_removed BEFORE DELETE ON run_plan
BEGIN SELECT RAISE(ABORT, 'plans are immutable'); END;

CREATE TABLE run_agent (
    org         TEXT    NOT NULL,
    id          BLOB    NOT NULL,
    run         BLOB    NOT NULL,
    run_attempt INTEGER NOT NULL CHECK (run_attempt > 0),
    place       INTEGER NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('pending', 'running', 'paused', 'completed', 'failed', 'skipped',
                                                  'cancelled')),
    job         BLOB,
    body        TEXT    NOT NULL,
    head_n      INTEGER NOT NULL CHECK (head_n > 0),
    head_hash   BLOB    NOT NULL,
    head_at     INTEGER NOT NULL,
    PRIMARY KEY (org, id),
    CHECK (state NOT IN ('pending', 'running') OR job IS NOT NULL),
    CHECK (state NOT IN ('completed', 'failed', 'skipped', 'cancelled') OR job IS NULL)
) WITHOUT ROWID;
CREATE UNIQUE INDEX run_agent_by_run ON run_agent (org, run, run_attempt, place);
CREATE INDEX run_agent_at_work ON run_agent (org, id) WHERE state IN ('running', 'pending');
CREATE TRIGGER run_agent_is_never_removed BEFORE DELETE ON run_agent
BEGIN SELECT RAISE(ABORT, 'agents are never removed'); END;
CREATE TRIGGER run_agent_end_is_final BEFORE UPDATE ON run_agent
WHEN OLD.state IN ('completed', 'failed', 'skipped', 'cancelled')
BEGIN SELECT RAISE(ABORT, 'an ended agent never changes'); END;

CREATE TABLE run_step (
    org           TEXT    NOT NULL,
    agent         BLOB    NOT NULL,
    n             INTEGER NOT NULL CHECK (n > 0),
    run           BLOB    NOT NULL,
    agent_attempt INTEGER NOT NULL,
    task          INTEGER NOT NULL,
    task_attempt  INTEGER NOT NULL,
    step          INTEGER NOT NULL,
    state         TEXT    NOT NULL CHECK (state IN ('completed', 'failed', 'skipped', 'cancelled')),
    ended_at      INTEGER NOT NULL,
    more          TEXT    NOT NULL,
    result        TEXT,
    PRIMARY KEY (org, agent, n),
    CHECK (result IS NULL OR state = 'completed')
);
CREATE TRIGGER run_step_is_never_changed BEFORE UPDATE ON run_step
BEGIN SELECT RAISE(ABORT, 'what has ended of a run never changes'); END;
CREATE TRIGGER run_step_is_never_removed BEFORE DELETE ON run_step
BEGIN SELECT RAISE(ABORT, 'what has ended of a run never changes'); END;

CREATE TABLE run_task (
    org   TEXT    NOT NULL,
    agent BLOB    NOT NULL,
    n     INTEGER NOT NULL CHECK (n > 0),
    run   BLOB    NOT NULL,
    body  TEXT    NOT NULL,
    PRIMARY KEY (org, agent, n)
) WITHOUT ROWID;
CREATE TRIGGER run_task_is_never_changed BEFORE UPDATE ON run_task
BEGIN SELECT RAISE(ABORT, 'what has ended of a run never changes'); END;
CREATE TRIGGER run_task_is_never_removed BEFORE DELETE ON run_task
BEGIN SELECT RAISE(ABORT, 'what has ended of a run never changes'); END;

CREATE TABLE run_attempt (
    org     TEXT    NOT NULL,
    run     BLOB    NOT NULL,
    attempt INTEGER NOT NULL CHECK (attempt > 0),
    body    TEXT    NOT NULL,
    PRIMARY KEY (org, run, attempt)
) WITHOUT ROWID;
CREATE TRIGGER run_attempt_is_never_changed BEFORE UPDATE ON run_attempt
BEGIN SELECT RAISE(ABORT, 'what has ended of a run never changes'); END;
CREATE TRIGGER run_attempt_is_never_removed BEFORE DELETE ON run_attempt
BEGIN SELECT RAISE(ABORT, 'what has ended of a run never changes'); END;

-- Entries of accounts, in millionths of a credit. Repairs are new entries.
CREATE TABLE ledger (
    org           TEXT    NOT NULL,
    account       TEXT    NOT NULL,
    n             INTEGER NOT NULL CHECK (n > 0),
    kind          TEXT    NOT NULL,
    amount        INTEGER NOT NULL CHECK (amount > 0),
    balance_after INTEGER NOT NULL CHECK (balance_after >= 0),
    key           TEXT    NOT NULL,
    run           BLOB,
    at            INTEGER NOT NULL,
    PRIMARY KEY (org, account, n)
);
-- What an org gets or gives it gets or gives once. What a call costs is guarded by the row of its agent.
CREATE UNIQUE INDEX ledger_once ON ledger (org, account, kind, key) WHERE kind IN ('grant', 'reserve', 'refund');
CREATE TRIGGER ledger_is_never_changed BEFORE UPDATE ON ledger
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_is_never_removed BEFORE DELETE ON ledger
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
