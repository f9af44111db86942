-- What must be true of a row, said in fewer words. The server reads the text of a condition anew for every statement that
-- writes to its table, and does so for longer than it takes to put a job there. Nothing means anything else than before.

-- In the order in which commits use them, so that nobody waits for somebody who waits for us.
LOCK TABLE doc, live, lane, job, event IN ACCESS EXCLUSIVE MODE;

-- A job stands in one of these ways: its state; then the phase, the slot, whether it is never due, and how much of a lease is
-- missing, as the digits of one number; then what it pauses for.
ALTER TABLE live DROP CONSTRAINT live_is_sound;
ALTER TABLE live ADD CONSTRAINT live_is_sound CHECK (head_n > 0 AND class BETWEEN 0 AND 1 AND slot BETWEEN 0 AND 1
    AND (phase < 3 OR started_at IS NOT NULL)
    AND state || ' ' || (phase * 1000 + slot * 100 + num_nulls(due_at) * 10 + num_nulls(worker, lease_until))::text
        || coalesce(' ' || pause, '') = ANY ('{
        queued 1102, queued 2102,
        executing 3010,
        awaiting_tool 12 tool, awaiting_tool 1002 tool, awaiting_tool 2002 tool,
        awaiting_tool 112 retry, awaiting_tool 1102 retry, awaiting_tool 2102 retry,
        awaiting_user_confirmation 112, awaiting_user_confirmation 1102, awaiting_user_confirmation 2102}')) NOT VALID;

-- The same for how it has ended, if it has: what is missing of its end, its head, its result and its error.
ALTER TABLE job DROP CONSTRAINT job_is_sound;
ALTER TABLE job ADD CONSTRAINT job_is_sound CHECK (ended_at >= created_at AND coalesce(state || ' ', '')
        || (num_nulls(ended_at) * 1000 + num_nulls(head_n) * 100 + num_nulls(result) * 10 + num_nulls(error_code))::text = ANY ('{
        1110, 1111, completed 0, completed 1, failed 10, cancelled 10, cancelled 11}')) NOT VALID;

-- The names of those before were given by the server.
ALTER TABLE event DROP CONSTRAINT IF EXISTS event_n_check, DROP CONSTRAINT IF EXISTS event_hash_check;
ALTER TABLE event ADD CONSTRAINT event_is_sound CHECK (n > 0 AND length(hash) = 32) NOT VALID;

ALTER TABLE lane DROP CONSTRAINT IF EXISTS lane_max_check, DROP CONSTRAINT IF EXISTS lane_running_check,
    DROP CONSTRAINT IF EXISTS lane_waiting_check, DROP CONSTRAINT IF EXISTS lane_check;
ALTER TABLE lane ADD CONSTRAINT lane_is_sound CHECK (max > 0 AND running >= 0 AND outside BETWEEN 0 AND waiting) NOT VALID;

-- Lanes that are paused: whoever hands out what comes in asks which.
CREATE INDEX IF NOT EXISTS doc_paused ON doc (org, key) WHERE class = 'lane' AND flag;
