-- Which jobs are leased, and until when, the one writer knows: it has written it. An index heard of every claim, every beat and
-- every end. Whoever does not know yet, after a start, reads through what is live.
DROP INDEX live_leased;
