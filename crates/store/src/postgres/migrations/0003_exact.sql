-- Which background job has waited for longest. Most stand in the order of their arrival, and the
-- first of them is the one. Others have a number of their own, were delayed, or are tried again.
CREATE INDEX live_aging ON live (org, lane, since)
WHERE phase = 1 AND slot = 1 AND class = 1 AND (priority > 200 OR since <> created_at);

-- How many wait, for somebody who brings in `own` more. While less than half the room is taken many
-- may do so at once, with a small share each: 32 of them together fill at most the other half. Then
-- whoever brings jobs in waits until the others are done, and counts alone.
CREATE OR REPLACE FUNCTION baton_crowd(cap bigint, own bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE
AS $$ DECLARE n bigint; place bigint := hashtextextended('baton crowd ' || current_schema(), 0);
BEGIN
    SELECT coalesce(sum(waiting), 0) INTO n FROM crowd;
    IF 2 * n <= cap AND 64 * own <= cap THEN
        PERFORM pg_advisory_xact_lock_shared(place);
        SELECT coalesce(sum(waiting), 0) INTO n FROM crowd;
        IF 2 * n > cap THEN
            RAISE EXCEPTION 'the queue filled up meanwhile' USING ERRCODE = 'serialization_failure';
        END IF;
    ELSE
        PERFORM pg_advisory_xact_lock(place);
        SELECT coalesce(sum(waiting), 0) INTO n FROM crowd;
    END IF;
    RETURN n;
END $$;
