"""What a handler can say about its job, besides returning a result.

Each can be returned or raised. An outcome is an exception, so that code deep inside a handler can
end the job; it is none for the logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .wire import encode

RESULT_BYTES = 256 * 1024
CODE_CHARS = 64
MESSAGE_CHARS = 2_000


class Outcome(Exception):
    """What came of a lease."""

    def said(self) -> dict[str, Any]:
        """As the protocol has it, without the lease."""
        raise NotImplementedError


class Complete(Outcome):
    """Done. Handlers return the result itself; this is what becomes of it."""

    def __init__(self, result: Mapping[str, Any] | None = None) -> None:
        super().__init__("complete")
        self.result = result

    def said(self) -> dict[str, Any]:
        return {"complete": {} if self.result is None else {"result": self.result}}


class Fail(Outcome):
    """It went wrong. `class_` is `transient` (tried again while the job's budgets last),
    `deterministic` or `fatal`; left out, it follows from the code. A tool that says `acted=False`
    has done nothing outside, so that an unsafe one may be tried again without asking people."""

    def __init__(
        self,
        code: str,
        message: str = "",
        class_: str | None = None,
        *,
        acted: bool | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        if class_ not in (None, "transient", "deterministic", "fatal"):
            raise ValueError("class_ is transient, deterministic or fatal")
        self.code = code[:CODE_CHARS]
        # Names of files can have characters that cannot be sent; they shall not hide the failure.
        self.message = message[:MESSAGE_CHARS].encode("utf-8", "replace").decode()
        self.class_ = class_
        self.acted = acted

    def said(self) -> dict[str, Any]:
        said: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.class_ is not None:
            said["class"] = self.class_
        if self.acted is not None:
            said["acted"] = self.acted
        return {"fail": said}


class Park(Outcome):
    """Wait without holding this worker, for so long or until somebody wakes the job; without
    `for_ms` for the wake-up alone. `seen` is the job's `wakes`, and filled in if left out."""

    def __init__(self, for_ms: int | None = None, seen: int | None = None) -> None:
        super().__init__("park")
        self.for_ms = for_ms
        self.seen = seen

    def said(self) -> dict[str, Any]:
        said = {"forMs": self.for_ms, "seen": self.seen}
        return {"park": {name: value for name, value in said.items() if value is not None}}


class Ask(Outcome):
    """Ask a person. The job comes again with the answer in `job.answer`. A text is a question with
    the usual options."""

    def __init__(self, question: str | Mapping[str, Any]) -> None:
        super().__init__("ask")
        self.question = {"prompt": question} if isinstance(question, str) else dict(question)

    def said(self) -> dict[str, Any]:
        return {"ask": {"question": self.question}}


class Release(Outcome):
    """Give the job back, unfinished, without counting a failure."""

    def __init__(self) -> None:
        super().__init__("release")

    def said(self) -> dict[str, Any]:
        return {"release": {}}


def checked(outcome: Outcome) -> tuple[dict[str, Any], int]:
    """What is sent, and its size. One that cannot be sent becomes a failure that says why, before
    it spoils a list of outcomes that is settled together."""
    try:
        said = outcome.said()
        size = len(encode(said))
    except (TypeError, ValueError, RecursionError) as error:
        return checked(Fail("invalid_result", f"this is not JSON: {error}"))
    if isinstance(outcome, Complete) and size - len(b'{"complete":{"result":}}') > RESULT_BYTES:
        return checked(Fail("result_too_large", f"the result has more than {RESULT_BYTES} bytes"))
    return said, size
