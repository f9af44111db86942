-- The events of a job are found by going back from its last one, each naming the place of the one before, instead of in an
-- index: that was an entry more for every event, and is asked for only when jobs are pruned. That a job has no two events of
-- one number is from now on a matter of the one writer, who counts them on the job's row, and of audits.

-- The place of the event before it, for events of jobs; 0 if there is none, or if it is in the index. None for all others.
ALTER TABLE event ADD COLUMN prev INTEGER;
DROP INDEX event_by_subject;
CREATE UNIQUE INDEX event_by_subject ON event (org, subject, n) WHERE prev IS NULL;

-- The place of a job's last event; 0 if all that it has are in the index.
ALTER TABLE live ADD COLUMN head_pos INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job ADD COLUMN head_pos INTEGER NOT NULL DEFAULT 0;
DROP TRIGGER job_end_is_never_removed;
CREATE TRIGGER job_end_is_never_removed BEFORE DELETE ON job
WHEN OLD.state IS NOT NULL AND (EXISTS (SELECT 1 FROM event e WHERE e.org = OLD.org AND e.pos = OLD.head_pos)
    OR EXISTS (SELECT 1 FROM event e INDEXED BY event_by_subject WHERE e.org = OLD.org AND e.subject = OLD.id AND e.prev IS NULL))
BEGIN SELECT RAISE(ABORT, 'an ended job goes only with its history'); END;

-- Jobs of a type that counts nowhere may stand in a lane with a limit. They need no slot, so a full lane must not hide them.
DROP INDEX live_ready;
CREATE INDEX live_ready ON live (class, org, lane, (slot AND kept), type, priority) WHERE phase = 1;
