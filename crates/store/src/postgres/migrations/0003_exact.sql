-- Which background jobs have waited for longest, whatever their number, and although they may have
-- come in behind others that were delayed.
CREATE INDEX live_aging ON live (org, lane, since) WHERE phase = 1 AND slot = 1 AND class = 1;

-- How many wait, for somebody who brings in `own` more. While less than half the room is taken, 32 may
-- do so at once, with a small share each: together they fill at most the other half. Each of them holds
-- one of 32 places. Whoever finds none, or wants more, waits until the others are done and counts alone.
CREATE OR REPLACE FUNCTION baton_crowd(cap bigint, own bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE
AS $$ DECLARE n bigint; name text := 'baton crowd ' || current_schema(); placed boolean := false;
BEGIN
    SELECT coalesce(sum(waiting), 0) INTO n FROM crowd;
    IF 2 * n <= cap AND 64 * own <= cap THEN
        FOR i IN 1..32 LOOP
            placed := pg_try_advisory_xact_lock(hashtextextended(name, (pg_backend_pid() + i) % 32 + 1));
            EXIT WHEN placed;
        END LOOP;
    END IF;
    IF placed THEN
        PERFORM pg_advisory_xact_lock_shared(hashtextextended(name, 0));
    ELSE
        PERFORM pg_advisory_xact_lock(hashtextextended(name, 0));
    END IF;
    SELECT coalesce(sum(waiting), 0) INTO n FROM crowd;
    IF placed AND 2 * n > cap THEN
        RAISE EXCEPTION 'the queue filled up meanwhile' USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN n;
END $$;
