"""Servers for tests: one that answers by script, and one that hands out jobs."""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, NamedTuple

PATIENCE_S = 10.0


class Request(NamedTuple):
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    sock: socket.socket


class Answer(NamedTuple):
    status: int
    body: Any = None
    headers: Mapping[str, str] = {}


# The request took place, and its answer gets lost.
LOST = Answer(0)


def problem(status: int, code: str, **more: Any) -> Answer:
    headers = {"Content-Type": "application/problem+json"}
    if "retry_after" in more:
        headers["Retry-After"] = str(more.pop("retry_after"))
    return Answer(
        status, {"status": status, "code": code, "detail": f"no: {code}", **more}, headers
    )


class FakeServer:
    """Answers every request with `self.answer`; keeps all requests."""

    def __init__(self, answer: Callable[[Request], Answer] | None = None) -> None:
        self.changed = threading.Condition()
        self.requests: list[Request] = []
        self._by_script = answer
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                request = Request(self.command, self.path, self.headers, body, self.connection)  # type: ignore[arg-type]
                with fake.changed:
                    fake.requests.append(request)
                    fake.changed.notify_all()
                answer = fake.answer(request)
                if answer.status == 0:
                    self.close_connection = True
                    return
                data = b"" if answer.body is None else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = handle_any

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                pass  # Clients that hang up are what is tested here.

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()

    def answer(self, request: Request) -> Answer:
        assert self._by_script is not None
        return self._by_script(request)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def wait_for(self, done: Callable[[], Any]) -> None:
        """Until it is so, as far as requests change it."""
        with self.changed:
            if not self.changed.wait_for(done, PATIENCE_S):
                raise AssertionError("it did not happen")

    def asked(self, end: str) -> list[Request]:
        with self.changed:
            return [request for request in self.requests if request.path.endswith(end)]


def script(answers: Sequence[Answer]) -> Callable[[Request], Answer]:
    """One answer after the other, the last one again and again."""
    left = list(answers)
    return lambda _request: left.pop(0) if len(left) > 1 else left[0]


class FakeBaton(FakeServer):
    """The worker protocol: jobs are handed out in order, outcomes are kept by job."""

    def __init__(self, lease_ms: int = 30_000) -> None:
        self.lease_ms = lease_ms
        self.waiting: list[dict[str, Any]] = []
        self.outcomes: dict[str, list[dict[str, Any]]] = {}
        self.beats: list[list[str]] = []
        self.lost: set[str] = set()
        self.cancelled: set[str] = set()
        # Leases whose next outcome is refused, and the code of that.
        self.unfit: dict[str, str] = {}
        self.hung_up = 0
        # Answers that come instead of the right one, by the end of the path.
        self.instead: dict[str, list[Answer]] = {}
        # Whether what is answered instead takes place all the same.
        self.done_anyway = False
        super().__init__()

    def give(self, type: str, payload: dict[str, Any] | None = None, **job: Any) -> str:
        with self.changed:
            lease = job.pop("lease", f"lease-{len(self.waiting) + len(self.requests)}-{type}")
            fields = {"id": f"job_{lease}", "type": type, "projectId": "demo", "attempt": 1, **job}
            self.waiting.append(
                {"lease": lease, "leaseMs": self.lease_ms, "timeoutMs": None, "job": fields,
                 "payload": payload or {}}
            )  # fmt: skip
            self.changed.notify_all()
            return str(lease)

    def outcome(self, lease: str) -> dict[str, Any]:
        """What was said about a job, once it was."""
        self.wait_for(lambda: lease in self.outcomes)
        said = dict(self.outcomes[lease][0])
        del said["lease"]
        return said

    def answer(self, request: Request) -> Answer:
        name = request.path.rsplit("/", 1)[1]
        with self.changed:
            instead = self.instead.get(name)
            if instead:
                told = instead.pop(0)
                if self.done_anyway:
                    self._right(name, request)
                self.changed.notify_all()
                return told
        return self._right(name, request)

    def _right(self, name: str, request: Request) -> Answer:
        with self.changed:
            try:
                if name == "lease":
                    return self._lease(request)
                if name == "settle":
                    return Answer(200, {"settled": self._settle(request.body["outcomes"])})
                if name in ("complete", "fail", "release"):
                    said = dict(request.body)
                    [told] = self._settle([{"lease": said.pop("lease"), name: said}])
                    return problem(409, told["code"]) if "code" in told else Answer(200, told)
                if name == "heartbeat":
                    leases = request.body["leases"]
                    self.beats.append(leases)
                    lost, cancelled = self.lost & set(leases), self.cancelled & set(leases)
                    lost |= set(leases) & set(self.outcomes)
                    return Answer(200, {"lost": sorted(lost), "cancelled": sorted(cancelled)})
                if name == "progress":
                    if request.body["lease"] in self.lost:
                        return problem(409, "lease_lost")
                    asked = request.body["lease"] in self.cancelled
                    return Answer(200, {"cancelRequested": asked})
                return problem(404, "not_found")
            finally:
                self.changed.notify_all()

    def _lease(self, request: Request) -> Answer:
        settled = self._settle(request.body.get("settle", []))
        self.changed.notify_all()
        until = time.monotonic() + request.body["waitMs"] / 1000
        while True:
            # First: who has hung up gets nothing.
            if select.select([request.sock], [], [], 0)[0]:
                self.hung_up += 1
                return LOST
            if self.waiting or time.monotonic() >= until:
                break
            self.changed.wait(0.01)
        room = request.body["max"]
        taken, self.waiting = self.waiting[:room], self.waiting[room:]
        return Answer(200, {"leases": taken, "settled": settled})

    def _settle(self, outcomes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        settled = []
        for outcome in outcomes:
            lease = outcome["lease"]
            if lease in self.lost:
                settled.append({"lease": lease, "code": "lease_lost", "detail": "gone"})
                continue
            if lease in self.unfit:
                code = self.unfit.pop(lease)
                settled.append({"lease": lease, "code": code, "detail": "not now"})
                continue
            before = self.outcomes.setdefault(lease, [])
            settled.append({"lease": lease, "settled": "already" if before else "now"})
            before.append(outcome)
        return settled
