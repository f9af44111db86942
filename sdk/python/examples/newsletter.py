"""A worker whose job takes a while: it asks a person first, says how far it is, and can be stopped
at any moment.

    BATON_URL=… BATON_KEY=… python3 newsletter.py"""

from __future__ import annotations

from baton import Ask, Job, Release, Worker

worker = Worker(name="newsletter-1", concurrency=1)


@worker.job("newsletter.send")
def send(job: Job) -> dict[str, int] | Ask | Release:
    people = job.payload["people"]
    if job.answer is None:
        # The job waits for a person, without this worker, and comes again with the answer.
        options = [{"name": "send"}, {"name": "stop", "effect": "cancel"}]
        return Ask({"prompt": f"Send it to {len(people)} people?", "options": options})
    for n, _person in enumerate(people):
        # Set if somebody cancelled the job, if it is in other hands, or if this worker stops.
        if job.cancelled.is_set():
            return Release()
        job.progress(100 * n // len(people), f"{n} of {len(people)}")
    return {"sent": len(people)}


worker.run()
