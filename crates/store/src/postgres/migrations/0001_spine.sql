-- The spine: jobs, what is live of them, history, timers, idempotency, definitions, seals.
-- The same tables as on SQLite; a comment says where they differ. Times are microseconds since
-- 1970. Text keys compare by byte ("C"), as everywhere else in Baton.

CREATE FUNCTION baton_now() RETURNS bigint LANGUAGE sql VOLATILE
AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

-- Statements that must touch an exact number of rows say so; anything else aborts the commit.
CREATE FUNCTION baton_must_be(touched bigint, wanted bigint, what text) RETURNS bigint LANGUAGE plpgsql
AS $$ BEGIN
    IF touched <> wanted THEN
        RAISE EXCEPTION '% touched % rows instead of %', what, touched, wanted USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN touched;
END $$;

-- The same where fewer rows mean that another node was faster: the group looks again.
CREATE FUNCTION baton_raced(touched bigint, wanted bigint, what text) RETURNS bigint LANGUAGE plpgsql
AS $$ BEGIN
    IF touched <> wanted THEN
        RAISE EXCEPTION '% touched % rows instead of %', what, touched, wanted USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN touched;
END $$;

CREATE FUNCTION baton_never() RETURNS trigger LANGUAGE plpgsql
AS $$ BEGIN
    RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation';
END $$;

-- Everything about a job that is written at its birth or at its end. No index on state; room in
-- each page so that the one update stays on it.
CREATE TABLE job (
    org            text COLLATE "C" NOT NULL,
    id             uuid NOT NULL,
    project        text COLLATE "C" NOT NULL,
    type           text COLLATE "C" NOT NULL,
    version        integer NOT NULL,
    priority       integer NOT NULL,
    payload        text NOT NULL,
    source_session text,
    deadline_at    bigint,
    created_at     bigint NOT NULL,
    max_attempts   integer NOT NULL,
    -- From here on: known when it has ended.
    state          text CHECK (state IN ('completed', 'failed', 'cancelled')),
    ended_at       bigint,
    result         text,
    error_code     text,
    error          text,
    attempts       integer,
    token          bigint,
    started_at     bigint,
    head_n         bigint,
    head_hash      bytea,
    head_at        bigint,
    PRIMARY KEY (org, id),
    CHECK ((state IS NULL) = (ended_at IS NULL)),
    CHECK ((state IS NULL) = (head_n IS NULL)),
    CHECK ((state IS NOT DISTINCT FROM 'completed') = (result IS NOT NULL)),
    CHECK (state IS DISTINCT FROM 'failed' OR error_code IS NOT NULL),
    CHECK (ended_at IS NULL OR ended_at >= created_at)
) WITH (fillfactor = 85);
CREATE INDEX job_by_project ON job (org, project, id);

CREATE TRIGGER job_end_is_final BEFORE UPDATE ON job FOR EACH ROW WHEN (OLD.state IS NOT NULL)
EXECUTE FUNCTION baton_never('an ended job never changes');
CREATE TRIGGER job_end_is_never_removed BEFORE DELETE ON job FOR EACH ROW WHEN (OLD.state IS NOT NULL)
EXECUTE FUNCTION baton_never('an ended job is never removed');
CREATE TRIGGER job_is_never_emptied BEFORE TRUNCATE ON job FOR EACH STATEMENT
EXECUTE FUNCTION baton_never('an ended job is never removed');

CREATE SEQUENCE job_order;

