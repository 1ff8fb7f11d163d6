"""Python child processes that can import the same modules as this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence

from torture.scenario import Outcome, ScenarioSkippedError

DEADLINE_SECONDS = 300


def command(module: str, *arguments: object) -> list[str]:
    """Return the command line that runs a module of this package."""
    return [sys.executable, "-m", f"torture.{module}", *map(str, arguments)]


def environment(**more: str) -> dict[str, str]:
    """Return the environment of this process, with its module search path."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **more}


def run(
    module: str, *arguments: object, through: Sequence[str] = (), env: dict[str, str] | None = None
) -> Outcome:
    """Run a module, through the command ``through``, and return the outcome that it prints.

    The module prints it with :func:`print_outcome`.
    """
    done = subprocess.run(
        [*through, *command(module, *arguments)],
        env=env or environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no output on stderr"])[-1]
        return Outcome(tried=1, failures=(f"the child ended with {done.returncode}: {last}",))
    printed = json.loads(done.stdout)
    if "skipped" in printed:
        raise ScenarioSkippedError(printed["skipped"])
    failures = tuple(printed["failures"])
    return Outcome(tried=printed["tried"], failures=failures, note=printed["note"])


def print_outcome(outcome: Outcome) -> None:
    """Print the outcome as JSON for :func:`run`, as the only output of the module."""
    printed = {"tried": outcome.tried, "failures": outcome.failures, "note": outcome.note}
    sys.stdout.write(json.dumps(printed) + "\n")
