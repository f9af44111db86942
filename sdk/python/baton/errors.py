"""What can go wrong between a program and Baton."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class BatonError(Exception):
    """Anything that this package raises about a call."""


class Unreachable(BatonError):
    """No answer: no connection, or it broke before the answer was there. It is not known whether
    the request took place."""


class Refused(BatonError):
    """The server answered, and the answer is no: a problem (RFC 9457) with a stable code.

    Decide by `code`, never by the texts; `members` has what else the problem says."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        hint: str | None = None,
        retry_after_s: float | None = None,
        members: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(status, code, detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.hint = hint
        self.retry_after_s = retry_after_s
        self.members = dict(members or {})

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.status} {self.code}: {self.detail}{hint}"
