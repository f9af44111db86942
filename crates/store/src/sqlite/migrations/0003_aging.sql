-- Which background job behind the best ones has waited for longest. Jobs of the class's best number
-- stand in the order of their arrival and need no index.
CREATE INDEX live_aging ON live (org, lane, since) WHERE phase = 1 AND slot = 1 AND priority > 200;
