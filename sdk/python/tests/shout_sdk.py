"""A worker to be killed: `shout_sdk.py DIRECTORY NAME GRACE`."""

from __future__ import annotations

import sys

from baton import Job, Release, Worker
from tests.shouting import shout

worker = Worker(name=sys.argv[2], concurrency=4)


@worker.job("shout")
def shouted(job: Job) -> dict[str, str] | Release:
    text = shout(job.payload["text"], job.cancelled.is_set)
    return Release() if text is None else {"text": text}


worker.run(grace=float(sys.argv[3]))
