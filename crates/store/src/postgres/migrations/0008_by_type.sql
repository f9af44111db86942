-- What waits stands by what it is: whoever asks for some types never reads through jobs of others. Nothing means anything
-- else than before.

LOCK TABLE live IN ACCESS EXCLUSIVE MODE;
DROP INDEX live_ready;
CREATE INDEX live_ready ON live (class, needs, type, version, org, lane, priority, ord) WHERE phase = 1;
DROP INDEX live_aging;
CREATE INDEX live_aging ON live (type, version, org, lane, since) WHERE phase = 1 AND slot = 1 AND class = 1;
