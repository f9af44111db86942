"""Asks for jobs whenever there is room, and settles on the way what has just ended."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any, Callable

from .errors import BatonError
from .hangup import HangUp
from .job import Job
from .leases import Leases
from .patience import ONCE, Patience, is_final
from .wire import Wire

JOBS = 100
PAUSES = Patience(first_s=0.2, longest_s=10.0)
# An answer may take this much longer than the server was asked to wait.
SLACK_S = 15.0
log = logging.getLogger("baton")


class Leaser:
    """`begin` gets each job; `refused` is told once if asking again is no use."""

    def __init__(
        self,
        wire: Wire,
        leases: Leases,
        asked: Mapping[str, Any],
        begin: Callable[[Job], None],
        refused: Callable[[BatonError], None],
    ) -> None:
        self._wire = wire
        self._leases = leases
        self._asked = asked
        self._begin = begin
        self._refused = refused
        self._hang_up = HangUp()
        self._stopping = threading.Event()

    def run(self) -> None:
        missed = 0
        while True:
            room, batch = self._leases.wait_for_room()
            if room == 0:
                return
            body = {**self._asked, "max": min(room, JOBS)}
            if batch:
                # What was settled along the way is answered when the waiting is over: so do not.
                body["waitMs"] = 0
                body["settle"] = [{"lease": job._lease, **(job._said or {})} for job in batch]
            try:
                answer = self._wire.call(
                    "POST", "/api/v1/worker/lease", body,
                    patience=ONCE,
                    timeout_s=self._asked["waitMs"] / 1000.0 + SLACK_S,
                    hang_up=self._hang_up,
                )  # fmt: skip
            except BatonError as error:
                # The settler sends them by themselves: then it shows whether they were the reason.
                self._leases.unanswered(batch)
                if self._stopping.is_set():
                    return
                if is_final(error) and not batch:
                    log.error("no job will be leased any more: %s", error)
                    self._refused(error)
                    return
                log.warning("no job could be leased: %s", error)
                self._stopping.wait(PAUSES.pause_s(error, missed))
                missed += 1
                continue
            for told in answer["leases"]:
                job = Job(self._wire, told)
                if self._leases.add(job):
                    self._begin(job)
            if self._leases.settled(batch, answer.get("settled", ())):
                missed = 0
            else:
                self._stopping.wait(PAUSES.pause_s(None, missed))
                missed += 1

    def stop(self, thread: threading.Thread) -> None:
        """Hangs up on a server that still looks for jobs, and waits for the end."""
        self._stopping.set()
        self._hang_up.gently()
        thread.join(2.0)
        # Something in between may keep the line open for a server that is long gone.
        self._hang_up.now()
        thread.join(2.0)
