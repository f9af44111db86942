"""The worker without this package, `examples/worker.py` of the repository, on the same wire."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import unittest
from pathlib import Path

from .fake import LOST, PATIENCE_S, FakeBaton, problem

PROGRAM = Path(__file__).resolve().parents[3] / "examples" / "worker.py"


@unittest.skipUnless(PROGRAM.exists() and sys.platform != "win32", "only in the repository")
class PlainWorker(unittest.TestCase):
    def test_it_is_short(self) -> None:
        self.assertLess(len(PROGRAM.read_text().splitlines()), 60)

    def test_it_works_beats_repeats_and_stops(self) -> None:
        baton = FakeBaton(lease_ms=3_000)
        self.addCleanup(baton.close)
        baton.instead["lease"] = [problem(503, "store_unavailable")]
        baton.instead["complete"] = [LOST, *[problem(503, "store_unavailable")] * 2]
        leases = [baton.give("shout", {"text": "hi"}, lease=f"l{n}") for n in range(5)]
        broken = baton.give("shout", lease="broken")
        baton.lost.add(baton.give("shout", {"text": "too late"}, lease="late"))
        after = baton.give("shout", {"text": "after"}, lease="after")
        env = {**os.environ, "BATON_URL": "", "BATON_SERVER": baton.url, "BATON_KEY": "bk_worker"}
        process = subprocess.Popen([sys.executable, str(PROGRAM)], env=env)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for lease in leases:
            self.assertEqual(baton.outcome(lease), {"complete": {"result": {"text": "HI"}}})
        told = {"code": "crash", "message": "KeyError: 'text'"}
        self.assertEqual(baton.outcome(broken), {"fail": told})
        self.assertEqual(baton.outcome(after), {"complete": {"result": {"text": "AFTER"}}})
        self.assertIn("l0", {lease for beat in baton.beats for lease in beat})
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(PATIENCE_S), 0)


if __name__ == "__main__":
    unittest.main()
