"""The real server, to be killed and started again: the program that BATON_BIN names."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Callable, TypeVar

from baton import Client

BIN = os.environ.get("BATON_BIN")
# Nothing that a test waits for takes longer.
PATIENCE_S = 30.0
LOOK_S = 0.02
T = TypeVar("T")


def until(look: Callable[[], T], what: str) -> T:
    """The first that is something."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(LOOK_S)
    raise AssertionError(f"it did not happen: {what}")


class RealServer:
    """On a port that the first start chooses, and every other keeps."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="baton-sdk-"))
        self._said = self.directory / "said"
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.start()
        data = self.directory / "data"
        self.client = Client(self.url, (data / "admin.key").read_text())
        made = self._run("keys", "create", "worker", "--role", "worker", "--json")
        self.worker_key = str(json.loads(made)["secret"])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        up = ["up", "--listen", f"127.0.0.1:{self._port}", "--rate-limit", "0"]
        with self._said.open("wb") as said, (self.directory / "log").open("ab") as log:
            self._process = self._popen([*up, "--data-dir", "data"], said, log)
        self._port = until(self._listening, "the server is up")

    def _listening(self) -> int:
        """The port; 0 if it says none yet."""
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError((self.directory / "log").read_text()[-2000:])
        found = re.search(r"listens on  http://127\.0\.0\.1:(\d+)\n", self._said.read_text())
        return int(found[1]) if found else 0

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        self.client.close()
        self.kill()
        shutil.rmtree(self.directory)

    def completions(self) -> Counter[str]:
        """How often the history says of each job that it was completed."""
        times: Counter[str] = Counter()
        after: str | None = None
        while True:
            page = self.client._get("/api/v1/events", {"after": after, "limit": 1000})
            kinds = ((event["kind"], event["subject"]) for event in page["events"])
            times.update(subject for kind, subject in kinds if kind == "job.completed")
            if not page["events"]:
                return times
            after = page["next"]

    def _run(self, *args: str) -> bytes:
        key = (self.directory / "data" / "admin.key").read_text().strip()
        words = [*args, "--server", self.url]
        return subprocess.run(
            [str(BIN), *words], env={**self._env(), "BATON_KEY": key}, check=True,
            stdout=subprocess.PIPE, timeout=PATIENCE_S,
        ).stdout  # fmt: skip

    def _popen(self, args: list[str], out: Any, err: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [str(BIN), *args], cwd=self.directory, env=self._env(), stdin=subprocess.DEVNULL,
            stdout=out, stderr=err,
        )  # fmt: skip

    def _env(self) -> dict[str, str]:
        # Nothing of a developer's own settings; the mark is for whoever ends what a test has left.
        kept = {name: os.environ[name] for name in ("BATON_GUARD",) if name in os.environ}
        return {**kept, "HOME": str(self.directory)}
