"""HTTP, as Baton speaks it: JSON in, JSON or a problem out, the key in a header.

Every call may be sent twice: `GET`, `PUT` and `DELETE` by nature, settling by its lease, other
`POST`s by their `Idempotency-Key`, and a lease whose answer got lost runs out by itself.

Elsewhere: when to repeat (`patience`), what is asked (`client`, `worker`)."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import threading
import time
from collections.abc import Mapping
from typing import Any, Callable
from urllib.parse import urlencode, urlsplit

from .errors import BatonError, Refused, Unreachable
from .hangup import HangUp
from .patience import Patience

DEFAULT_URL = "http://127.0.0.1:22866"
CONNECT_S = 10.0
# The server closes connections that were idle for 20 seconds; older ones are not worth trying.
IDLE_S = 10.0


class Wire:
    """Calls one server with one key. Any number of threads may use it."""

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        ca_cert: str | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.url = (url or _from_environment() or DEFAULT_URL).rstrip("/")
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise ValueError("the url must look like https://baton.example.com:22866")
        self._host, self._port, self._base = parts.hostname, parts.port, parts.path
        self._authorization = "Bearer " + _checked(key or os.environ.get("BATON_KEY") or "")
        self._tls: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._tls = ssl.create_default_context()
            authorities = ca_cert or os.environ.get("BATON_CA_CERT")
            if authorities:
                self._tls.load_verify_locations(authorities)
        self._sleep = sleep
        self._idle: list[tuple[float, http.client.HTTPConnection]] = []
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Wire({self.url!r})"

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        patience: Patience = Patience(),  # noqa: B008 (immutable)
        timeout_s: float = 30.0,
        hang_up: HangUp | None = None,
    ) -> Any:
        """The answer's JSON. Raises `Refused` or, without an answer, `Unreachable`."""
        headers = {"Accept": "application/json", "Authorization": self._authorization}
        data = None
        if method in ("POST", "PUT"):
            # Also where there is nothing to say: the server wants the type on every one of them.
            headers["Content-Type"] = "application/json"
            data = encode(body if body is not None else {})
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        asked = {name: value for name, value in (query or {}).items() if value is not None}
        target = self._base + path + ("?" + urlencode(asked, doseq=True) if asked else "")
        began, before = time.monotonic(), 0
        while True:
            try:
                return self._once(method, target, data, headers, timeout_s, hang_up)
            except BatonError as error:
                pause_s = patience.next_s(error, before, time.monotonic() - began)
                if pause_s is None:
                    raise
            self._sleep(pause_s)
            before += 1

    def _once(
        self,
        method: str,
        target: str,
        data: bytes | None,
        headers: Mapping[str, str],
        timeout_s: float,
        hang_up: HangUp | None,
    ) -> Any:
        connection = self._connection()
        try:
            connection.timeout = min(CONNECT_S, timeout_s)
            if connection.sock is None:
                connection.connect()
            connection.sock.settimeout(timeout_s)
            if hang_up is not None:
                hang_up.watch(connection.sock)
            broken = False
            try:
                connection.request(method, target, data, dict(headers))
            except (BrokenPipeError, ConnectionResetError):
                # What is too large is refused before it was read to its end: that is still heard.
                broken = True
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            # What was sent stays out of the message: it is nobody's business but the server's.
            reason = str(error) or type(error).__name__
            raise Unreachable(f"{self.url} does not answer: {reason}") from error
        finally:
            if hang_up is not None:
                hang_up.forget()
        if broken or answer.will_close or (hang_up is not None and hang_up.asked):
            connection.close()
        else:
            with self._lock:
                self._idle.append((time.monotonic(), connection))
        return read(answer.status, answer.headers.get("Retry-After"), text)

    def _connection(self) -> http.client.HTTPConnection:
        with self._lock:
            while self._idle:
                since, connection = self._idle.pop()
                if time.monotonic() - since < IDLE_S:
                    return connection
                connection.close()
        if self._tls is not None:
            return http.client.HTTPSConnection(self._host, self._port, context=self._tls)
        return http.client.HTTPConnection(self._host, self._port)

    def close(self) -> None:
        """Closes what is open and idle. The wire can be used again."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()


def encode(value: Any) -> bytes:
    """JSON as the server reads it. `ValueError` or `TypeError` for what is none."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8")


def read(status: int, retry_after: str | None, text: bytes) -> Any:
    """What an answer says, or the refusal that it is."""
    try:
        body = json.loads(text) if text else None
    except ValueError:
        body = text
    if 200 <= status < 300 and not isinstance(body, bytes):
        return body
    problem = body if isinstance(body, dict) else {}
    told = problem.get("retryAfterMs")
    after_s = told / 1000.0 if isinstance(told, (int, float)) else None
    if retry_after is not None and retry_after.strip().isdigit():
        after_s = max(float(retry_after), after_s or 0.0)
    hint = problem.get("hint")
    raise Refused(
        status,
        str(problem.get("code") or "unexpected_answer"),
        str(problem.get("detail") or problem.get("title") or f"HTTP {status}, without a problem"),
        None if hint is None else str(hint),
        after_s,
        problem,
    )


def _from_environment() -> str | None:
    # The second is the command line's own, so that one setting does for both.
    return os.environ.get("BATON_URL") or os.environ.get("BATON_SERVER")


def _checked(key: str) -> str:
    key = key.strip()
    if not key:
        raise ValueError("there is no key: give key=… or set BATON_KEY")
    # Checked here, because the complaint of the HTTP library would show it.
    if not key.isascii() or not key.isprintable():
        raise ValueError("the key has characters that no key has")
    return key
