"""The worker without this package, `examples/worker.py`, as it is, but with texts that take their
time: `shout_plain.py DIRECTORY NAME GRACE`. It has no grace: what is in its hand ends."""

from __future__ import annotations

import functools
import json
import runpy
from pathlib import Path
from typing import Any

from tests.shouting import shout

PROGRAM = Path(__file__).resolve().parents[3] / "examples" / "worker.py"


class Slow(str):
    def upper(self) -> str:
        return str(shout(str(self)))


def slowed(told: dict[str, Any]) -> dict[str, Any]:
    return {**told, "text": Slow(told["text"])} if "text" in told else told


json.load = functools.partial(json.load, object_hook=slowed)
runpy.run_path(str(PROGRAM), run_name="__main__")
