"""The client on the wire."""

from __future__ import annotations

import os
import unittest
from datetime import datetime, timedelta, timezone
from typing import Callable
from unittest import mock

from baton import Client, NewJob, Refused, Unreachable, Worker

from .fake import LOST, Answer, FakeServer, Request, problem, script

JOB = {"id": "job_1", "state": "queued", "dedupe": "enqueued"}


class Case(unittest.TestCase):
    def server(self, answer: Callable[[Request], Answer]) -> FakeServer:
        server = FakeServer(answer)
        self.addCleanup(server.close)
        return server

    def client(self, server: FakeServer, patience_s: float = 30.0) -> Client:
        self.pauses: list[float] = []
        client = Client(server.url, "bk_secret", patience_s=patience_s, sleep=self.pauses.append)
        self.addCleanup(client.close)
        return client


class Enqueuing(Case):
    def test_all_options_are_sent_as_the_api_has_them(self) -> None:
        server = self.server(script([Answer(201, JOB)]))
        at = datetime(2027, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
        job = self.client(server).enqueue(
            "mail.send", {"to": "ada"}, project="shop", priority="interactive", not_before=at,
            deadline=at, message_id="m-1", source_session_id="chat-1",
        )  # fmt: skip
        self.assertEqual((job.id, job.state, job.dedupe), ("job_1", "queued", "enqueued"))
        (request,) = server.requests
        self.assertEqual((request.method, request.path), ("POST", "/api/v1/jobs"))
        self.assertEqual(request.headers["Authorization"], "Bearer bk_secret")
        self.assertEqual(request.headers["Content-Type"], "application/json")
        self.assertEqual(
            request.body,
            {
                "type": "mail.send",
                "projectId": "shop",
                "payload": {"to": "ada"},
                "priority": "interactive",
                "notBefore": "2027-01-01T10:00:00Z",
                "deadline": "2027-01-01T10:00:00Z",
                "messageId": "m-1",
                "sourceSessionId": "chat-1",
            },
        )

    def test_a_lost_answer_is_asked_again_with_the_same_key_and_body(self) -> None:
        server = self.server(script([LOST, problem(503, "outcome_unknown"), Answer(200, JOB)]))
        self.client(server).enqueue("echo", project="demo", delay=60)
        keys = [request.headers["Idempotency-Key"] for request in server.requests]
        self.assertEqual(len(keys), 3)
        self.assertEqual(len(set(keys)), 1)
        self.assertEqual(server.requests[0].body, server.requests[2].body)

    def test_every_call_has_a_key_of_its_own(self) -> None:
        server = self.server(script([Answer(201, JOB)]))
        client = self.client(server)
        client.enqueue("echo", project="demo")
        client.enqueue("echo", project="demo")
        first, second = (request.headers["Idempotency-Key"] for request in server.requests)
        self.assertNotEqual(first, second)

    def test_a_batch_answers_in_order(self) -> None:
        jobs = [{"jobId": f"job_{n}", "dedupe": "enqueued", "state": "queued"} for n in (1, 2)]
        server = self.server(script([Answer(201, {"jobs": jobs, "enqueued": 2})]))
        got = self.client(server).batch([NewJob("echo", {"n": n}, "demo") for n in (1, 2)])
        self.assertEqual([job.id for job in got], ["job_1", "job_2"])
        self.assertEqual(server.requests[0].body["jobs"][1]["payload"], {"n": 2})

    def test_waiting_looks_until_the_job_has_ended(self) -> None:
        done = {"id": "job_1", "state": "completed", "result": {"n": 1}}
        running = {"id": "job_1", "state": "executing"}
        server = self.server(script([Answer(201, JOB), Answer(200, running), Answer(200, done)]))
        job = self.client(server).enqueue("echo", project="demo", wait=60)
        self.assertTrue(job.completed)
        self.assertEqual(job.result, {"n": 1})

    def test_waiting_ends_with_a_timeout(self) -> None:
        server = self.server(script([Answer(200, {"id": "job_1", "state": "executing"})]))
        with self.assertRaises(TimeoutError):
            self.client(server).wait("job_1", timeout=0)

    def test_times_without_a_zone_are_refused_here(self) -> None:
        with self.assertRaises(ValueError):
            NewJob("echo", project="demo", deadline=datetime(2027, 1, 1)).said()


class Refusals(Case):
    def test_a_problem_becomes_an_error_with_its_parts(self) -> None:
        answer = problem(409, "invalid_transition", hint="look at it", allowed=["x"])
        server = self.server(script([answer]))
        with self.assertRaises(Refused) as caught:
            self.client(server).cancel("job_1", "enough")
        error = caught.exception
        self.assertEqual((error.status, error.code), (409, "invalid_transition"))
        self.assertEqual((error.detail, error.hint), ("no: invalid_transition", "look at it"))
        self.assertEqual(error.members["allowed"], ["x"])
        self.assertEqual(len(server.requests), 1)
        self.assertEqual(server.requests[0].body, {"reason": "enough"})

    def test_what_is_no_problem_is_told_as_such(self) -> None:
        server = self.server(script([Answer(400, ["what"])]))
        with self.assertRaises(Refused) as caught:
            self.client(server).get("job_1")
        self.assertEqual(
            (caught.exception.status, caught.exception.code), (400, "unexpected_answer")
        )

    def test_retry_after_is_waited_for(self) -> None:
        server = self.server(
            script([problem(429, "rate_limited", retry_after=7), Answer(200, JOB)])
        )
        self.client(server).get("job_1")
        (pause,) = self.pauses
        self.assertGreaterEqual(pause, 7.0)
        self.assertLess(pause, 8.5)

    def test_busy_answers_are_repeated_with_growing_pauses(self) -> None:
        busy = [problem(status, "busy") for status in (408, 429, 502, 503, 504)]
        server = self.server(script([*busy, Answer(200, JOB)]))
        self.client(server).get("job_1")
        self.assertEqual(len(self.pauses), 5)
        for n, pause in enumerate(self.pauses):
            self.assertTrue(0.1 * 2**n <= pause <= 0.2 * 2**n, self.pauses)

    def test_repeating_is_bounded(self) -> None:
        server = self.server(script([problem(503, "overloaded", retry_after=20)]))
        with self.assertRaises(Refused):
            self.client(server, patience_s=10).get("job_1")
        self.assertEqual(len(server.requests), 1)

    def test_what_cannot_pass_is_not_repeated(self) -> None:
        for answer in (
            problem(500, "internal"),
            problem(503, "queue_disabled"),
            problem(429, "queue_full", limit=10),
        ):
            with self.subTest(answer.body["code"]):
                server = self.server(script([answer]))
                with self.assertRaises(Refused):
                    self.client(server).get("job_1")
                self.assertEqual(len(server.requests), 1)

    def test_a_request_in_flight_is_asked_after(self) -> None:
        answers = [problem(409, "idempotency_in_flight", retry_after=1), Answer(200, JOB)]
        server = self.server(script(answers))
        self.client(server).wake("job_1")
        self.assertEqual(len(server.requests), 2)

    def test_nobody_there_is_unreachable(self) -> None:
        server = FakeServer(script([LOST]))
        server.close()
        with self.assertRaises(Unreachable):
            self.client(server, patience_s=0).get("job_1")


class Elsewhere(Case):
    def test_lists_are_read_page_by_page(self) -> None:
        pages = [
            Answer(200, {"jobTypes": [{"type": "a"}], "nextCursor": "c1"}),
            Answer(200, {"jobTypes": [{"type": "b"}], "nextCursor": None}),
        ]
        server = self.server(script(pages))
        self.assertEqual([t["type"] for t in self.client(server).job_types()], ["a", "b"])
        self.assertEqual(server.requests[1].path, "/api/v1/job-types?cursor=c1")

    def test_job_types_are_put_without_a_key_because_putting_twice_is_putting_once(self) -> None:
        server = self.server(script([LOST, Answer(200, {"type": "mail.send", "version": 2})]))
        answer = self.client(server).put_job_type("mail.send", {"maxAttempts": 3})
        self.assertEqual(answer["version"], 2)
        request = server.requests[1]
        self.assertEqual((request.method, request.path), ("PUT", "/api/v1/job-types/mail.send"))
        self.assertIsNone(request.headers["Idempotency-Key"])

    def test_names_in_paths_are_quoted(self) -> None:
        server = self.server(script([problem(404, "job_not_found")]))
        with self.assertRaises(Refused):
            self.client(server).get("../x?y")
        self.assertEqual(server.requests[0].path, "/api/v1/jobs/..%2Fx%3Fy")

    def test_connections_are_used_again(self) -> None:
        server = self.server(script([Answer(200, JOB)]))
        client = self.client(server)
        client.get("job_1")
        client.get("job_1")
        ports = {request.sock.getpeername()[1] for request in server.requests}
        self.assertEqual(len(ports), 1)


class Keys(unittest.TestCase):
    def test_url_and_key_come_from_the_environment(self) -> None:
        told = {"BATON_URL": "https://baton.example:1/base/", "BATON_KEY": "bk_env\n"}
        with mock.patch.dict(os.environ, told):
            self.assertIn("https://baton.example:1/base", repr(Client()))

    def test_the_command_lines_setting_does_too(self) -> None:
        told = {"BATON_URL": "", "BATON_SERVER": "http://here:1", "BATON_KEY": "bk_env"}
        with mock.patch.dict(os.environ, told):
            self.assertIn("http://here:1", repr(Client()))
            with mock.patch.dict(os.environ, {"BATON_URL": "http://there:2"}):
                self.assertIn("http://there:2", repr(Client()))

    def test_a_key_is_never_shown(self) -> None:
        for made in (Client("http://h", "bk_secret"), Worker("http://h", "bk_secret")):
            self.assertNotIn("bk_secret", repr(made))
        with self.assertRaises(ValueError) as caught:
            Client("http://h", "bk_secret\nX: y")
        self.assertNotIn("bk_secret", str(caught.exception))

    def test_without_a_key_nothing_is_made(self) -> None:
        with mock.patch.dict(os.environ, clear=True), self.assertRaises(ValueError):
            Client("http://h")


if __name__ == "__main__":
    unittest.main()
