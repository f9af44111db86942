-- Where jobs stand that can be handed out, now or when their time has come, has a number: a class, an org, a lane, a type, and
-- whether they need a slot. The index of those jobs held all of it for each of them, in as much room as their rows, and
-- compared texts for every step. Nothing means anything else than before.

CREATE TABLE rank (
    id    INTEGER PRIMARY KEY,
    class INTEGER NOT NULL,
    org   TEXT    NOT NULL,
    lane  TEXT    NOT NULL,
    needs INTEGER NOT NULL,
    type  TEXT    NOT NULL
);
INSERT INTO rank (class, org, lane, needs, type)
SELECT DISTINCT class, org, lane, slot AND kept, type FROM live WHERE due_at IS NOT NULL ORDER BY 1, 2, 3, 4, 5;
CREATE UNIQUE INDEX rank_by_place ON rank (class, org, lane, needs, type);

CREATE TABLE live_next (
    ord          INTEGER PRIMARY KEY,
    org          TEXT    NOT NULL,
    id           BLOB    NOT NULL,
    type         TEXT    NOT NULL,
    priority     INTEGER NOT NULL,
    phase        INTEGER NOT NULL CHECK (phase BETWEEN 0 AND 3),
    class        INTEGER NOT NULL CHECK (class = 0 OR class = 1),
    slot         INTEGER NOT NULL CHECK (slot = 0 OR slot = 1),
    state        TEXT    NOT NULL CHECK (state = 'queued' OR state = 'executing' OR state = 'awaiting_tool'
                                         OR state = 'awaiting_user_confirmation'),
    pause        TEXT    CHECK (pause = 'tool' OR pause = 'retry'),
    due_at       INTEGER,
    since        INTEGER NOT NULL,
    late         INTEGER NOT NULL,
    lane         TEXT    NOT NULL,
    lane_max     INTEGER,
    kept         INTEGER NOT NULL,
    outside      INTEGER NOT NULL,
    dedupe       TEXT,
    worker       TEXT,
    lease_until  INTEGER,
    attempts     INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    failures     INTEGER NOT NULL,
    token        INTEGER NOT NULL,
    wakes        INTEGER NOT NULL,
    started_at   INTEGER,
    aside        TEXT,
    head_n       INTEGER NOT NULL CHECK (head_n > 0),
    head_hash    BLOB    NOT NULL,
    head_at      INTEGER NOT NULL,
    head_pos     INTEGER NOT NULL DEFAULT 0,
    -- Where it stands, if there is a moment at which it is due.
    rank         INTEGER,
    CHECK ((state = 'executing') = (phase = 3)),
    CHECK ((state = 'executing') = (worker IS NOT NULL)),
    CHECK ((state = 'executing') = (lease_until IS NOT NULL)),
    CHECK ((state = 'awaiting_tool') = (pause IS NOT NULL)),
    CHECK ((due_at IS NOT NULL) = (phase = 1 OR phase = 2)),
    CHECK ((due_at IS NOT NULL) = (rank IS NOT NULL)),
    CHECK (state <> 'queued' OR due_at IS NOT NULL),
    CHECK (state <> 'executing' OR started_at IS NOT NULL),
    CHECK ((slot = 0) = (state = 'executing' OR pause IS 'tool'))
);
INSERT INTO live_next (ord, org, id, type, priority, phase, class, slot, state, pause, due_at, since, late, lane, lane_max,
    kept, outside, dedupe, worker, lease_until, attempts, max_attempts, failures, token, wakes, started_at, aside, head_n,
    head_hash, head_at, head_pos, rank)
SELECT l.ord, l.org, l.id, l.type, l.priority, l.phase, l.class, l.slot, l.state, l.pause, l.due_at, l.since, l.late, l.lane,
    l.lane_max, l.kept, l.outside, l.dedupe, l.worker, l.lease_until, l.attempts, l.max_attempts, l.failures, l.token, l.wakes,
    l.started_at, l.aside, l.head_n, l.head_hash, l.head_at, l.head_pos, CASE WHEN l.due_at IS NOT NULL THEN
    (SELECT r.id FROM rank r WHERE r.class = l.class AND r.org = l.org AND r.lane = l.lane AND r.needs = (l.slot AND l.kept)
    AND r.type = l.type) END
FROM live l ORDER BY l.ord;
DROP TABLE live;
ALTER TABLE live_next RENAME TO live;
-- Behind the priority stands the number, as in every index. Those whose time has not come are in it too, so that it tells
-- where nobody stands.
CREATE INDEX live_ready ON live (rank, phase, priority) WHERE rank IS NOT NULL;
CREATE INDEX live_scheduled ON live (due_at) WHERE phase = 2;
CREATE INDEX live_leased ON live (lease_until) WHERE phase = 3;
CREATE UNIQUE INDEX live_dedupe ON live (org, type, dedupe) WHERE dedupe IS NOT NULL;
CREATE INDEX live_late ON live (org, lane, since) WHERE phase = 1 AND slot = 1 AND class = 1 AND late = 1;
