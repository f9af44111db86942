"""What the workers of `test_kill` do, and what they leave behind of it.

A job's text names a file in the directory, which says who has begun and who has done it. A text
that begins with `held` is not done before there is a file of that name with `.go` behind it."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Callable

LOOK_S = 0.02


def never() -> bool:
    return False


def shout(text: str, stop: Callable[[], bool] = never) -> str | None:
    """Nothing if it was told to stop."""
    where, who = Path(sys.argv[1]), sys.argv[2]

    def note(what: str) -> None:
        with (where / text).open("a") as file:
            file.write(f"{what} {who}\n")

    note("begun")
    while text.startswith("held") and not (where / f"{text}.go").exists():
        if stop():
            note("stopped")
            return None
        time.sleep(LOOK_S)
    note("done")
    return text.upper()
