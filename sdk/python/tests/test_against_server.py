"""The package against a real server.

    BATON_URL=… BATON_KEY=… BATON_ADMIN_KEY=… python3 -m unittest tests.test_against_server

BATON_KEY has the role `worker`. Everything happens in a project and with types of its own."""

from __future__ import annotations

import logging
import os
import threading
import unittest
import uuid
from typing import Any, Callable, ClassVar

from baton import Ask, Client, Fail, Job, JobView, NewJob, Park, Refused, Release, Worker

NEEDED = ("BATON_URL", "BATON_KEY", "BATON_ADMIN_KEY")
WAIT_S = 30.0


@unittest.skipUnless(all(os.environ.get(name) for name in NEEDED), f"needs {', '.join(NEEDED)}")
class AgainstServer(unittest.TestCase):
    client: ClassVar[Client]

    @classmethod
    def setUpClass(cls) -> None:
        cls.client = Client(key=os.environ["BATON_ADMIN_KEY"])

    @classmethod
    def tearDownClass(cls) -> None:
        cls.client.close()

    def setUp(self) -> None:
        logging.getLogger("baton").setLevel(logging.CRITICAL)
        self.addCleanup(logging.getLogger("baton").setLevel, logging.NOTSET)
        mark = uuid.uuid4().hex[:10]
        self.project = f"sdk-{mark}"
        self.type = f"sdk.t{mark}"

    def register(self, **definition: Any) -> dict[str, Any]:
        # A lane of its own, without a limit: a project's lane runs one job at a time.
        lane = {"key": f"{self.type}", "limit": None}
        retry = {"base": "50ms", "max": "100ms", "jitter": False, "maxFailures": 3}
        body = {"summary": "Of a test", "lease": "5s", "timeout": "60s", "maxAttempts": 5,
                "lane": lane, "retry": retry}  # fmt: skip
        return self.client.put_job_type(self.type, {**body, **definition})

    def serve(self, handler: Callable[[Job], Any], concurrency: int = 2) -> Worker:
        worker = Worker(name="sdk-test", concurrency=concurrency, wait_ms=5_000)
        worker.job(self.type)(handler)
        worker.start()
        self.addCleanup(worker.stop, 5)
        return worker

    def enqueue(self, **payload: Any) -> JobView:
        return self.client.enqueue(self.type, payload, project=self.project)

    def ended(self, job: JobView) -> JobView:
        return self.client.wait(job.id, WAIT_S)

    def wait(self, event: threading.Event) -> None:
        self.assertTrue(event.wait(WAIT_S), "it did not happen")

    def test_types_are_registered_in_versions(self) -> None:
        first = self.register()
        again = self.register()
        self.assertEqual((first["type"], again["version"]), (self.type, first["version"]))
        changed = self.register(maxAttempts=7)
        self.assertEqual(changed["version"], first["version"] + 1)
        self.assertEqual(self.client.get_job_type(self.type)["maxAttempts"], 7)
        self.assertIn(self.type, {each["type"] for each in self.client.job_types()})

    def test_jobs_are_done(self) -> None:
        self.register()
        self.serve(lambda job: {"doubled": job.payload["n"] * 2, "attempt": job.attempt})
        new = [NewJob(self.type, {"n": n}, self.project) for n in range(20)]
        for n, job in enumerate(self.client.batch(new)):
            ended = self.ended(job)
            self.assertEqual(
                (ended.state, ended.result), ("completed", {"doubled": n * 2, "attempt": 1})
            )
        listed = list(self.client.jobs(self.project, state="completed"))
        self.assertEqual(len(listed), 20)

    def test_a_message_is_one_job(self) -> None:
        self.register()
        first = self.client.enqueue(self.type, project=self.project, message_id="m-1")
        second = self.client.enqueue(self.type, project=self.project, message_id="m-1")
        self.assertEqual((second.id, second.dedupe), (first.id, "same_message"))
        self.client.cancel(first.id)

    def test_what_is_too_large_is_refused_and_not_repeated(self) -> None:
        with self.assertRaises(Refused) as caught:
            self.client.enqueue("echo", {"message": "x" * (9 << 20)}, project=self.project)
        self.assertEqual(caught.exception.code, "body_too_large")

    def test_transient_failures_are_tried_again(self) -> None:
        self.register()

        def handler(job: Job) -> dict[str, int]:
            if job.failures < 2:
                raise Fail("smtp_refused", "the server said 450", "transient")
            return {"attempt": job.attempt}

        self.serve(handler)
        ended = self.ended(self.enqueue())
        self.assertEqual((ended.state, ended.result), ("completed", {"attempt": 3}))

    def test_deterministic_failures_and_crashes_are_final(self) -> None:
        self.register()

        def handler(job: Job) -> None:
            if job.payload["crash"]:
                raise KeyError("to")
            raise Fail("no_such_address", "nobody lives there", "deterministic")

        self.serve(handler)
        failed, crashed = (
            self.ended(self.enqueue(crash=False)),
            self.ended(self.enqueue(crash=True)),
        )
        self.assertEqual((failed.state, crashed.state), ("failed", "failed"))
        self.assertEqual(failed.error, "no_such_address: nobody lives there")
        self.assertEqual(crashed.error, "crash: KeyError: 'to'")

    def test_parked_jobs_go_on_when_woken_or_when_it_is_time(self) -> None:
        self.register()
        parked = threading.Event()

        def handler(job: Job) -> Any:
            if job.payload.get("briefly"):
                return {"attempt": job.attempt} if parked.is_set() else self.parks(parked, 100)
            return {"wakes": job.wakes} if job.wakes else self.parks(parked, None)

        self.serve(handler)
        woken = self.enqueue()
        self.wait(parked)
        # Whether it has parked by now or is about to: the wake-up is not lost.
        self.client.wake(woken.id)
        self.assertEqual(self.ended(woken).result, {"wakes": 1})
        parked.clear()
        self.assertEqual(self.ended(self.enqueue(briefly=True)).result, {"attempt": 1})

    def parks(self, parked: threading.Event, for_ms: Any) -> Park:
        parked.set()
        return Park(for_ms)

    def test_a_question_comes_back_with_its_answer(self) -> None:
        self.register()
        asked = threading.Event()

        def handler(job: Job) -> Any:
            if job.answer is not None:
                return {"answer": job.answer}
            asked.set()
            return Ask({"prompt": "Send it?", "options": [{"name": "send"}, {"name": "stop"}]})

        self.serve(handler)
        job = self.enqueue()
        self.wait(asked)
        decision = self.decision(job)
        self.client.resolve(decision["id"], "send", comment="go on")
        ended = self.ended(job)
        assert ended.result is not None
        self.assertEqual(ended.state, "completed")
        self.assertEqual(ended.result["answer"]["option"], "send")

    def decision(self, job: JobView) -> dict[str, Any]:
        """The job's open decision; opened a moment after its handler has said so."""
        pause = threading.Event()
        for _ in range(300):
            for decision in self.client.decisions(subject=job.id, state="open"):
                return decision
            pause.wait(0.1)
        raise AssertionError("no decision was opened")

    def test_a_job_that_can_be_interrupted_is_told_to_stop(self) -> None:
        self.register(cancel={"strategy": "interrupt_turn", "grace": "5s"}, lease="3s")
        begun, told = threading.Event(), threading.Event()
        jobs: list[Job] = []

        def handler(job: Job) -> None:
            jobs.append(job)
            begun.set()
            if job.cancelled.wait(WAIT_S):
                told.set()
            raise Release()

        self.serve(handler)
        job = self.enqueue()
        self.wait(begun)
        self.client.cancel(job.id, "enough")
        self.wait(told)
        self.assertFalse(jobs[0].lost)
        ended = self.ended(job)
        self.assertEqual((ended.state, ended.fields["cancelReason"]), ("cancelled", "enough"))
        self.assertIsNone(ended.error)

    def test_any_other_job_that_is_cancelled_is_lost(self) -> None:
        self.register(lease="3s")
        begun, told = threading.Event(), threading.Event()
        jobs: list[Job] = []

        def handler(job: Job) -> None:
            jobs.append(job)
            begun.set()
            if job.cancelled.wait(WAIT_S):
                told.set()

        self.serve(handler)
        job = self.enqueue()
        self.wait(begun)
        self.assertEqual(self.client.cancel(job.id).state, "cancelled")
        self.wait(told)
        self.assertTrue(jobs[0].lost)

    def test_progress_is_shown(self) -> None:
        self.register()
        told, end = threading.Event(), threading.Event()

        def handler(job: Job) -> None:
            job.progress(40, "4 of 10 pages", {"threadId": "t1"})
            told.set()
            end.wait(WAIT_S)

        self.serve(handler)
        job = self.enqueue()
        self.wait(told)
        shown = self.client.get(job.id)
        end.set()
        self.assertEqual(shown.progress, {"percent": 40, "note": "4 of 10 pages"})
        self.assertEqual(shown.fields["runningContext"]["threadId"], "t1")
        self.assertTrue(self.ended(job).completed)

    def test_beats_keep_a_job_longer_than_its_lease(self) -> None:
        self.register(lease="1s")
        self.serve(lambda job: {"cancelled": job.cancelled.wait(2.5)})
        self.assertEqual(self.ended(self.enqueue()).result, {"cancelled": False})

    def test_a_worker_that_stops_gives_back_what_it_does_not_finish(self) -> None:
        self.register()
        begun = threading.Event()

        def first(job: Job) -> None:
            begun.set()
            job.cancelled.wait(WAIT_S)
            job.stop_if_cancelled()

        worker = self.serve(first)
        job = self.enqueue()
        self.wait(begun)
        worker.stop(0)
        self.serve(lambda job: {"failures": job.failures})
        self.assertEqual(self.ended(job).result, {"failures": 0})

    def test_a_type_that_nobody_registered_is_refused(self) -> None:
        worker = Worker(name="sdk-test")
        worker.job(self.type)(lambda _job: None)
        with self.assertRaises(Refused) as caught:
            worker.run(grace=0)
        self.assertEqual(caught.exception.code, "unknown_job_type")


if __name__ == "__main__":
    unittest.main()
