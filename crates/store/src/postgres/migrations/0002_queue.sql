-- The queue: lanes, dedupe keys, retries, pauses for people, messages, sinks, documents, retention.
-- The same tables as on SQLite; a comment says where they differ.

-- A lane that counts something. max NULL has no limit. Updated with every job: room on each page.
CREATE TABLE lane (
    org     text COLLATE "C" NOT NULL,
    key     text COLLATE "C" NOT NULL,
    max     integer CHECK (max > 0),
    running integer NOT NULL CHECK (running >= 0),
    waiting integer NOT NULL CHECK (waiting >= 0),
    outside integer NOT NULL CHECK (outside BETWEEN 0 AND waiting),
    burst   integer NOT NULL,
    PRIMARY KEY (org, key)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0);

-- Jobs from outside that wait in project lanes. One row a committer, so that committers do not wait
-- for each other; their sum counts.
CREATE TABLE crowd (
    writer  text COLLATE "C" PRIMARY KEY,
    waiting bigint NOT NULL
) WITH (fillfactor = 50);

-- How many wait, for somebody who brings in `own` more. Far below the cap many may do so at once:
-- with a share of the room each, 32 of them together cannot exceed it. Near the cap whoever brings
-- jobs in waits until the others are done, and counts alone. A share that turned out too small when
-- it was granted is given back by trying again.
CREATE FUNCTION baton_crowd(cap bigint, own bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE
AS $$ DECLARE n bigint; place bigint := hashtextextended('baton crowd ' || current_schema(), 0);
BEGIN
    SELECT coalesce(sum(waiting), 0) INTO n FROM crowd;
    IF n + 32 * own <= cap THEN
        PERFORM pg_advisory_xact_lock_shared(place);
        SELECT coalesce(sum(waiting), 0) INTO n FROM crowd;
        IF n + 32 * own > cap THEN
            RAISE EXCEPTION 'the queue filled up meanwhile' USING ERRCODE = 'serialization_failure';
        END IF;
    ELSE
        PERFORM pg_advisory_xact_lock(place);
        SELECT coalesce(sum(waiting), 0) INTO n FROM crowd;
    END IF;
    RETURN n;
END $$;

ALTER TABLE job ADD COLUMN lane text;
ALTER TABLE job ADD COLUMN max_failures integer;
ALTER TABLE job ADD COLUMN dedupe_key text;
ALTER TABLE job ADD COLUMN requeued_from uuid;
ALTER TABLE job ADD COLUMN schedule uuid;
-- Known when it has ended.
ALTER TABLE job ADD COLUMN failures integer;
ALTER TABLE job ADD COLUMN aside text;
CREATE UNIQUE INDEX job_requeued ON job (org, requeued_from) WHERE requeued_from IS NOT NULL;

-- class: 0 interactive, 1 background. slot: 0 brings its own, 1 needs one of its lane.
ALTER TABLE live DROP CONSTRAINT live_state_check;
ALTER TABLE live ADD CHECK (state IN ('queued', 'executing', 'awaiting_tool', 'awaiting_user_confirmation'));
ALTER TABLE live ADD COLUMN class smallint;
ALTER TABLE live ADD COLUMN slot smallint;
ALTER TABLE live ADD COLUMN since bigint;
ALTER TABLE live ADD COLUMN lane text COLLATE "C";
ALTER TABLE live ADD COLUMN lane_max integer;
ALTER TABLE live ADD COLUMN kept boolean NOT NULL DEFAULT true;
ALTER TABLE live ADD COLUMN outside boolean NOT NULL DEFAULT true;
ALTER TABLE live ADD COLUMN dedupe text COLLATE "C";
ALTER TABLE live ADD COLUMN failures integer NOT NULL DEFAULT 0;
ALTER TABLE live ADD COLUMN max_failures integer;
ALTER TABLE live ADD COLUMN aside text;
UPDATE live SET class = CASE WHEN priority >= 200 THEN 1 ELSE 0 END,
    slot = CASE WHEN state = 'executing' OR pause IS NOT DISTINCT FROM 'tool' THEN 0 ELSE 1 END,
    since = coalesce(due_at, created_at), lane = 'project:' || project, lane_max = 1, max_failures = max_attempts;
ALTER TABLE live ALTER COLUMN class SET NOT NULL, ALTER COLUMN slot SET NOT NULL, ALTER COLUMN since SET NOT NULL,
    ALTER COLUMN lane SET NOT NULL, ALTER COLUMN max_failures SET NOT NULL;
ALTER TABLE live ADD CHECK (class IN (0, 1)), ADD CHECK (slot IN (0, 1)),
    ADD CHECK ((slot = 0) = (state = 'executing' OR pause IS NOT DISTINCT FROM 'tool'));
DROP INDEX live_ready;
CREATE INDEX live_ready ON live (class, org, lane, slot, priority, ord) WHERE phase = 1;
CREATE UNIQUE INDEX live_dedupe ON live (org, type, dedupe) WHERE dedupe IS NOT NULL;
INSERT INTO lane SELECT org, lane, 1, count(*) FILTER (WHERE slot = 0), count(*) FILTER (WHERE slot = 1),
    count(*) FILTER (WHERE slot = 1), 0
    FROM live GROUP BY org, lane;
INSERT INTO crowd SELECT 'migration', count(*) FROM live WHERE slot = 1;

-- Completed jobs that still stand for their duplicates.
CREATE TABLE dropped (
    org  text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    key  text COLLATE "C" NOT NULL,
    job  uuid NOT NULL,
    PRIMARY KEY (org, type, key)
);
CREATE INDEX dropped_by_job ON dropped (org, job);

-- Failed jobs that were not made anew. A table of their own: an index on the state of `job` would
-- make every end of a job move its row.
CREATE TABLE dead_letter (
    org     text COLLATE "C" NOT NULL,
    id      uuid NOT NULL,
    project text COLLATE "C" NOT NULL,
    type    text COLLATE "C" NOT NULL,
    PRIMARY KEY (org, id)
);
CREATE INDEX dead_letter_by_project ON dead_letter (org, project, id);
INSERT INTO dead_letter SELECT org, id, project, type FROM job WHERE state = 'failed';

CREATE TABLE message (
    org        text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    job        uuid NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (org, id)
);
CREATE INDEX message_expiry ON message (expires_at);

CREATE TABLE sink (
    org   text COLLATE "C" NOT NULL,
    space text COLLATE "C" NOT NULL,
    key   text COLLATE "C" NOT NULL,
    value text NOT NULL,
    at    bigint NOT NULL,
    PRIMARY KEY (org, space, key)
);

CREATE TABLE doc (
    org       text COLLATE "C" NOT NULL,
    class     text COLLATE "C" NOT NULL,
    key       text COLLATE "C" NOT NULL,
    id        uuid NOT NULL,
    flag      boolean NOT NULL,
    body      text NOT NULL,
    head_n    bigint NOT NULL CHECK (head_n > 0),
    head_hash bytea NOT NULL,
    head_at   bigint NOT NULL,
    PRIMARY KEY (org, class, key)
);
CREATE UNIQUE INDEX doc_by_id ON doc (org, id);

-- What retention removed: an event's place and hash stay, so that seals can still be verified.
-- by and n name the event that says so.
CREATE TABLE pruned (
    org  text COLLATE "C" NOT NULL,
    pos  bigint NOT NULL,
    hash bytea NOT NULL CHECK (length(hash) = 32),
    by   uuid NOT NULL,
    n    bigint NOT NULL,
    PRIMARY KEY (org, pos)
);
CREATE INDEX pruned_by ON pruned (org, by, n);
CREATE TRIGGER pruned_is_never_changed BEFORE UPDATE OR DELETE ON pruned FOR EACH ROW
EXECUTE FUNCTION baton_never('what was pruned stays told');
CREATE TRIGGER pruned_is_never_emptied BEFORE TRUNCATE ON pruned FOR EACH STATEMENT
EXECUTE FUNCTION baton_never('what was pruned stays told');

CREATE FUNCTION baton_event_goes() RETURNS trigger LANGUAGE plpgsql
AS $$ BEGIN
    IF NOT EXISTS (SELECT 1 FROM pruned p WHERE p.org = OLD.org AND p.pos = OLD.pos AND p.hash = OLD.hash) THEN
        RAISE EXCEPTION 'events are append-only' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN OLD;
END $$;
DROP TRIGGER event_is_never_removed ON event;
CREATE TRIGGER event_is_never_removed BEFORE DELETE ON event FOR EACH ROW EXECUTE FUNCTION baton_event_goes();

CREATE FUNCTION baton_job_goes() RETURNS trigger LANGUAGE plpgsql
AS $$ BEGIN
    IF EXISTS (SELECT 1 FROM event e WHERE e.org = OLD.org AND e.subject = OLD.id) THEN
        RAISE EXCEPTION 'an ended job goes only with its history' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN OLD;
END $$;
DROP TRIGGER job_end_is_never_removed ON job;
CREATE TRIGGER job_end_is_never_removed BEFORE DELETE ON job FOR EACH ROW WHEN (OLD.state IS NOT NULL)
EXECUTE FUNCTION baton_job_goes();
