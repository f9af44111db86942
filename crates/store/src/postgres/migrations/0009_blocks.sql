-- Positions of events are taken in blocks of 4,096, one for each commit as a rule. The tailer goes from block to block, so only
-- the first of each stands in its index, where every event stood before.

-- In the order in which commits use them, so that nobody waits for somebody who waits for us.
LOCK TABLE job, event IN ACCESS EXCLUSIVE MODE;

-- Behind all positions that were ever given.
CREATE SEQUENCE event_block;
SELECT setval('event_block', (last_value >> 12) + 1, false) FROM event_pos;
DROP SEQUENCE event_pos;

DROP INDEX event_tail;
CREATE INDEX event_heads ON event (pos) WHERE (pos & 4095) = 0;

-- What tells jobs apart comes first in their key, as in that of live ones.
ALTER TABLE job DROP CONSTRAINT job_pkey, ADD PRIMARY KEY (id, org);
