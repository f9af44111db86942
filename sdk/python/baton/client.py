"""Enqueues jobs and steers them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Callable
from urllib.parse import quote

from .patience import Patience
from .view import Delay, JobView, NewJob, Priority
from .wire import Wire

# While waiting for the end of a job: soon at first, because most are short.
LOOK_FIRST_S = 0.1
LOOK_LONGEST_S = 2.0


class Client:
    """`url` and `key` are taken from BATON_URL (or else BATON_SERVER) and BATON_KEY if left out.
    Threads may share it.

    What has no answer is sent again, with growing pauses, for `patience_s` seconds at most. That
    does nothing twice: every `POST` carries an idempotency key, made anew for each call."""

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        patience_s: float = 30.0,
        ca_cert: str | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._wire = Wire(url, key, ca_cert, sleep)
        self._patience = Patience(within_s=patience_s)
        self._sleep = sleep

    def __repr__(self) -> str:
        return f"Client({self._wire.url!r})"

    # Jobs

    def enqueue(
        self,
        type: str,
        payload: Mapping[str, Any] | None = None,
        *,
        project: str,
        priority: Priority | None = None,
        not_before: datetime | None = None,
        delay: Delay | None = None,
        deadline: datetime | None = None,
        message_id: str | None = None,
        source_session_id: str | None = None,
        idempotency_key: str | None = None,
        wait: float | None = None,
    ) -> JobView:
        """Enqueues one job; the options are those of `NewJob`. With `wait`, the job as it ended,
        or `TimeoutError` after so many seconds."""
        new = NewJob(
            type, payload or {}, project, priority, not_before, delay, deadline, message_id,
            source_session_id,
        )  # fmt: skip
        job = JobView.of(self._post("/api/v1/jobs", new.said(), idempotency_key))
        return job if wait is None else self.wait(job.id, wait)

    def batch(self, jobs: Iterable[NewJob], *, idempotency_key: str | None = None) -> list[JobView]:
        """Enqueues 1 to 1000 jobs, all of them or none, and answers in their order."""
        body = {"jobs": [job.said() for job in jobs]}
        answer = self._post("/api/v1/jobs/batch", body, idempotency_key)
        return [JobView.of(job) for job in answer["jobs"]]

    def get(self, job_id: str) -> JobView:
        return JobView.of(self._get(_job(job_id)))

    def jobs(self, project: str, **filters: str) -> Iterator[JobView]:
        """A project's jobs, newest first, page by page as read. Filters: `state`, `type`."""
        for job in self._pages(f"/api/v1/projects/{quote(project, safe='')}/jobs", "jobs", filters):
            yield JobView.of(job)

    def cancel(self, job_id: str, reason: str | None = None) -> JobView:
        body = {} if reason is None else {"reason": reason}
        return JobView.of(self._post(_job(job_id) + "/cancel", body))

    def wake(self, job_id: str) -> JobView:
        """Makes a parked job due; one that runs will not miss it."""
        return JobView.of(self._post(_job(job_id) + "/wake", {}))

    def requeue(self, job_id: str) -> JobView:
        """The new job that repeats a failed one."""
        return JobView.of(self._post(_job(job_id) + "/requeue", {}))

    def wait(self, job_id: str, timeout: float = 60.0) -> JobView:
        """The job as it ended, however it did: look at `state`. `TimeoutError` if it has not."""
        until = time.monotonic() + timeout
        pause_s = LOOK_FIRST_S
        while True:
            job = self.get(job_id)
            left_s = until - time.monotonic()
            if job.ended:
                return job
            if left_s <= 0:
                raise TimeoutError(f"job {job_id} is still {job.state} after {timeout} seconds")
            self._sleep(min(pause_s, left_s))
            pause_s = min(pause_s * 1.5, LOOK_LONGEST_S)

    # Decisions

    def decisions(self, **filters: str) -> Iterator[dict[str, Any]]:
        """What people are asked. Filters: `state`, `projectId`, `responsibility`, `subject`."""
        return self._pages("/api/v1/decisions", "decisions", filters)

    def resolve(
        self,
        decision_id: str,
        option: str,
        *,
        comment: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Answers a decision; only the first answer counts."""
        body: dict[str, Any] = {"option": option}
        if comment is not None:
            body["comment"] = comment
        if data is not None:
            body["data"] = dict(data)
        path = f"/api/v1/decisions/{quote(decision_id, safe='')}/resolve"
        answer: dict[str, Any] = self._post(path, body)
        return answer

    # Job types

    def put_job_type(self, type: str, definition: Mapping[str, Any]) -> dict[str, Any]:
        """Registers a job type, or a new version of it if something has changed."""
        path = f"/api/v1/job-types/{quote(type, safe='')}"
        answer: dict[str, Any] = self._wire.call("PUT", path, definition, patience=self._patience)
        return answer

    def get_job_type(self, type: str) -> dict[str, Any]:
        answer: dict[str, Any] = self._get(f"/api/v1/job-types/{quote(type, safe='')}")
        return answer

    def job_types(self) -> Iterator[dict[str, Any]]:
        return self._pages("/api/v1/job-types", "jobTypes", {})

    # The wire

    def close(self) -> None:
        """Closes idle connections."""
        self._wire.close()

    def _get(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        return self._wire.call("GET", path, query=query, patience=self._patience)

    def _post(self, path: str, body: Mapping[str, Any], key: str | None = None) -> Any:
        return self._wire.call(
            "POST", path, body, idempotency_key=key or uuid.uuid4().hex, patience=self._patience
        )

    def _pages(self, path: str, name: str, filters: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        cursor: str | None = None
        while True:
            page = self._get(path, {**filters, "cursor": cursor})
            yield from page[name]
            cursor = page.get("nextCursor")
            if cursor is None:
                return


def _job(job_id: str) -> str:
    return "/api/v1/jobs/" + quote(job_id, safe="")
