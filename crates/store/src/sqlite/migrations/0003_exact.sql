-- Which background jobs have waited for longest, whatever their number, and although they may have
-- come in behind others that were delayed.
CREATE INDEX live_aging ON live (org, lane, since) WHERE phase = 1 AND slot = 1 AND class = 1;
