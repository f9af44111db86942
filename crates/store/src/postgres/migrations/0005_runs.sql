-- Runs: what is open of them (a run, its agents), what has ended (steps, tasks, attempts), and money.

CREATE TABLE run (
    org        text COLLATE "C"    NOT NULL,
    id         uuid    NOT NULL,
    project    text COLLATE "C"    NOT NULL,
    state      text    NOT NULL CHECK (state IN ('created', 'pending', 'running', 'paused', 'resuming', 'completed',
                                                 'failed', 'cancelled', 'retrying', 'skipped')),
    deleted    boolean NOT NULL,
    body       text    NOT NULL,
    head_n     bigint NOT NULL CHECK (head_n > 0),
    head_hash  bytea    NOT NULL,
    head_at    bigint NOT NULL,
    PRIMARY KEY (org, id)
);
CREATE INDEX run_by_project ON run (org, project, id);
CREATE INDEX run_by_state ON run (org, state, id);
CREATE TRIGGER run_is_never_removed BEFORE DELETE ON run FOR EACH ROW
EXECUTE FUNCTION baton_never('runs are never removed');

-- What was asked for, and what it was understood as.
CREATE TABLE run_plan (
    org      text COLLATE "C" NOT NULL,
    id       uuid NOT NULL,
    document text NOT NULL,
    plan     text NOT NULL,
    PRIMARY KEY (org, id)
);
CREATE TRIGGER run_plan_is_never_changed BEFORE UPDATE ON run_plan FOR EACH ROW
EXECUTE FUNCTION baton_never('plans are immutable');
CREATE TRIGGER run_plan_is_never_removed BEFORE DELETE ON run_plan FOR EACH ROW
EXECUTE FUNCTION baton_never('plans are immutable');

CREATE TABLE run_agent (
    org         text COLLATE "C"    NOT NULL,
    id          uuid    NOT NULL,
    run         uuid    NOT NULL,
    run_attempt integer NOT NULL CHECK (run_attempt > 0),
    place       integer NOT NULL,
    state       text    NOT NULL CHECK (state IN ('pending', 'running', 'paused', 'completed', 'failed', 'skipped',
                                                  'cancelled')),
    job         uuid,
    body        text    NOT NULL,
    head_n      bigint NOT NULL CHECK (head_n > 0),
    head_hash   bytea    NOT NULL,
    head_at     bigint NOT NULL,
    PRIMARY KEY (org, id),
    CHECK (state NOT IN ('pending', 'running') OR job IS NOT NULL),
    CHECK (state NOT IN ('completed', 'failed', 'skipped', 'cancelled') OR job IS NULL)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02);
CREATE UNIQUE INDEX run_agent_by_run ON run_agent (org, run, run_attempt, place);
CREATE INDEX run_agent_at_work ON run_agent (org, id) WHERE state IN ('running', 'pending');
CREATE TRIGGER run_agent_is_never_removed BEFORE DELETE ON run_agent FOR EACH ROW
EXECUTE FUNCTION baton_never('agents are never removed');
CREATE TRIGGER run_agent_end_is_final BEFORE UPDATE ON run_agent FOR EACH ROW WHEN (OLD.state IN ('completed', 'failed', 'skipped', 'cancelled'))
EXECUTE FUNCTION baton_never('an ended agent never changes');

CREATE TABLE run_step (
    org           text COLLATE "C"    NOT NULL,
    agent         uuid    NOT NULL,
    n             integer NOT NULL CHECK (n > 0),
    run           uuid    NOT NULL,
    agent_attempt integer NOT NULL,
    task          integer NOT NULL,
    task_attempt  integer NOT NULL,
    step          integer NOT NULL,
    state         text    NOT NULL CHECK (state IN ('completed', 'failed', 'skipped', 'cancelled')),
    ended_at      bigint NOT NULL,
    more          text    NOT NULL,
    result        text,
    PRIMARY KEY (org, agent, n),
    CHECK (result IS NULL OR state = 'completed')
);
CREATE TRIGGER run_step_is_never_changed BEFORE UPDATE ON run_step FOR EACH ROW
EXECUTE FUNCTION baton_never('what has ended of a run never changes');
CREATE TRIGGER run_step_is_never_removed BEFORE DELETE ON run_step FOR EACH ROW
EXECUTE FUNCTION baton_never('what has ended of a run never changes');

