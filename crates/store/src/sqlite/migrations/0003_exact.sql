-- Which background job has waited for longest. Most stand in the order of their arrival, and the
-- first of them is the one. Others have a number of their own, were delayed, or are tried again.
CREATE INDEX live_aging ON live (org, lane, since)
WHERE phase = 1 AND slot = 1 AND class = 1 AND (priority > 200 OR since <> created_at);
