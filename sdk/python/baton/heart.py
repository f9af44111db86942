"""Beats for all leases of a worker, from one thread."""

from __future__ import annotations

import logging
import time

from .errors import BatonError
from .leases import Leases
from .patience import ONCE, Patience, is_final
from .wire import Wire

LEASES = 1000
log = logging.getLogger("baton")


class Heart:
    """Three beats per shortest lease. A beat that does not get through is repeated sooner."""

    def __init__(self, wire: Wire, leases: Leases) -> None:
        self._wire = wire
        self._leases = leases

    def run(self) -> None:
        missed = 0
        not_before = 0.0
        while True:
            held = self._leases.wait_for_beat(not_before)
            if not held:
                return
            third_s = min(job._lease_s for job in held) / 3
            try:
                for first in range(0, len(held), LEASES):
                    batch = held[first : first + LEASES]
                    # A beat that hangs must not hide that the lease is over.
                    left_s = self._leases.nearest_loss_s(batch, otherwise=third_s)
                    sent_at = time.monotonic()
                    answer = self._wire.call(
                        "POST",
                        "/api/v1/worker/heartbeat",
                        {"leases": [job._lease for job in batch]},
                        patience=ONCE,
                        timeout_s=max(0.05, min(third_s, left_s)),
                    )
                    lost = set(answer.get("lost", ()))
                    self._leases.beaten(batch, sent_at, lost, set(answer.get("cancelled", ())))
                missed, not_before = 0, 0.0
            except BatonError as error:
                log.log(
                    logging.ERROR if is_final(error) else logging.WARNING,
                    "a beat for %d jobs did not get through: %s", len(held), error,
                )  # fmt: skip
                pause_s = Patience(first_s=third_s / 8).pause_s(error, missed)
                not_before = time.monotonic() + min(pause_s, third_s / 2)
                missed += 1
            self._leases.presume_lost()
