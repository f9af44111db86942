"""A job as its handler sees it."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Mapping
from typing import Any

from .errors import BatonError, Refused
from .outcomes import Release
from .patience import Patience, is_final
from .wire import Wire

NOTE_CHARS = 200
log = logging.getLogger("baton")


class Job:
    """One execution of a job, under a lease.

    `cancelled` is set when the handler shall stop: somebody cancelled the job, the lease was lost
    (then `lost` says so), or the worker stops and can wait no longer. Whichever it is, a handler
    that stops may say `Release()`: a cancelled job then ends as cancelled, another one goes on
    elsewhere."""

    def __init__(self, wire: Wire, told: Mapping[str, Any]) -> None:
        job = told["job"]
        self.id: str = job["id"]
        self.type: str = job["type"]
        self.version: int = job.get("version", 1)
        self.project: str = job["projectId"]
        self.lane: str | None = job.get("lane")
        self.attempt: int = job.get("attempt", 1)
        self.max_attempts: int = job.get("maxAttempts", 1)
        self.failures: int = job.get("failures", 0)
        self.wakes: int = job.get("wakes", 0)
        self.answer: Any = job.get("answer")
        self.payload: dict[str, Any] = told.get("payload") or {}
        self.timeout_ms: int | None = told.get("timeoutMs")
        self.cancelled = threading.Event()
        self.lost = False
        # The rest is the worker's; `leases` guards it.
        self._wire = wire
        self._lease: str = told["lease"]
        self._lease_s: float = told["leaseMs"] / 1000.0
        self._held_at = time.monotonic()
        self._ended_at: float | None = None
        self._said: dict[str, Any] | None = None
        self._size = 0
        self._beaten = True
        self._alone = False
        self._replaced = False

    def __repr__(self) -> str:
        return f"Job({self.id!r}, type={self.type!r}, attempt={self.attempt})"

    def stop_if_cancelled(self) -> None:
        """Ends the handler here, by raising `Release`, if it shall stop."""
        if self.cancelled.is_set():
            raise Release()

    def progress(
        self,
        percent: float | None = None,
        note: str | None = None,
        context: Mapping[str, str] | None = None,
    ) -> None:
        """Says how far the job is. A server that is out of reach is no reason to fail: then it is
        left unsaid. `percent` is brought between 0 and 100, and rounded. Learns on
        the way whether the job was cancelled or lost."""
        body: dict[str, Any] = {"lease": self._lease}
        if percent is not None and not math.isnan(percent):
            body["percent"] = round(min(max(percent, 0), 100))
        if note is not None:
            body["note"] = note[:NOTE_CHARS]
        if context is not None:
            body["context"] = dict(context)
        brief = Patience(within_s=min(2.0, self._lease_s / 3))
        try:
            answer = self._wire.call(
                "POST", "/api/v1/worker/progress", body, patience=brief, timeout_s=5.0
            )
        except BatonError as error:
            if isinstance(error, Refused) and error.code == "lease_lost":
                self._lose("the server says so")
            elif is_final(error):
                raise
            else:
                log.warning("progress of job %s was not told: %s", self.id, error)
        else:
            if answer.get("cancelRequested"):
                self.cancelled.set()

    def _lose(self, why: str) -> None:
        if not self.lost:
            log.warning("the lease on job %s is lost: %s", self.id, why)
        self.lost = True
        self.cancelled.set()
