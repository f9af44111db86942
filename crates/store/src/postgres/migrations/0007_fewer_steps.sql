-- What a claim looks at and what a commit writes, in fewer steps. Nothing means anything else than before.

-- In the order in which commits use them, so that nobody waits for somebody who waits for us.
LOCK TABLE live, lane, job IN ACCESS EXCLUSIVE MODE;

-- A lane that can give a slot has a door: its own key. The door changes only when the lane fills up or gets room, so an
-- update of the counts alone touches no index, and a claim steps from door to door instead of from lane to full lane.
ALTER TABLE lane ADD COLUMN door text COLLATE "C"
    GENERATED ALWAYS AS (CASE WHEN waiting > 0 AND (max IS NULL OR running < max) THEN key END) STORED;
CREATE INDEX lane_door ON lane (org, door) WHERE door IS NOT NULL;

-- needs: 1 for jobs that need a slot of a lane that counts; 0 for those that bring theirs, or whose lane does not count.
-- The two are looked for in different ways, so they stand apart in the index.
ALTER TABLE live ADD COLUMN needs smallint GENERATED ALWAYS AS (CASE WHEN slot = 1 AND kept THEN 1 ELSE 0 END) STORED;
DROP INDEX live_ready;
CREATE INDEX live_ready ON live (class, needs, org, lane, priority, ord) WHERE phase = 1;

-- For lists of a project's jobs alone. A planner that believes a table to be empty may take it for as good as the primary
-- key where a job is looked for by its id, and then read all jobs of an org for one.
DROP INDEX job_by_project;
CREATE INDEX job_by_project ON job (org, project, id) WHERE project IS NOT NULL;

-- One condition a table: each is read anew by every statement that writes. The same as the many before it. What is there
-- has been judged by those. Their names were given by the server.
ALTER TABLE live DROP CONSTRAINT IF EXISTS live_check, DROP CONSTRAINT IF EXISTS live_check1, DROP CONSTRAINT IF EXISTS live_check2,
    DROP CONSTRAINT IF EXISTS live_check3, DROP CONSTRAINT IF EXISTS live_check4, DROP CONSTRAINT IF EXISTS live_check5, DROP CONSTRAINT IF EXISTS live_check6,
    DROP CONSTRAINT IF EXISTS live_check7, DROP CONSTRAINT IF EXISTS live_class_check, DROP CONSTRAINT IF EXISTS live_head_n_check,
    DROP CONSTRAINT IF EXISTS live_pause_check, DROP CONSTRAINT IF EXISTS live_phase_check, DROP CONSTRAINT IF EXISTS live_slot_check,
    DROP CONSTRAINT IF EXISTS live_state_check;
ALTER TABLE live ADD CONSTRAINT live_is_sound CHECK (head_n > 0 AND (class = 0 OR class = 1) AND CASE state
    WHEN 'queued' THEN (phase = 1 OR phase = 2) AND due_at IS NOT NULL AND slot = 1
        AND worker IS NULL AND lease_until IS NULL AND pause IS NULL
    WHEN 'executing' THEN phase = 3 AND due_at IS NULL AND slot = 0
        AND worker IS NOT NULL AND lease_until IS NOT NULL AND started_at IS NOT NULL AND pause IS NULL
    WHEN 'awaiting_tool' THEN phase BETWEEN 0 AND 2 AND (due_at IS NOT NULL) = (phase > 0)
        AND worker IS NULL AND lease_until IS NULL
        AND coalesce(CASE pause WHEN 'tool' THEN slot = 0 WHEN 'retry' THEN slot = 1 END, false)
    WHEN 'awaiting_user_confirmation' THEN phase BETWEEN 0 AND 2 AND (due_at IS NOT NULL) = (phase > 0) AND slot = 1
        AND worker IS NULL AND lease_until IS NULL AND pause IS NULL
    ELSE false END) NOT VALID;
ALTER TABLE job DROP CONSTRAINT IF EXISTS job_check, DROP CONSTRAINT IF EXISTS job_check1, DROP CONSTRAINT IF EXISTS job_check2,
    DROP CONSTRAINT IF EXISTS job_check3, DROP CONSTRAINT IF EXISTS job_check4, DROP CONSTRAINT IF EXISTS job_state_check;
ALTER TABLE job ADD CONSTRAINT job_is_sound CHECK (CASE
    WHEN state IS NULL THEN ended_at IS NULL AND head_n IS NULL AND result IS NULL
    ELSE coalesce(ended_at >= created_at, false) AND head_n IS NOT NULL AND CASE state
        WHEN 'completed' THEN result IS NOT NULL
        WHEN 'failed' THEN result IS NULL AND error_code IS NOT NULL
        WHEN 'cancelled' THEN result IS NULL
        ELSE false END
    END) NOT VALID;

-- Rows of one statement, as one parameter. Unnesting a list of rows is several times cheaper than as many lists as a row
-- has columns. Types, not tables: a column more in a table does not change what is sent.
CREATE TYPE job_born AS (
    org text, id uuid, project text, type text, version integer, priority integer, payload text, source_session text,
    deadline_at bigint, created_at bigint, max_attempts integer, lane text, max_failures integer, dedupe_key text,
    requeued_from uuid, schedule uuid
);
CREATE TYPE job_entered AS (
    org text, id uuid, project text, type text, version integer, priority integer, phase smallint, state text, pause text,
    due_at bigint, worker text, lease_until bigint, attempts integer, max_attempts integer, token bigint, wakes bigint,
    created_at bigint, started_at bigint, has_deadline boolean, head_n bigint, head_hash bytea, head_at bigint,
    class smallint, slot smallint, since bigint, lane text, lane_max integer, kept boolean, outside boolean, dedupe text,
    failures integer, max_failures integer, aside text
);
CREATE TYPE job_moved AS (
    org text, id uuid, phase smallint, state text, pause text, due_at bigint, worker text, lease_until bigint,
    attempts integer, token bigint, wakes bigint, started_at bigint, head_n bigint, head_hash bytea, head_at bigint,
    slot smallint, dedupe text, failures integer, aside text, max_attempts integer
);
CREATE TYPE job_ended AS (
    org text, id uuid, state text, ended_at bigint, result text, error_code text, error text, attempts integer,
    token bigint, started_at bigint, head_n bigint, head_hash bytea, head_at bigint, failures integer, aside text,
    max_attempts integer
);
CREATE TYPE lane_counted AS (
    org text, key text, max integer, running integer, waiting integer, outside integer, burst integer
);
CREATE TYPE event_told AS (
    org text, subject uuid, n bigint, at bigint, kind text, actor text, data text, hash bytea
);
