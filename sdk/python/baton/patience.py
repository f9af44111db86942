"""When a call is worth repeating, and after how long.

Everything that this package sends may be sent twice (see `wire`), so the only question is whether
asking again can help."""

from __future__ import annotations

import random
from dataclasses import dataclass

from .errors import BatonError, Refused, Unreachable

BUSY = frozenset({408, 429, 502, 503, 504})
# Only an operator changes these; whoever asks again waits in vain.
SETTLED_BY_OPERATORS = frozenset({"queue_disabled", "feature_disabled"})

# Nobody is believed who says to come again much later than this.
LONGEST_TOLD_S = 300.0


def passes(error: BatonError) -> bool:
    """Whether what went wrong may be gone in a moment."""
    if isinstance(error, Unreachable):
        return True
    if not isinstance(error, Refused) or error.code in SETTLED_BY_OPERATORS:
        return False
    if error.code == "queue_full":
        # Without a time to come again, the request is larger than the queue will ever be.
        return error.retry_after_s is not None
    return error.status in BUSY or error.code == "idempotency_in_flight"


def is_final(error: BatonError) -> bool:
    """Whether a worker must not repeat what got this answer: 4xx that will stay so."""
    return isinstance(error, Refused) and 400 <= error.status < 500 and not passes(error)


@dataclass(frozen=True)
class Patience:
    """Pauses that double from `first_s` to `longest_s`, `within_s` in all."""

    first_s: float = 0.2
    longest_s: float = 5.0
    within_s: float = 30.0

    def pause_s(self, error: BatonError | None, before: int) -> float:
        """How long to wait after this error, or after half a success, `before` others having come
        in a row before it."""
        grown = min(self.longest_s, self.first_s * 2.0 ** min(before, 30))
        # Many who failed at the same moment shall not come back at the same moment.
        jittered = grown * random.uniform(0.5, 1.0)
        told = error.retry_after_s if isinstance(error, Refused) else None
        return jittered if told is None else min(told, LONGEST_TOLD_S) + jittered * 0.2

    def next_s(self, error: BatonError, before: int, elapsed_s: float) -> float | None:
        """The same, or nothing if it is time to give up."""
        if not passes(error):
            return None
        pause_s = self.pause_s(error, before)
        return pause_s if elapsed_s + pause_s <= self.within_s else None


ONCE = Patience(within_s=0.0)
