"""Calls a handler, and makes an outcome of whatever comes of it."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Mapping
from typing import Any, Callable, Union

from .job import Job
from .outcomes import Complete, Fail, Outcome

Said = Union[None, Mapping[str, Any], Outcome]
Handler = Callable[[Job], Union[Said, Awaitable[Said]]]
log = logging.getLogger("baton")


def handle(handler: Handler | None, job: Job) -> Outcome:
    """Never raises: a worker goes on, whatever its handlers do."""
    if handler is None:
        return Fail("no_handler", f"this worker does not serve {job.type}")
    try:
        said = handler(job)
        if inspect.isawaitable(said):
            said = asyncio.run(_awaited(said))
    except Outcome as outcome:
        return outcome
    except BaseException as error:
        # Where it happened is for whoever runs this worker, not for everybody who sees the job.
        log.exception("the handler of job %s (%s) crashed", job.id, job.type)
        return Fail("crash", f"{type(error).__name__}: {error}")
    if isinstance(said, Outcome):
        return said
    if said is None or isinstance(said, Mapping):
        return Complete(None if said is None else dict(said))
    return Fail("invalid_result", f"a result is a dict, and this is {type(said).__name__}")


async def _awaited(said: Awaitable[Said]) -> Said:
    return await said
