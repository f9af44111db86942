"""Settles what no lease request takes along."""

from __future__ import annotations

import logging
import threading

from .errors import BatonError, Refused
from .leases import Leases
from .patience import ONCE, Patience, is_final
from .wire import Wire

PAUSES = Patience(first_s=0.2, longest_s=5.0)
# What is wrong with the request, and not with who sent it.
MENDABLE = frozenset({400, 413, 422})
log = logging.getLogger("baton")


class Settler:
    """Repeats every outcome until it is answered, or until its lease is long over."""

    def __init__(self, wire: Wire, leases: Leases) -> None:
        self._wire = wire
        self._leases = leases
        self._over = threading.Event()

    def run(self) -> None:
        missed = 0
        while True:
            batch = self._leases.wait_for_outcomes()
            if not batch:
                return
            outcomes = [{"lease": job._lease, **(job._said or {})} for job in batch]
            try:
                answer = self._wire.call(
                    "POST", "/api/v1/worker/settle", {"outcomes": outcomes},
                    patience=ONCE, timeout_s=15.0,
                )  # fmt: skip
            except BatonError as error:
                if is_final(error):
                    mendable = isinstance(error, Refused) and error.status in MENDABLE
                    self._leases.refused(batch, str(error), mendable)
                    continue
                log.warning("%d outcomes are not settled yet: %s", len(batch), error)
                self._leases.unanswered(batch)
                self._over.wait(PAUSES.pause_s(error, missed))
                missed += 1
            else:
                if self._leases.settled(batch, answer["settled"]):
                    missed = 0
                else:
                    self._over.wait(PAUSES.pause_s(None, missed))
                    missed += 1

    def stop(self) -> None:
        self._over.set()
