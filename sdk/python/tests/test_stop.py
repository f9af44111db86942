"""How a worker ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import unittest
from pathlib import Path
from unittest import mock

from baton import Job

from .fake import PATIENCE_S, problem
from .test_worker import Case

PROGRAM = """
import sys
from baton import Worker
worker = Worker(name="w-1", concurrency=1)

@worker.job("t")
def handler(job):
    print("begun", flush=True)
    if job.payload.get("endless"):
        job.cancelled.wait()
        job.stop_if_cancelled()
    else:
        sys.stdin.readline()
    return {"done": True}

worker.run(grace=float(sys.argv[1]))
print("over", flush=True)
"""


class Stopping(Case):
    def test_an_idle_worker_hangs_up_and_stops_at_once(self) -> None:
        baton, worker = self.begin()
        worker.job("t")(lambda _job: None)
        worker.start()
        baton.wait_for(lambda: baton.requests)
        worker.stop(PATIENCE_S)
        baton.wait_for(lambda: baton.hung_up == 1)

    def test_what_is_being_worked_on_is_finished(self) -> None:
        baton, worker = self.begin(concurrency=2)
        begun, end = threading.Event(), threading.Event()

        @worker.job("t")
        def handler(_job: Job) -> dict[str, bool]:
            begun.set()
            return {"done": end.wait(PATIENCE_S)}

        lease = baton.give("t")
        worker.start()
        self.wait(begun)
        baton.wait_for(lambda: len(baton.asked("/lease")) == 2)
        stopping = threading.Thread(target=worker.stop, args=(PATIENCE_S,))
        stopping.start()
        baton.wait_for(lambda: baton.hung_up == 1)
        other = baton.give("t")
        end.set()
        stopping.join(PATIENCE_S)
        self.assertEqual(baton.outcome(lease), {"complete": {"result": {"done": True}}})
        self.assertNotIn(other, baton.outcomes)

    def test_what_does_not_end_in_time_is_told_to_and_released(self) -> None:
        baton, worker = self.begin(concurrency=2)
        begun, never = threading.Barrier(3), threading.Event()
        self.addCleanup(never.set)

        @worker.job("listens")
        def listens(job: Job) -> dict[str, bool]:
            begun.wait(PATIENCE_S)
            return {"told": job.cancelled.wait(PATIENCE_S)}

        @worker.job("deaf")
        def deaf(_job: Job) -> None:
            begun.wait(PATIENCE_S)
            never.wait()

        first, second = baton.give("listens"), baton.give("deaf")
        worker.start()
        begun.wait(PATIENCE_S)
        worker.stop(0)
        self.assertEqual(baton.outcome(first), {"complete": {"result": {"told": True}}})
        self.assertEqual(baton.outcome(second), {"release": {}})

    def test_what_is_handed_out_while_stopping_is_released(self) -> None:
        baton, worker = self.begin(concurrency=1)
        ran: list[str] = []
        worker.job("t")(lambda job: ran.append(job.id))
        lease = baton.give("t")
        arrived, stop = threading.Event(), threading.Event()
        right = baton._right

        def late(name: str, request):  # type: ignore[no-untyped-def]
            answer = right(name, request)
            if name == "lease":
                arrived.set()
                stop.wait(PATIENCE_S)
            return answer

        baton._right = late  # type: ignore[method-assign]
        worker.start()
        self.wait(arrived)
        assert worker._begun is not None
        worker._begun.leases.drain()
        stop.set()
        self.assertEqual(baton.outcome(lease), {"release": {}})
        self.assertEqual(ran, [])

    def test_a_server_that_is_gone_does_not_keep_a_worker(self) -> None:
        baton, worker = self.begin(concurrency=1)
        worker.job("t")(lambda _job: None)
        baton.give("t")
        gone = [problem(503, "store_closed")] * 1000
        baton.instead.update(settle=gone, heartbeat=gone)
        worker.start()
        baton.wait_for(lambda: len(baton.asked("/lease")) == 2)
        # As long as it is given, and no longer.
        with mock.patch("baton.worker.LAST_SETTLING_S", 0.2):
            worker.stop(0)

    def test_it_can_begin_again(self) -> None:
        baton, worker = self.begin()
        worker.job("t")(lambda _job: None)
        for _ in range(2):
            lease = baton.give("t")
            worker.start()
            baton.outcome(lease)
            worker.stop(PATIENCE_S)

    def test_run_returns_when_somebody_stops_the_worker(self) -> None:
        baton, worker = self.begin()
        worker.job("t")(lambda _job: None)
        running = threading.Thread(target=worker.run)
        running.start()
        baton.wait_for(lambda: baton.requests)
        worker.stop(PATIENCE_S)
        running.join(PATIENCE_S)
        self.assertFalse(running.is_alive())


@unittest.skipIf(sys.platform == "win32", "there are no such signals")
class Signals(Case):
    def program(self, url: str, grace_s: float) -> subprocess.Popen[str]:
        path = str(Path(__file__).parents[1])
        env = {**os.environ, "BATON_URL": url, "BATON_KEY": "bk_worker", "PYTHONPATH": path}
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(grace_s)],
            env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.addCleanup(process.__exit__, None, None, None)
        self.addCleanup(process.kill)
        return process

    def line(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        return process.stdout.readline().strip()

    def test_sigterm_lets_work_end(self) -> None:
        baton, _ = self.begin()
        lease = baton.give("t")
        process = self.program(baton.url, PATIENCE_S)
        self.assertEqual(self.line(process), "begun")
        process.send_signal(signal.SIGTERM)
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        self.assertEqual(baton.outcome(lease), {"complete": {"result": {"done": True}}})
        self.assertEqual(self.line(process), "over")
        self.assertEqual(process.wait(PATIENCE_S), 0)

    def test_a_second_signal_hurries(self) -> None:
        baton, _ = self.begin()
        lease = baton.give("t", {"endless": True})
        process = self.program(baton.url, 3600)
        self.assertEqual(self.line(process), "begun")
        process.send_signal(signal.SIGTERM)
        # Signals of one kind that come together are one, so the second is of another.
        process.send_signal(signal.SIGINT)
        self.assertEqual(baton.outcome(lease), {"release": {}})
        self.assertEqual(process.wait(PATIENCE_S), 0)


if __name__ == "__main__":
    unittest.main()
