"""The worker on the wire: what handlers say, how it is settled, and what beats tell."""

from __future__ import annotations

import logging
import threading
import unittest
from typing import Any

from baton import Ask, Fail, Job, Park, Refused, Release, Worker

from .fake import LOST, PATIENCE_S, Answer, FakeBaton, Request, problem


class Case(unittest.TestCase):
    def setUp(self) -> None:
        logging.getLogger("baton").setLevel(logging.CRITICAL)
        self.addCleanup(logging.getLogger("baton").setLevel, logging.NOTSET)

    def begin(self, concurrency: int = 2, lease_ms: int = 30_000) -> tuple[FakeBaton, Worker]:
        baton = FakeBaton(lease_ms)
        self.addCleanup(baton.close)
        worker = Worker(baton.url, "bk_worker", name="w-1", concurrency=concurrency)
        self.addCleanup(worker.stop, 0)
        return baton, worker

    def wait(self, event: threading.Event) -> None:
        self.assertTrue(event.wait(PATIENCE_S), "it did not happen")


class Handling(Case):
    def check(self, said: Any, outcome: dict[str, Any], **job: Any) -> None:
        """A handler that does this comes to that."""
        baton, worker = self.begin()

        @worker.job("t")
        def handler(_job: Job) -> Any:
            if isinstance(said, BaseException):
                raise said
            return said() if callable(said) else said

        lease = baton.give("t", **job)
        worker.start()
        self.assertEqual(baton.outcome(lease), outcome)
        worker.stop(0)

    def test_a_dict_completes(self) -> None:
        self.check({"n": 1}, {"complete": {"result": {"n": 1}}})

    def test_nothing_completes_without_a_result(self) -> None:
        self.check(None, {"complete": {}})

    def test_a_failure_is_told_with_its_class(self) -> None:
        told = {"code": "smtp_refused", "message": "450", "class": "transient"}
        self.check(Fail("smtp_refused", "450", "transient"), {"fail": told})

    def test_a_tool_can_say_that_it_has_done_nothing(self) -> None:
        told = {"code": "closed", "message": "sundays", "acted": False}
        self.check(Fail("closed", "sundays", acted=False), {"fail": told})

    def test_a_crash_is_a_failure_without_a_traceback(self) -> None:
        told = {"code": "crash", "message": "KeyError: 'to'"}
        self.check(KeyError("to"), {"fail": told})

    def test_an_exit_in_a_handler_ends_the_job_and_not_the_worker(self) -> None:
        self.check(SystemExit(3), {"fail": {"code": "crash", "message": "SystemExit: 3"}})

    def test_parking_says_which_wake_ups_were_seen(self) -> None:
        self.check(lambda: Park(for_ms=500), {"park": {"forMs": 500, "seen": 3}}, wakes=3)

    def test_asking_takes_a_text_or_a_question(self) -> None:
        self.check(lambda: Ask("Go on?"), {"ask": {"question": {"prompt": "Go on?"}}})

    def test_releasing_can_be_raised(self) -> None:
        self.check(Release(), {"release": {}})

    def test_what_is_no_object_fails(self) -> None:
        told = {"code": "invalid_result", "message": "a result is a dict, and this is int"}
        self.check(3, {"fail": told})

    def test_what_is_no_json_fails(self) -> None:
        told = {
            "code": "invalid_result",
            "message": "this is not JSON: Object of type set is not JSON serializable",
        }
        self.check({"n": {1}}, {"fail": told})

    def test_a_result_that_is_too_large_fails(self) -> None:
        told = {"code": "result_too_large", "message": "the result has more than 262144 bytes"}
        self.check({"n": "x" * 262_144}, {"fail": told})

    def test_coroutines_are_awaited(self) -> None:
        async def said() -> dict[str, int]:
            return {"n": 2}

        self.check(said, {"complete": {"result": {"n": 2}}})

    def test_a_job_shows_what_came_with_its_lease(self) -> None:
        baton, worker = self.begin()
        seen: list[Job] = []
        worker.job("t")(lambda job: seen.append(job))
        baton.give("t", {"to": "ada"}, attempt=2, answer={"option": "send"})
        worker.start()
        baton.wait_for(lambda: baton.outcomes)
        (job,) = seen
        self.assertEqual((job.type, job.project, job.attempt), ("t", "demo", 2))
        self.assertEqual((job.payload, job.answer), ({"to": "ada"}, {"option": "send"}))
        (first, *_) = baton.asked("/lease")
        asked = {"types": ["t"], "waitMs": 20_000, "worker": "w-1", "max": 2}
        self.assertEqual(first.body, asked)


