"""Workers and servers that are killed: nothing is lost, and nothing is completed twice.

    BATON_BIN=target/debug/baton python3 -m unittest tests.test_kill

Every test has a server of its own, and workers that are processes (`shout_sdk`, `shout_plain`)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import unittest
from collections.abc import Iterable
from pathlib import Path

from baton import JobView, NewJob

from .real import BIN, PATIENCE_S, RealServer, until

TESTS = Path(__file__).resolve().parent


class Case(unittest.TestCase):
    program = "shout_sdk.py"

    def setUp(self) -> None:
        self.server = RealServer()
        self.addCleanup(self.server.close)
        self.where = self.server.directory / "shouts"
        self.where.mkdir()

    def register(self, lease: str) -> None:
        retry = {"base": "50ms", "max": "100ms", "jitter": False}
        lane = {"key": "shouts", "limit": None}
        definition = {"lease": lease, "maxAttempts": 10, "retry": retry, "lane": lane}
        self.server.client.put_job_type("shout", definition)

    def enqueue(self, *texts: str) -> list[JobView]:
        jobs = [NewJob("shout", {"text": text}, "demo") for text in texts]
        return self.server.client.batch(jobs)

    def worker(self, name: str, grace_s: float = PATIENCE_S) -> subprocess.Popen[bytes]:
        env = {**os.environ, "BATON_URL": self.server.url, "BATON_KEY": self.server.worker_key}
        env["PYTHONPATH"] = str(TESTS.parent)
        program = [sys.executable, str(TESTS / self.program), str(self.where), name, str(grace_s)]
        # What it says of the trouble that it is given is not of interest while all goes well.
        with (self.server.directory / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(program, env=env, stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def noted(self, text: str) -> list[str]:
        path = self.where / text
        return path.read_text().splitlines() if path.exists() else []

    def until_noted(self, text: str, note: str) -> None:
        until(lambda: note in self.noted(text), f"{note}: {text}")

    def go(self, *texts: str) -> None:
        for text in texts:
            (self.where / f"{text}.go").touch()

    def ended(self, job: JobView) -> JobView:
        return self.server.client.wait(job.id, PATIENCE_S)

    def check_completed_once(self, jobs: Iterable[JobView]) -> list[JobView]:
        ended = [self.ended(job) for job in jobs]
        times = self.server.completions()
        for job in ended:
            text = job.fields["payload"]["text"]
            self.assertEqual((job.state, job.result), ("completed", {"text": text.upper()}))
            self.assertEqual((times[job.id], job.fields["failures"]), (1, 0), text)
            # Whatever was begun was an attempt, and the last one is the one that counts.
            begun = [note for note in self.noted(text) if note.startswith("begun")]
            self.assertLessEqual(len(begun), job.fields["attempts"], text)
            self.assertEqual(self.noted(text)[-1].split()[0], "done", text)
        return ended


@unittest.skipUnless(BIN, "needs BATON_BIN")
class Killed(Case):
    """What every worker must bear; the package's is the first."""

    def test_what_a_killed_worker_had_begun_is_done_by_another(self) -> None:
        self.register(lease="2s")
        jobs = self.enqueue("held-1", "held-2", "quick-1", "quick-2")
        first = self.worker("first")
        self.until_noted("held-1", "begun first")
        first.kill()
        self.go("held-1", "held-2")
        self.worker("second")
        ended = self.check_completed_once(jobs)
        self.assertEqual(ended[0].fields["attempts"], 2)
        self.assertEqual(self.noted("held-1"), ["begun first", "begun second", "done second"])

    def test_what_ends_while_the_server_is_away_is_settled_when_it_is_back(self) -> None:
        self.register(lease="60s")
        self.worker("first")
        for n in range(2):
            text = f"held-{n}"
            jobs = self.enqueue(text)
            self.until_noted(text, "begun first")
            self.server.kill()
            self.go(text)
            self.until_noted(text, "done first")
            self.server.start()
            jobs += self.enqueue(f"quick-{n}")
            ended = self.check_completed_once(jobs)
            # The lease has outlived the server that gave it, so nobody has begun anew.
            self.assertEqual([job.fields["attempts"] for job in ended], [1, 1])

    def test_a_worker_that_waits_waits_for_the_next_server_too(self) -> None:
        self.register(lease="2s")
        self.worker("first")
        jobs = self.enqueue("quick-0")
        for n in range(1, 4):
            # It has nothing to do now, and asks for more.
            self.ended(jobs[-1])
            self.server.kill()
            self.server.start()
            jobs += self.enqueue(f"quick-{n}")
        self.check_completed_once(jobs)

    def test_a_server_that_is_killed_under_load_loses_nothing(self) -> None:
        self.register(lease="2s")
        self.worker("first")
        jobs = self.enqueue(*(f"quick-{n}" for n in range(60)))
        for enough in (5, 25):
            until(lambda: self.begun(jobs) >= enough, f"{enough} jobs are begun")  # noqa: B023
            self.server.kill()
            self.server.start()
        self.check_completed_once(jobs)

    def begun(self, jobs: list[JobView]) -> int:
        return sum((self.where / f"quick-{n}").exists() for n in range(len(jobs)))

    def test_a_worker_that_is_told_to_stop_finishes_what_it_can(self) -> None:
        self.register(lease="30s")
        [job] = self.enqueue("held-1")
        first = self.worker("first")
        self.until_noted("held-1", "begun first")
        first.send_signal(signal.SIGTERM)
        self.go("held-1")
        self.assertEqual(first.wait(PATIENCE_S), 0)
        # It was settled before the worker ended.
        self.assertEqual(self.server.client.get(job.id).state, "completed")
        self.assertEqual(self.check_completed_once([job])[0].fields["attempts"], 1)

    def test_a_worker_that_is_told_to_stop_gives_back_the_rest(self) -> None:
        self.register(lease="30s")
        jobs = self.enqueue("held-1", "held-2")
        # No grace: the package's worker gives back both, the plain one ends what it has in hand.
        first = self.worker("first", grace_s=0)
        self.until_noted("held-1", "begun first")
        first.send_signal(signal.SIGTERM)
        if self.program == "shout_plain.py":
            self.go("held-1")
        self.assertEqual(first.wait(PATIENCE_S), 0)
        given = self.server.client.get(jobs[1].id).fields
        told = (given["state"], given["waitingFor"], given["attempts"], given["failures"])
        self.assertEqual(told, ("awaiting_tool", "retry", 1, 0))
        self.go("held-1", "held-2")
        self.worker("second")
        # Now, and not when its lease would have run out.
        ended = self.check_completed_once(jobs)
        self.assertEqual(ended[1].fields["attempts"], 2)

    def test_a_worker_ends_although_the_server_is_away(self) -> None:
        self.register(lease="30s")
        first = self.worker("first", grace_s=0)
        self.ended(self.enqueue("quick-1")[0])
        self.server.kill()
        first.send_signal(signal.SIGTERM)
        self.assertEqual(first.wait(PATIENCE_S), 0)


class KilledPlain(Killed):
    """The worker without the package, `examples/worker.py`."""

    program = "shout_plain.py"


@unittest.skipUnless(BIN, "needs BATON_BIN")
class Lost(Case):
    def test_what_is_lost_while_the_server_is_away_is_stopped_and_begun_anew(self) -> None:
        self.register(lease="1s")
        self.worker("first")
        [job] = self.enqueue("held-1")
        self.until_noted("held-1", "begun first")
        self.server.kill()
        self.until_noted("held-1", "stopped first")
        self.server.start()
        until(lambda: self.noted("held-1").count("begun first") == 2, "it is begun anew")
        self.go("held-1")
        [ended] = self.check_completed_once([job])
        self.assertEqual(ended.fields["attempts"], 2)


if __name__ == "__main__":
    unittest.main()
