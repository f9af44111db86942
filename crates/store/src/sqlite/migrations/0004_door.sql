-- The door: whose a key is, known by the key alone, and the decisions that are open.
CREATE UNIQUE INDEX doc_by_key ON doc (key) WHERE class = 'key';
CREATE INDEX doc_open ON doc (org, key) WHERE class = 'decision' AND flag = 1;
