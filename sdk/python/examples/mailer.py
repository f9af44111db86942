"""A worker that pretends to send mail.

    BATON_URL=… BATON_KEY=… python3 mailer.py

An operator has registered its type, for example with `enqueue.py`."""

import logging

from baton import Fail, Job, Worker

worker = Worker(name="mailer-1", concurrency=8)


@worker.job("mail.send")
def send(job: Job) -> dict[str, str]:
    to = job.payload["to"]
    if "@" not in to:
        raise Fail("no_such_address", f"{to} is no address", "deterministic")
    # Work can happen twice; whoever sends the mail can tell a repetition by the job's id.
    return {"messageId": f"{job.id}@example.com"}


logging.basicConfig(level=logging.INFO)
worker.run()