-- The hot part of a job that has not ended. Narrow, often empty, vacuumed often.
-- phase: 0 parked, 1 ready, 2 scheduled, 3 leased. Only ready rows are in the claim index.
CREATE TABLE live (
    org          text COLLATE "C" NOT NULL,
    id           uuid NOT NULL,
    project      text COLLATE "C" NOT NULL,
    type         text COLLATE "C" NOT NULL,
    version      integer NOT NULL,
    priority     integer NOT NULL,
    ord          bigint NOT NULL,
    phase        smallint NOT NULL CHECK (phase BETWEEN 0 AND 3),
    state        text NOT NULL CHECK (state IN ('queued', 'executing', 'awaiting_tool')),
    pause        text CHECK (pause IN ('tool', 'retry')),
    due_at       bigint,
    worker       text COLLATE "C",
    lease_until  bigint,
    attempts     integer NOT NULL,
    max_attempts integer NOT NULL,
    token        bigint NOT NULL,
    wakes        bigint NOT NULL,
    created_at   bigint NOT NULL,
    started_at   bigint,
    has_deadline boolean NOT NULL,
    head_n       bigint NOT NULL CHECK (head_n > 0),
    head_hash    bytea NOT NULL,
    head_at      bigint NOT NULL,
    PRIMARY KEY (org, id),
    CHECK ((state = 'executing') = (phase = 3)),
    CHECK ((state = 'executing') = (worker IS NOT NULL)),
    CHECK ((state = 'executing') = (lease_until IS NOT NULL)),
    CHECK ((state = 'awaiting_tool') = (pause IS NOT NULL)),
    CHECK ((due_at IS NOT NULL) = (phase IN (1, 2))),
    CHECK (state <> 'queued' OR due_at IS NOT NULL),
    CHECK (state <> 'executing' OR started_at IS NOT NULL)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX live_ready ON live (priority, ord) WHERE phase = 1;
CREATE INDEX live_scheduled ON live (due_at) WHERE phase = 2;
CREATE INDEX live_leased ON live (lease_until) WHERE phase = 3;

-- Numbers are taken in the order of inserting, not of committing: see the tailer.
CREATE SEQUENCE event_pos;

CREATE TABLE event (
    org     text COLLATE "C" NOT NULL,
    pos     bigint NOT NULL,
    subject uuid NOT NULL,
    n       bigint NOT NULL CHECK (n > 0),
    at      bigint NOT NULL,
    kind    text NOT NULL,
    actor   text NOT NULL,
    data    text NOT NULL,
    hash    bytea NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (org, pos)
);
CREATE UNIQUE INDEX event_by_subject ON event (org, subject, n);
-- Over all orgs, for the tailer alone.
CREATE INDEX event_tail ON event (pos);

CREATE TRIGGER event_is_never_changed BEFORE UPDATE ON event FOR EACH ROW
EXECUTE FUNCTION baton_never('events are append-only');
CREATE TRIGGER event_is_never_removed BEFORE DELETE ON event FOR EACH ROW
EXECUTE FUNCTION baton_never('events are append-only');
CREATE TRIGGER event_is_never_emptied BEFORE TRUNCATE ON event FOR EACH STATEMENT
EXECUTE FUNCTION baton_never('events are append-only');

CREATE TABLE timer (
    org     text COLLATE "C" NOT NULL,
    subject uuid NOT NULL,
    kind    text COLLATE "C" NOT NULL,
    at      bigint NOT NULL,
    PRIMARY KEY (org, subject, kind)
);
CREATE INDEX timer_due ON timer (at);

CREATE TABLE once (
    org        text COLLATE "C" NOT NULL,
    scope      text COLLATE "C" NOT NULL,
    key        text COLLATE "C" NOT NULL,
    request    bytea NOT NULL,
    status     integer NOT NULL,
    body       text NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (org, scope, key)
);
CREATE INDEX once_expiry ON once (expires_at);

CREATE TABLE definition (
    org       text COLLATE "C" NOT NULL,
    class     text COLLATE "C" NOT NULL,
    name      text COLLATE "C" NOT NULL,
    id        uuid NOT NULL,
    head_n    bigint NOT NULL,
    head_hash bytea NOT NULL,
    head_at   bigint NOT NULL,
    PRIMARY KEY (org, class, name)
);
CREATE UNIQUE INDEX definition_by_id ON definition (org, id);

CREATE TABLE definition_version (
    org     text COLLATE "C" NOT NULL,
    id      uuid NOT NULL,
    version integer NOT NULL,
    digest  bytea NOT NULL,
    body    text NOT NULL,
    PRIMARY KEY (org, id, version)
);

CREATE TRIGGER definition_version_is_never_changed BEFORE UPDATE OR DELETE ON definition_version FOR EACH ROW
EXECUTE FUNCTION baton_never('definition versions are immutable');
CREATE TRIGGER definition_version_is_never_emptied BEFORE TRUNCATE ON definition_version FOR EACH STATEMENT
EXECUTE FUNCTION baton_never('definition versions are immutable');

CREATE TABLE seal (
    org      text COLLATE "C" NOT NULL,
    n        bigint NOT NULL CHECK (n > 0),
    from_pos bigint NOT NULL,
    to_pos   bigint NOT NULL,
    count    bigint NOT NULL CHECK (count > 0),
    root     bytea NOT NULL,
    prev     bytea NOT NULL,
    at       bigint NOT NULL,
    mac      bytea NOT NULL,
    PRIMARY KEY (org, n),
    CHECK (to_pos > from_pos)
);

CREATE TRIGGER seal_is_never_changed BEFORE UPDATE OR DELETE ON seal FOR EACH ROW
EXECUTE FUNCTION baton_never('seals are append-only');
CREATE TRIGGER seal_is_never_emptied BEFORE TRUNCATE ON seal FOR EACH STATEMENT
EXECUTE FUNCTION baton_never('seals are append-only');
