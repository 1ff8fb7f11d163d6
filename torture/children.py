"""Python processes that can import what this one can."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence

from torture.scenario import CannotBeTriedError, Outcome

DEADLINE_SECONDS = 300


def command(module: str, *arguments: object) -> list[str]:
    """The command line of a module of this package."""
    return [sys.executable, "-m", f"torture.{module}", *map(str, arguments)]


def environment(**more: str) -> dict[str, str]:
    """Ours, with our way of finding modules."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **more}


def run(
    module: str, *arguments: object, through: Sequence[str] = (), env: dict[str, str] | None = None
) -> Outcome:
    """The outcome that a module prints as JSON by :func:`tell`, run by way of ``through``."""
    done = subprocess.run(
        [*through, *command(module, *arguments)],
        env=env or environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return Outcome(tried=1, lost=(f"the child ended with {done.returncode}: {last}",))
    told = json.loads(done.stdout)
    if "cannot" in told:
        raise CannotBeTriedError(told["cannot"])
    return Outcome(tried=told["tried"], lost=tuple(told["lost"]), note=told["note"])


def tell(outcome: Outcome) -> None:
    """The last word of such a module."""
    told = {"tried": outcome.tried, "lost": outcome.lost, "note": outcome.note}
    sys.stdout.write(json.dumps(told) + "\n")