class Slots(Case):
    def test_no_more_is_leased_than_there_is_room_for(self) -> None:
        baton, worker = self.begin(concurrency=2)
        go_on, both = threading.Event(), threading.Barrier(3)

        @worker.job("t")
        def handler(_job: Job) -> None:
            both.wait(PATIENCE_S)
            go_on.wait(PATIENCE_S)

        leases = [baton.give("t", lease=f"l{n}") for n in range(3)]
        worker.start()
        both.wait(PATIENCE_S)
        self.assertEqual(len(baton.waiting), 1)
        both.reset()
        go_on.set()
        threading.Thread(target=both.abort).start()
        for lease in leases:
            baton.outcome(lease)

    def test_the_end_of_one_job_is_settled_with_the_lease_of_the_next(self) -> None:
        baton, worker = self.begin(concurrency=1)
        worker.job("t")(lambda job: {"id": job.id})
        first, second = baton.give("t", lease="l1"), baton.give("t", lease="l2")
        worker.start()
        baton.outcome(first)
        baton.outcome(second)
        self.assertEqual(baton.asked("/settle"), [])
        self.assertEqual(baton.asked("/lease")[1].body["settle"][0]["lease"], "l1")

    def test_an_end_is_settled_at_once_while_a_lease_request_waits(self) -> None:
        baton, worker = self.begin(concurrency=2)
        end = threading.Event()

        @worker.job("t")
        def handler(_job: Job) -> None:
            end.wait(PATIENCE_S)

        lease = baton.give("t")
        worker.start()
        baton.wait_for(lambda: len(baton.requests) >= 2)
        end.set()
        baton.outcome(lease)
        self.assertEqual(len(baton.asked("/settle")), 1)


