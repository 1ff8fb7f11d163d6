"""The same faults for a program without an event loop, such as ``rye run``."""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from processes import lineage, wait_until
from rye_command import COMMAND, environment, usual_signals
from rye_project import Project

from torture import children
from torture.helper_death import BROKEN_OFF
from torture.leftovers import Baseline, Mark
from torture.scenario import Outcome

SEED = 20261116
PATIENCE_SECONDS = 30
INTERRUPTED = 130
VICTIMS = ("caller", "keeper", "guardian", "worker")
# Nothing but the primitive is loaded, so the moments are those of the call and not of the start.
CALLER = f"""
import sys
from lilux.primitives.subprocess.blocking import BlockingSubprocess
from lilux.primitives.errors import HelperError
print("begun", flush=True)
try:
    with BlockingSubprocess() as blocking:
        config = {{"command": "sh", "args": ["-c", sys.argv[1]], "render": False, "grace": 0.05}}
        blocking.execute(config).send(None)
except HelperError as error:
    sys.exit(str(error))
except KeyboardInterrupt:
    sys.exit({INTERRUPTED})
"""


@contextlib.contextmanager
def _caller(mark: Mark) -> Iterator[subprocess.Popen[str]]:
    """A program that is about to run the tree of ``mark``; killed if it is still there."""
    with (
        usual_signals(),
        subprocess.Popen(
            [sys.executable, "-c", CALLER, mark.tree()],
            env=children.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as caller,
    ):
        try:
            assert caller.stdout is not None
            caller.stdout.readline()
            yield caller
        finally:
            caller.kill()


def interrupted(times: int, _folder: Path) -> Outcome:
    """SIGINT once, or again while the tree is being ended: it is gone when the program is."""
    numbers = random.Random(SEED)
    before = Baseline()
    failures: list[str] = []
    for turn in range(times):
        mark = Mark(numbers)
        with _caller(mark) as caller:
            time.sleep(numbers.uniform(0, 0.04))
            for _ in range(1 + turn % 3):
                caller.send_signal(signal.SIGINT)
                time.sleep(numbers.uniform(0, 0.01))
            failures += _ended(caller, f"interrupt {turn}")
        # Not in a while: that all are gone is what the end of the program says.
        failures += [f"interrupt {turn} left process {pid}" for pid in mark.alive()]
    return Outcome(tried=times, failures=(*failures, *before.leftovers()))


def run_interrupted(times: int, folder: Path) -> Outcome:
    """SIGINT to ``rye run`` while its tool starts and runs."""
    numbers = random.Random(SEED)
    before = Baseline()
    project = Project(folder, shipped_system=True)
    project.command("tools/tree", "/bin/sh", "-c", Mark.named("$0").tree(), "{mark}")
    failures: list[str] = []
    for turn in range(times):
        mark = Mark(numbers)
        with (
            usual_signals(),
            subprocess.Popen(
                [*COMMAND, "run", "tools/tree", f"mark={mark.text}"],
                cwd=project.path,
                env=environment(project.user),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            ) as command,
        ):
            wait_until(mark.alive, "the tool has begun")
            time.sleep(numbers.uniform(0, 0.02))
            command.send_signal(signal.SIGINT)
            failures += _ended(command, f"interrupt {turn}")
            command.kill()
        failures += [f"interrupt {turn} of rye left process {pid}" for pid in mark.alive()]
    return Outcome(tried=times, failures=(*failures, *before.leftovers()))


def _ended(program: subprocess.Popen[str], when: str) -> list[str]:
    """An interrupt that comes outside of the ``try`` ends it by the signal itself."""
    try:
        _, said = program.communicate(timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        return [f"{when}: the program did not end"]
    if program.returncode not in (INTERRUPTED, -signal.SIGINT):
        last = (said.strip().splitlines() or ["it said nothing"])[-1]
        return [f"{when}: the program ended with {program.returncode}: {last}"]
    return []


def killed(times: int, _folder: Path) -> Outcome:
    """The caller or a part of its helper dies by SIGKILL: nothing survives, the error is clear."""
    numbers = random.Random(SEED)
    before = Baseline()
    failures: list[str] = []
    told = 0
    for turn in range(times):
        mark, victim = Mark(numbers), VICTIMS[turn % len(VICTIMS)]
        with _caller(mark) as caller:
            time.sleep(numbers.uniform(0, 0.02))
            if victim == "caller":
                caller.kill()
            else:
                _kill_part(caller.pid, victim)
                _, said = caller.communicate(timeout=PATIENCE_SECONDS)
                told += 1
                # A helper that dies while it starts may say so first.
                if not said.endswith(f"{BROKEN_OFF}\n"):
                    failures.append(f"death {turn} of the {victim}: the caller said {said!r}")
        failures += mark.leftovers()
    note = f"{told} deaths of the helper were told"
    return Outcome(tried=times, failures=(*failures, *before.leftovers()), note=note)


def _kill_part(caller: int, victim: str) -> None:
    """As soon as it is there."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(psutil.NoSuchProcess):
            family = [psutil.Process(caller)]
            for child in family[0].children():
                family += lineage(child.pid)
            if len(family) > VICTIMS.index(victim):
                family[VICTIMS.index(victim)].kill()
                return
    raise TimeoutError(f"there is no {victim}")
