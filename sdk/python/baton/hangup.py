"""Ending a call that waits, from another thread."""

from __future__ import annotations

import contextlib
import socket
import threading


class HangUp:
    """First `gently`: the server sees that nobody waits any more, and an answer that is already on
    its way still arrives, so that no lease is taken and then forgotten. `now` ends it anyhow."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sock: socket.socket | None = None
        self.asked = False

    def watch(self, sock: socket.socket) -> None:
        with self._lock:
            if self.asked:
                raise ConnectionAbortedError("told to stop")
            self._sock = sock

    def forget(self) -> None:
        with self._lock:
            self._sock = None

    def gently(self) -> None:
        self._shut(socket.SHUT_WR)

    def now(self) -> None:
        self._shut(socket.SHUT_RDWR)

    def _shut(self, how: int) -> None:
        with self._lock:
            self.asked = True
            if self._sock is None:
                return
            # Errors: it is closed already, which is what was wanted.
            with contextlib.suppress(OSError):
                # Not the method of a TLS socket: that one could not be read from afterwards.
                socket.socket.shutdown(self._sock, how)