CREATE TABLE run_task (
    org   text COLLATE "C"    NOT NULL,
    agent uuid    NOT NULL,
    n     integer NOT NULL CHECK (n > 0),
    run   uuid    NOT NULL,
    body  text    NOT NULL,
    PRIMARY KEY (org, agent, n)
);
CREATE TRIGGER run_task_is_never_changed BEFORE UPDATE ON run_task FOR EACH ROW
EXECUTE FUNCTION baton_never('what has ended of a run never changes');
CREATE TRIGGER run_task_is_never_removed BEFORE DELETE ON run_task FOR EACH ROW
EXECUTE FUNCTION baton_never('what has ended of a run never changes');

CREATE TABLE run_attempt (
    org     text COLLATE "C"    NOT NULL,
    run     uuid    NOT NULL,
    attempt integer NOT NULL CHECK (attempt > 0),
    body    text    NOT NULL,
    PRIMARY KEY (org, run, attempt)
);
CREATE TRIGGER run_attempt_is_never_changed BEFORE UPDATE ON run_attempt FOR EACH ROW
EXECUTE FUNCTION baton_never('what has ended of a run never changes');
CREATE TRIGGER run_attempt_is_never_removed BEFORE DELETE ON run_attempt FOR EACH ROW
EXECUTE FUNCTION baton_never('what has ended of a run never changes');

-- Entries of accounts, in millionths of a credit. Repairs are new entries.
CREATE TABLE ledger (
    org           text COLLATE "C"    NOT NULL,
    account       text COLLATE "C"    NOT NULL,
    n             bigint NOT NULL CHECK (n > 0),
    kind          text COLLATE "C"    NOT NULL,
    amount        bigint NOT NULL CHECK (amount > 0),
    balance_after bigint NOT NULL CHECK (balance_after >= 0),
    key           text COLLATE "C"    NOT NULL,
    run           uuid,
    at            bigint NOT NULL,
    PRIMARY KEY (org, account, n)
);
-- What an org gets or gives it gets or gives once. What a call costs is guarded by the row of its agent.
CREATE UNIQUE INDEX ledger_once ON ledger (org, account, kind, key) WHERE kind IN ('grant', 'reserve', 'refund');
CREATE TRIGGER ledger_is_never_changed BEFORE UPDATE ON ledger FOR EACH ROW
EXECUTE FUNCTION baton_never('the ledger is append-only');
CREATE TRIGGER ledger_is_never_removed BEFORE DELETE ON ledger FOR EACH ROW
EXECUTE FUNCTION baton_never('the ledger is append-only');

CREATE TRIGGER run_is_never_emptied BEFORE TRUNCATE ON run FOR EACH STATEMENT
EXECUTE FUNCTION baton_never('runs are never removed');
CREATE TRIGGER run_plan_is_never_emptied BEFORE TRUNCATE ON run_plan FOR EACH STATEMENT
EXECUTE FUNCTION baton_never('plans are immutable');
CREATE TRIGGER run_agent_is_never_emptied BEFORE TRUNCATE ON run_agent FOR EACH STATEMENT
EXECUTE FUNCTION baton_never('agents are never removed');
CREATE TRIGGER run_step_is_never_emptied BEFORE TRUNCATE ON run_step FOR EACH STATEMENT
EXECUTE FUNCTION baton_never('what has ended of a run never changes');
CREATE TRIGGER run_task_is_never_emptied BEFORE TRUNCATE ON run_task FOR EACH STATEMENT
EXECUTE FUNCTION baton_never('what has ended of a run never changes');
CREATE TRIGGER run_attempt_is_never_emptied BEFORE TRUNCATE ON run_attempt FOR EACH STATEMENT
EXECUTE FUNCTION baton_never('what has ended of a run never changes');
CREATE TRIGGER ledger_is_never_emptied BEFORE TRUNCATE ON ledger FOR EACH STATEMENT
EXECUTE FUNCTION baton_never('the ledger is append-only');
