-- The door: whose a key is, known by the key alone, the decisions that are open, and the
-- webhooks that are told things.
CREATE UNIQUE INDEX doc_by_key ON doc (key) WHERE class = 'key';
CREATE INDEX doc_open ON doc (org, key) WHERE class = 'decision' AND flag;
CREATE INDEX doc_told ON doc (key) WHERE class = 'webhook' AND flag;
