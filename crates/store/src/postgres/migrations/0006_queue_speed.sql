-- What is written for every job, written faster. Nothing means anything else than before.
--
-- Jobs that stand beside each other end together, in one transaction, so a page must have room for all of them as they
-- were and as they are. Then no index hears of it. What was there before stays where it is.
ALTER TABLE job SET (fillfactor = 40);