class Repeating(Case):
    def test_a_settling_whose_answer_got_lost_is_said_again(self) -> None:
        baton, worker = self.begin(concurrency=2)
        baton.done_anyway = True
        baton.instead["settle"] = [LOST, problem(500, "internal"), problem(429, "rate_limited")]
        end = threading.Event()
        worker.job("t")(lambda _job: {"told": end.wait(PATIENCE_S)})
        lease = baton.give("t")
        worker.start()
        baton.wait_for(lambda: len(baton.requests) >= 2)
        end.set()
        baton.wait_for(lambda: len(baton.outcomes.get(lease, [])) == 4)
        first, *others = baton.outcomes[lease]
        self.assertEqual(others, [first] * 3)
        worker.stop(PATIENCE_S)
        self.assertEqual(len(baton.outcomes[lease]), 4)

    def test_an_outcome_that_came_too_late_is_dropped(self) -> None:
        baton, worker = self.begin(concurrency=1)
        begun = threading.Event()
        end = threading.Event()

        @worker.job("t")
        def handler(job: Job) -> None:
            if job.payload.get("late"):
                begun.set()
                end.wait(PATIENCE_S)

        late = baton.give("t", {"late": True}, lease="l-late")
        worker.start()
        self.wait(begun)
        baton.lost.add(late)
        end.set()
        other = baton.give("t", lease="l-other")
        self.assertEqual(baton.outcome(other), {"complete": {}})
        worker.stop(PATIENCE_S)
        self.assertNotIn(late, baton.outcomes)

    def test_an_outcome_that_is_refused_becomes_a_failure(self) -> None:
        baton, worker = self.begin(concurrency=1)
        begun = threading.Event()
        end = threading.Event()
        self.addCleanup(end.set)

        @worker.job("t")
        def handler(_job: Job) -> Ask:
            begun.set()
            end.wait(PATIENCE_S)
            return Ask({"options": []})

        lease = baton.give("t")
        worker.start()
        self.wait(begun)
        # It goes along with a lease request first, and that one is refused because of it.
        baton.instead["lease"] = [problem(422, "invalid_question")]
        baton.instead["settle"] = [problem(422, "invalid_question")]
        end.set()
        said = baton.outcome(lease)
        self.assertEqual(said["fail"]["code"], "outcome_refused")
        self.assertIn("invalid_question", said["fail"]["message"])

    def test_an_outcome_that_the_store_could_not_take_is_said_again(self) -> None:
        baton, worker = self.begin(concurrency=1)
        worker.job("t")(lambda _job: {"n": 1})
        lease = baton.give("t")
        baton.unfit[lease] = "store_unavailable"
        worker.start()
        self.assertEqual(baton.outcome(lease), {"complete": {"result": {"n": 1}}})

    def test_outcomes_that_go_along_with_a_lease_are_answered_at_once(self) -> None:
        baton, worker = self.begin(concurrency=1)
        worker.job("t")(lambda _job: None)
        lease = baton.give("t")
        worker.start()
        baton.outcome(lease)
        with_outcomes = [ask.body for ask in baton.asked("/lease") if "settle" in ask.body]
        self.assertEqual([body["waitMs"] for body in with_outcomes], [0] * len(with_outcomes))

    def test_what_is_to_be_said_again_does_not_wait_for_a_free_slot(self) -> None:
        baton, worker = self.begin(concurrency=1)
        end = threading.Event()
        self.addCleanup(end.set)

        @worker.job("t")
        def handler(job: Job) -> Any:
            return Ask({"options": []}) if job.payload else {"told": end.wait(PATIENCE_S)}

        first = baton.give("t", {"asks": True}, lease="l-first")
        baton.unfit[first] = "invalid_question"
        baton.give("t", lease="l-second")
        worker.start()
        message = "the outcome was refused: invalid_question: not now"
        told = {"code": "outcome_refused", "message": message}
        self.assertEqual(baton.outcome(first), {"fail": told})
        self.assertFalse(end.is_set())

    def test_leasing_goes_on_after_trouble(self) -> None:
        baton, worker = self.begin()
        baton.instead["lease"] = [LOST, problem(503, "store_unavailable"), problem(429, "x")]
        worker.job("t")(lambda _job: None)
        lease = baton.give("t")
        worker.start()
        self.assertEqual(baton.outcome(lease), {"complete": {}})

    def test_a_worker_that_gets_no_jobs_at_all_says_why(self) -> None:
        baton, worker = self.begin()
        baton.instead["lease"] = [problem(422, "unknown_job_type")]
        worker.job("t")(lambda _job: None)
        with self.assertRaises(Refused) as caught:
            worker.run(grace=0)
        self.assertEqual(caught.exception.code, "unknown_job_type")


