"""What a worker holds: its free slots, the leases to beat for, and the outcomes to settle.

One condition guards all of it, and every change wakes all who wait, because a job that ends frees
a slot and leaves an outcome in the same moment.

Invariants
- A slot is taken while a handler is busy, whatever became of the lease.
- A lease is beaten for until its outcome was answered or the server says that it is over.
- The first outcome counts: what a handler says after its job was released is dropped."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .job import Job
from .outcomes import Fail, Outcome, Park, Release, checked

# Of one request. The server takes more, but keeps only a few large ones in memory at once.
OUTCOMES = 100
OUTCOMES_BYTES = 768 * 1024
# Settling is repeated for as long as the lease, and never for less than this.
REPEATED_S = 60.0
# Faults of the server's, told of one outcome alone: it is said again.
PASSING = frozenset(
    {"internal", "outcome_unknown", "overloaded", "store_closed", "store_unavailable"}
)
log = logging.getLogger("baton")


class Leases:
    def __init__(self, slots: int) -> None:
        self._changed = threading.Condition()
        self._slots = slots
        self._busy: set[Job] = set()
        self._held: dict[str, Job] = {}
        self._unsettled: dict[str, Job] = {}
        self._leaser_waits = False
        self._draining = False
        self._hurried = False
        self._closed = False

    # Taking

    def wait_for_room(self) -> tuple[int, list[Job]]:
        """How many jobs there is room for, with outcomes that can be settled on the way. No room:
        lease nothing more."""
        with self._changed:
            self._leaser_waits = True
            self._changed.wait_for(lambda: self._draining or len(self._busy) < self._slots)
            self._leaser_waits = False
            # What is left of the outcomes is for the settler now.
            batch = [] if self._draining else self._take()
            self._changed.notify_all()
            return 0 if self._draining else self._slots - len(self._busy), batch

    def add(self, job: Job) -> bool:
        """Holds a job from now on. False: it is given back at once, because the worker stops."""
        with self._changed:
            self._held[job._lease] = job
            if self._draining:
                self._say(job, Release())
            else:
                self._busy.add(job)
            self._changed.notify_all()
            return not self._draining

    # Ending

    def end(self, job: Job, outcome: Outcome) -> None:
        """The handler is done: its slot is free, and there is an outcome to settle."""
        with self._changed:
            self._busy.discard(job)
            self._say(job, outcome)
            self._changed.notify_all()

    def _say(self, job: Job, outcome: Outcome) -> None:
        if job._said is not None:
            return
        if isinstance(outcome, Park) and outcome.seen is None:
            outcome = Park(outcome.for_ms, job.wakes)
        job._said, job._size = checked(outcome)
        job._ended_at = time.monotonic()
        if job._lease in self._held:
            self._unsettled[job._lease] = job
        else:
            log.warning("the outcome of job %s is dropped: its lease is lost", job.id)

    # Settling

    def wait_for_outcomes(self) -> list[Job]:
        """Outcomes to settle at once, because nobody is about to lease. Empty: the end."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or (bool(self._unsettled) and not self._about_to_lease())
            )
            # One that cannot be sent in company was refused with it, and goes alone.
            return [] if self._closed else self._take() or self._take(alone=True)

    def _about_to_lease(self) -> bool:
        return self._leaser_waits and len(self._busy) < self._slots

    def _take(self, alone: bool = False) -> list[Job]:
        batch: list[Job] = []
        size = 0
        for job in self._unsettled.values():
            if job._alone != alone:
                continue
            size += job._size + len(job._lease) + 32
            if batch and (alone or size > OUTCOMES_BYTES or len(batch) == OUTCOMES):
                break
            batch.append(job)
        for job in batch:
            del self._unsettled[job._lease]
        return batch

    def settled(self, batch: Sequence[Job], answers: Iterable[Mapping[str, Any]]) -> bool:
        """What the server said about each outcome. False: some are to be said again, in a while."""
        told = {answer.get("lease"): answer for answer in answers}
        unheard = [
            job
            for job in batch
            if job._lease not in told or told[job._lease].get("code") in PASSING
        ]
        with self._changed:
            for job in batch:
                code = told.get(job._lease, {}).get("code")
                if code == "lease_lost":
                    self._drop(job, "its lease is lost")
                elif code is not None and code not in PASSING:
                    detail = told[job._lease].get("detail")
                    self._replace(job, f"the outcome was refused: {code}: {detail}")
                elif code is None and job._lease in told:
                    self._held.pop(job._lease, None)
            self._changed.notify_all()
        self.unanswered(unheard)
        return not unheard

    def unanswered(self, batch: Iterable[Job]) -> None:
        """It is not known whether these are settled: they are sent again, or given up."""
        with self._changed:
            for job in batch:
                since = max(job._ended_at or 0.0, job._held_at)
                if time.monotonic() > since + max(job._lease_s, REPEATED_S):
                    self._drop(job, "nobody answered for too long")
                elif job._lease in self._held:
                    self._unsettled[job._lease] = job
            self._changed.notify_all()

    def refused(self, batch: Sequence[Job], why: str, mendable: bool) -> None:
        """A request as a whole was refused for good. Alone each, to find out whose fault it is;
        then as a failure that says so, if the outcome is what was wrong."""
        with self._changed:
            for job in batch:
                if not mendable:
                    self._drop(job, why)
                elif len(batch) > 1:
                    job._alone = True
                    self._unsettled[job._lease] = job
                else:
                    self._replace(job, why)
            self._changed.notify_all()

    def _replace(self, job: Job, why: str) -> None:
        if job._replaced:
            self._drop(job, why)
            return
        job._replaced = True
        job._said, job._size = checked(Fail("outcome_refused", why))
        self._unsettled[job._lease] = job
        log.error("job %s fails: %s", job.id, why)

    def _drop(self, job: Job, why: str) -> None:
        self._held.pop(job._lease, None)
        log.warning("the outcome of job %s is dropped: %s", job.id, why)

    # Beating

    def wait_for_beat(self, not_before: float) -> list[Job]:
        """Everything that is held, once the first of it is due for a beat. Empty: the end."""
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                held = [job for job in self._held.values() if job._beaten]
                due = min((job._held_at + job._lease_s / 3 for job in held), default=None)
                if due is not None and max(due, not_before) <= now:
                    return held
                self._changed.wait(None if due is None else max(due, not_before) - now)
            return []

    def beaten(self, batch: Iterable[Job], at: float, lost: set[str], cancelled: set[str]) -> None:
        """A beat that was sent at this moment got through."""
        with self._changed:
            for job in batch:
                if job._lease not in lost:
                    job._held_at = at
                elif job._said is None:
                    self._held.pop(job._lease, None)
                    job._lose("the server says so")
                else:
                    # Most likely settled, and its answer on the way: settling again tells.
                    job._beaten = False
                if job._lease in cancelled:
                    job.cancelled.set()
            self._changed.notify_all()

    def presume_lost(self) -> None:
        """Whoever was not beaten for during its lease may be in other hands. It is still held as
        far as we know, so its outcome is sent: the server judges."""
        with self._changed:
            for job in self._held.values():
                if job._said is None and time.monotonic() >= job._held_at + job._lease_s:
                    job._lose("no beat got through")

    def nearest_loss_s(self, batch: Iterable[Job], otherwise: float) -> float:
        """How long until the first of these that is worked on is presumed lost."""
        with self._changed:
            now = time.monotonic()
            busy = [job for job in batch if job._said is None and not job.lost]
            return min((job._held_at + job._lease_s - now for job in busy), default=otherwise)

    # Stopping

    def drain(self) -> None:
        with self._changed:
            self._draining = True
            self._changed.notify_all()

    def hurry(self) -> None:
        """Whoever waits for the jobs to end waits no longer."""
        with self._changed:
            self._hurried = True
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def wait_until_settled(self, timeout_s: float, patient: bool = False) -> bool:
        """Until nothing is held. Handlers of jobs that were lost are not waited for. Only who is
        patient goes on waiting when hurried."""
        with self._changed:
            self._changed.wait_for(
                lambda: not self._held or (self._hurried and not patient), max(0.0, timeout_s)
            )
            return not self._held

    def cancel_all(self) -> None:
        with self._changed:
            for job in self._busy:
                job.cancelled.set()

    def release_rest(self) -> list[Job]:
        """Gives back what is still being worked on."""
        with self._changed:
            rest = [job for job in self._busy if job._said is None and job._lease in self._held]
            for job in rest:
                self._say(job, Release())
            self._changed.notify_all()
            return rest
