"""A worker: takes jobs of some types, does them, and says what came of them.

Threads: one leases, one settles, one beats, and one per slot runs handlers. Handlers' threads are
daemons, so that one that does not end cannot keep the process from ending.

Elsewhere: what is held (`leases`), what a handler may say (`outcomes`)."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import re
import signal
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any, Callable, TypeVar

from .handling import Handler, handle
from .heart import Heart
from .job import Job
from .leaser import Leaser
from .leases import Leases
from .settler import Settler
from .wire import Wire

# What `run` is told: that a signal came, that the worker has stopped, or what went wrong.
SIGNAL = "signal"
STOPPED = "stopped"
LOOK_UP_S = 0.5
GRACE_S = 25.0
# For handlers that were told to stop: to say something themselves before they are released.
LAST_WORD_S = 1.0
# For the outcomes of a worker that has nothing else left to do.
LAST_SETTLING_S = 5.0
H = TypeVar("H", bound=Handler)
log = logging.getLogger("baton")


class Worker:
    """`url` and `key` are taken from BATON_URL (or else BATON_SERVER) and BATON_KEY if left out."""

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        name: str | None = None,
        concurrency: int = 4,
        projects: Sequence[str] = (),
        lanes: Sequence[str] = (),
        wait_ms: int = 20_000,
        ca_cert: str | None = None,
    ) -> None:
        if concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        if not 0 <= wait_ms <= 30_000:
            raise ValueError("wait_ms goes from 0 to 30000")
        self.name = name or _own_name()
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", self.name):
            raise ValueError("a name has 1 to 64 letters, digits, '.', '_' and '-'")
        self.concurrency = concurrency
        self._wire = Wire(url, key, ca_cert)
        self._asked: dict[str, Any] = {"waitMs": wait_ms, "worker": self.name}
        if projects:
            self._asked["projects"] = list(projects)
        if lanes:
            self._asked["lanes"] = list(lanes)
        self._handlers: dict[str, Handler] = {}
        # Signal handlers may only put into it: anything with a lock could be held by what they
        # have interrupted.
        self._told: queue.SimpleQueue[str | Exception] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._begun: _Begun | None = None

    def __repr__(self) -> str:
        return f"Worker({self._wire.url!r}, name={self.name!r}, types={sorted(self._handlers)})"

    def job(self, type: str) -> Callable[[H], H]:
        """Decorates the handler of a job type: a function, sync or async, that takes a `Job`. It
        returns a dict (or nothing), or returns or raises `Fail`, `Park`, `Ask` or `Release`."""

        def registered(handler: H) -> H:
            if type in self._handlers:
                raise ValueError(f"there is a handler of {type} already")
            self._handlers[type] = handler
            return handler

        return registered

    def run(self, grace: float = GRACE_S) -> None:
        """Works until SIGINT or SIGTERM, then stops within `grace` seconds; a second one hurries.
        Raises what the server says if it refuses to hand out jobs at all."""
        self._told = queue.SimpleQueue()
        before = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                before[number] = signal.signal(number, lambda *_: self._told.put(SIGNAL))
        try:
            self.start()
            why = word = self._next_word()
            log.info("worker %s stops", self.name)
            stopping = threading.Thread(target=self.stop, args=(grace,), daemon=True)
            stopping.start()
            while word != STOPPED:
                word = self._next_word()
                begun = self._begun
                if word == SIGNAL and begun is not None:
                    begun.leases.hurry()
            stopping.join()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if isinstance(why, Exception):
            raise why

    def _next_word(self) -> str | Exception:
        while True:
            # Not for ever: a signal that the system hands to another thread does not wake this
            # one, and only this one may act on it.
            with contextlib.suppress(queue.Empty):
                return self._told.get(timeout=LOOK_UP_S)

    def start(self) -> None:
        """Works in the background. `run` does this, and waits."""
        if not 1 <= len(self._handlers) <= 64:
            raise RuntimeError("a worker serves 1 to 64 types: decorate handlers with @worker.job")
        asked = {"types": sorted(self._handlers), **self._asked}
        # Jobs may come before this is done; whoever stops the worker then waits until it is.
        with self._starting:
            if self._begun is not None:
                raise RuntimeError("the worker works already")
            self._begun = _Begun(self, asked)
        log.info("worker %s serves %s at %s", self.name, asked["types"], self._wire.url)

    def stop(self, timeout: float = GRACE_S) -> None:
        """Leases nothing more, and waits so many seconds for what is being worked on. Then it sets
        `cancelled` and releases what is left. Not for handlers: they would wait for themselves."""
        with self._starting:
            begun = self._begun
        if begun is not None:
            begun.stop(timeout)
            self._begun = None
            self._told.put(STOPPED)


class _Begun:
    """A worker at work: everything that lasts from `start` to `stop`."""

    def __init__(self, worker: Worker, asked: dict[str, Any]) -> None:
        wire, told = worker._wire, worker._told
        self._wire = wire
        self._handlers = dict(worker._handlers)
        self._slots = worker.concurrency
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._stopping = threading.Lock()
        self._stopped = False
        self.leases = Leases(worker.concurrency)
        self._settler = Settler(wire, self.leases)
        self._leaser = Leaser(wire, self.leases, asked, self._jobs.put, told.put)
        self._leasing = _thread(self._leaser.run, "baton-leaser", told.put)
        self._rest = [
            _thread(Heart(wire, self.leases).run, "baton-heart", told.put),
            _thread(self._settler.run, "baton-settler", told.put),
        ]
        for slot in range(self._slots):
            _thread(self._work, f"baton-slot-{slot}", told.put)

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            self.leases.end(job, handle(self._handlers.get(job.type), job))

    def stop(self, timeout_s: float) -> None:
        with self._stopping:
            if self._stopped:
                return
            self._stopped = True
            until = time.monotonic() + timeout_s
            self.leases.drain()
            self._leaser.stop(self._leasing)
            if not self.leases.wait_until_settled(until - time.monotonic()):
                self.leases.cancel_all()
                self.leases.wait_until_settled(LAST_WORD_S, patient=True)
                for job in self.leases.release_rest():
                    log.warning("job %s is given back unfinished", job.id)
                self.leases.wait_until_settled(LAST_SETTLING_S, patient=True)
            self.leases.close()
            self._settler.stop()
            for thread in self._rest:
                thread.join(LAST_SETTLING_S)
            for _ in range(self._slots):
                self._jobs.put(None)
            self._wire.close()


def _thread(
    run: Callable[[], None], name: str, tell: Callable[[Exception], None]
) -> threading.Thread:
    def guarded() -> None:
        try:
            run()
        except Exception as error:
            # A worker that lacks one of its threads would only look alive.
            log.exception("%s ended; the worker stops", name)
            tell(error)

    thread = threading.Thread(target=guarded, name=name, daemon=True)
    thread.start()
    return thread


def _own_name() -> str:
    host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:50]
    return f"{host or 'worker'}-{os.getpid()}"
