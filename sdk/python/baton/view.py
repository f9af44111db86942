"""Jobs as those see them who enqueue them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Union

Priority = Union[str, int]
Delay = Union[float, timedelta]
ENDED = frozenset({"completed", "failed", "cancelled"})


@dataclass(frozen=True)
class NewJob:
    """A job to be enqueued.

    `delay` (seconds or a `timedelta`) is `not_before`, counted from now. The same `message_id`
    again in the same project is the same job; other duplicates are a matter of the job type."""

    type: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    project: str = ""
    priority: Priority | None = None
    not_before: datetime | None = None
    delay: Delay | None = None
    deadline: datetime | None = None
    message_id: str | None = None
    source_session_id: str | None = None

    def said(self) -> dict[str, Any]:
        """As the API has it."""
        if not self.project:
            raise ValueError("a job needs a project")
        if self.delay is not None and self.not_before is not None:
            raise ValueError("give delay or not_before, not both")
        not_before = self.not_before
        if self.delay is not None:
            delay = (
                self.delay if isinstance(self.delay, timedelta) else timedelta(seconds=self.delay)
            )
            not_before = datetime.now(timezone.utc) + delay
        said: dict[str, Any] = {
            "type": self.type,
            "projectId": self.project,
            "payload": dict(self.payload),
            "priority": self.priority,
            "notBefore": _instant(not_before),
            "deadline": _instant(self.deadline),
            "messageId": self.message_id,
            "sourceSessionId": self.source_session_id,
        }
        return {name: value for name, value in said.items() if value is not None}


@dataclass(frozen=True)
class JobView:
    """A job as the server showed it; `fields` has all that it said."""

    id: str
    state: str
    fields: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> JobView:
        # A batch answers with less about each job, and calls the id otherwise.
        return cls(fields["id"] if "id" in fields else fields["jobId"], fields["state"], fields)

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def completed(self) -> bool:
        return self.state == "completed"

    @property
    def result(self) -> dict[str, Any] | None:
        return self.fields.get("result")

    @property
    def error(self) -> str | None:
        """`code: message`, if it failed."""
        return self.fields.get("error")

    @property
    def progress(self) -> dict[str, Any] | None:
        return self.fields.get("progress")

    @property
    def dedupe(self) -> str | None:
        """What became of the request that enqueued it."""
        return self.fields.get("dedupe")


def _instant(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise ValueError("times need a time zone, such as datetime.now(timezone.utc)")
    return moment.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