class Beating(Case):
    def test_one_beat_is_for_all_leases(self) -> None:
        baton, worker = self.begin(concurrency=2, lease_ms=900)
        end = threading.Event()
        worker.job("t")(lambda _job: {"told": end.wait(PATIENCE_S)})
        leases = [baton.give("t", lease=f"l{n}") for n in range(2)]
        worker.start()
        baton.wait_for(lambda: [b for b in baton.beats if sorted(b) == leases][2:])
        end.set()
        for lease in leases:
            self.assertEqual(baton.outcome(lease), {"complete": {"result": {"told": True}}})

    def stopped_job(self, lease_ms: int = 900) -> tuple[FakeBaton, Worker, str, list[Job], Any]:
        """A job whose handler waits until it shall stop."""
        baton, worker = self.begin(concurrency=1, lease_ms=lease_ms)
        jobs: list[Job] = []
        stopped, begun = threading.Event(), threading.Event()

        @worker.job("t")
        def handler(job: Job) -> None:
            jobs.append(job)
            begun.set()
            if job.cancelled.wait(PATIENCE_S):
                stopped.set()
            job.stop_if_cancelled()

        lease = baton.give("t")
        worker.start()
        self.wait(begun)
        return baton, worker, lease, jobs, stopped

    def test_a_lost_job_is_told_to_stop_and_nothing_is_said_about_it(self) -> None:
        baton, worker, lease, jobs, stopped = self.stopped_job()
        with baton.changed:
            baton.lost.add(lease)
        self.wait(stopped)
        self.assertTrue(jobs[0].lost)
        worker.stop(PATIENCE_S)
        said = [r for r in baton.requests if "settle" in r.path or "settle" in (r.body or {})]
        self.assertEqual(said, [])

    def test_a_cancelled_job_is_told_to_stop_and_settles(self) -> None:
        baton, _, lease, jobs, stopped = self.stopped_job()
        with baton.changed:
            baton.cancelled.add(lease)
        self.wait(stopped)
        self.assertFalse(jobs[0].lost)
        self.assertEqual(baton.outcome(lease), {"release": {}})

    def test_jobs_are_presumed_lost_if_no_beat_gets_through(self) -> None:
        baton, _, _, jobs, stopped = self.stopped_job()
        with baton.changed:
            baton.instead["heartbeat"] = [problem(503, "store_unavailable")] * 1000
        self.wait(stopped)
        self.assertTrue(jobs[0].lost)

    def test_one_missed_beat_does_not_matter(self) -> None:
        baton, _, lease, jobs, _ = self.stopped_job(lease_ms=1500)
        with baton.changed:
            baton.instead["heartbeat"] = [LOST]
            beats = len(baton.beats)
        baton.wait_for(lambda: len(baton.beats) >= beats + 2)
        self.assertFalse(jobs[0].lost)
        with baton.changed:
            baton.cancelled.add(lease)

    def test_what_was_settled_is_not_taken_for_lost(self) -> None:
        baton, worker = self.begin(concurrency=1, lease_ms=900)
        jobs: list[Job] = []
        end = threading.Event()

        @worker.job("t")
        def handler(job: Job) -> None:
            jobs.append(job)
            end.wait(PATIENCE_S)

        lease = baton.give("t")
        right = baton._right

        def slow(name: str, request: Request) -> Answer:
            answer = right(name, request)
            if request.body.get("settle"):
                # A beat that comes before the answer calls it lost.
                beats = len(baton.beats)
                baton.wait_for(lambda: len(baton.beats) > beats)
            return answer

        baton._right = slow  # type: ignore[method-assign]
        worker.start()
        baton.wait_for(lambda: baton.beats)
        end.set()
        baton.outcome(lease)
        # It asks for more only when it was answered.
        baton.wait_for(lambda: len(baton.asked("/lease")) == 3)
        self.assertEqual(baton.beats[-1], [lease])
        worker.stop(PATIENCE_S)
        self.assertFalse(jobs[0].lost)


class Progress(Case):
    def told(self, percent: float = 40, **job: Any) -> tuple[FakeBaton, Job]:
        baton, worker = self.begin(concurrency=1)
        jobs: list[Job] = []
        told = threading.Event()

        @worker.job("t")
        def handler(job: Job) -> None:
            jobs.append(job)
            job.progress(percent, "4 of 10", {"threadId": "t1"})
            told.set()

        lease = baton.give("t", lease="l1")
        if job.get("cancelled"):
            baton.cancelled.add(lease)
        if job.get("lost"):
            baton.lost.add(lease)
        if job.get("instead"):
            baton.instead["progress"] = job["instead"]
        worker.start()
        self.wait(told)
        return baton, jobs[0]

    def test_it_is_sent_with_all_its_parts(self) -> None:
        baton, job = self.told()
        body = {"lease": "l1", "percent": 40, "note": "4 of 10", "context": {"threadId": "t1"}}
        self.assertEqual(baton.asked("/progress")[0].body, body)
        self.assertFalse(job.cancelled.is_set())

    def test_it_is_brought_into_its_bounds(self) -> None:
        for percent, told in [(39.6, 40), (120, 100), (-1, 0)]:
            baton, _ = self.told(percent=percent)
            self.assertEqual(baton.asked("/progress")[0].body["percent"], told)

    def test_it_tells_of_cancellation(self) -> None:
        _, job = self.told(cancelled=True)
        self.assertTrue(job.cancelled.is_set())
        self.assertFalse(job.lost)

    def test_it_tells_of_loss(self) -> None:
        _, job = self.told(lost=True)
        self.assertTrue(job.cancelled.is_set())
        self.assertTrue(job.lost)

    def test_trouble_on_the_way_does_not_disturb_the_job(self) -> None:
        baton, job = self.told(instead=[Answer(500, {}), LOST])
        self.assertEqual(baton.outcome("l1"), {"complete": {}})
        self.assertFalse(job.cancelled.is_set())


if __name__ == "__main__":
    unittest.main()
