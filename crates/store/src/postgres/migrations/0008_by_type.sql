-- Nothing means anything else than before.

-- In the order in which commits use them, so that nobody waits for somebody who waits for us.
LOCK TABLE live, event IN ACCESS EXCLUSIVE MODE;

-- What waits stands by what it is: whoever asks for some types never reads through jobs of others.
DROP INDEX live_ready;
CREATE INDEX live_ready ON live (class, needs, version, type, org, lane, priority, ord) WHERE phase = 1;
DROP INDEX live_aging;
CREATE INDEX live_aging ON live (version, type, org, lane, since) WHERE phase = 1 AND slot = 1 AND class = 1;

-- What tells rows apart comes first. The org is the same in most of them, and comparing it was most of what finding a place
-- in these cost.
ALTER TABLE live DROP CONSTRAINT live_pkey, ADD PRIMARY KEY (id, org);
DROP INDEX event_by_subject;
CREATE UNIQUE INDEX event_by_subject ON event (subject, org, n);
