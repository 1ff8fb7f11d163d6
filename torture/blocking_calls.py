"""Interrupts and kills of a program without an event loop, such as ``rye run``."""

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
from processes import helper_processes, wait_until
from rye_command import COMMAND, default_signals, environment
from rye_project import Project

from torture import children
from torture.helper_death import HELPER_ENDED
from torture.leftovers import Baseline, Mark
from torture.scenario import Outcome

SEED = 20261116
TIMEOUT_SECONDS = 30
INTERRUPTED = 130
VICTIMS = ("caller", "keeper", "guardian", "worker")
# Loads only the primitive, so that the faults hit the call and not the start of the program.
CALLER = f"""
import sys
from lilux.primitives.subprocess.blocking import BlockingSubprocess
from lilux.primitives.errors import HelperError
print("started", flush=True)
try:
    with BlockingSubprocess() as blocking:
        config = {{"command": "sh", "args": ["-c", sys.argv[1]], "render": False, "grace": 0.05}}
        blocking.execute(config)
except HelperError as error:
    sys.exit(str(error))
except KeyboardInterrupt:
    sys.exit({INTERRUPTED})
"""


@contextlib.contextmanager
def _caller(mark: Mark) -> Iterator[subprocess.Popen[str]]:
    """A program that is about to run the tree of ``mark``; killed at the end of the block."""
    with (
        default_signals(),
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
    """Send SIGINT once or more often: the tree has ended when the program exits."""
    numbers = random.Random(SEED)
    before = Baseline()
    failures: list[str] = []
    for turn in range(times):
        mark = Mark()
        with _caller(mark) as caller:
            time.sleep(numbers.uniform(0, 0.04))
            for _ in range(1 + turn % 3):
                caller.send_signal(signal.SIGINT)
                time.sleep(numbers.uniform(0, 0.01))
            failures += _exit_failures(caller, f"interrupt {turn}")
        # Checked at once: when the program exits, the whole tree must have ended.
        failures += [f"interrupt {turn} left process {pid}" for pid in mark.alive()]
    return Outcome(tried=times, failures=(*failures, *before.leftovers()))


def run_interrupted(times: int, folder: Path) -> Outcome:
    """Send SIGINT to ``rye run`` while its tool starts and runs."""
    numbers = random.Random(SEED)
    before = Baseline()
    project = Project(folder, shipped_system=True)
    project.command("tools/tree", "/bin/sh", "-c", Mark.named("$0").tree(), "{mark}")
    failures: list[str] = []
    for turn in range(times):
        mark = Mark()
        with (
            default_signals(),
            subprocess.Popen(
                [*COMMAND, "run", "tools/tree", f"mark={mark.text}"],
                cwd=project.path,
                env=environment(project.user),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            ) as command,
        ):
            wait_until(mark.alive, "the tool has started")
            time.sleep(numbers.uniform(0, 0.02))
            command.send_signal(signal.SIGINT)
            failures += _exit_failures(command, f"interrupt {turn}")
            command.kill()
        failures += [f"interrupt {turn} of rye left process {pid}" for pid in mark.alive()]
    return Outcome(tried=times, failures=(*failures, *before.leftovers()))


def _exit_failures(program: subprocess.Popen[str], when: str) -> list[str]:
    """Wait for the program. An interrupt outside the ``try`` ends it by the signal."""
    try:
        _, stderr = program.communicate(timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        return [f"{when}: the program did not end"]
    if program.returncode not in (INTERRUPTED, -signal.SIGINT):
        last = (stderr.strip().splitlines() or ["no output on stderr"])[-1]
        return [f"{when}: the program ended with {program.returncode}: {last}"]
    return []


def killed(times: int, _folder: Path) -> Outcome:
    """Kill the caller or a part of its helper: nothing survives, and the error is clear."""
    numbers = random.Random(SEED)
    before = Baseline()
    failures: list[str] = []
    reported = 0
    for turn in range(times):
        mark, victim = Mark(), VICTIMS[turn % len(VICTIMS)]
        with _caller(mark) as caller:
            time.sleep(numbers.uniform(0, 0.02))
            if victim == "caller":
                caller.kill()
            else:
                _kill_part(caller.pid, victim)
                _, stderr = caller.communicate(timeout=TIMEOUT_SECONDS)
                reported += 1
                # A helper that dies while it starts may print a message before.
                if not stderr.endswith(f"{HELPER_ENDED}\n"):
                    failures.append(f"death {turn} of the {victim}: the caller printed {stderr!r}")
        failures += mark.leftovers()
    note = f"{reported} deaths of the helper were reported"
    return Outcome(tried=times, failures=(*failures, *before.leftovers()), note=note)


def _kill_part(caller: int, victim: str) -> None:
    """Kill the process as soon as it exists."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(psutil.NoSuchProcess):
            processes = [psutil.Process(caller)]
            for child in processes[0].children():
                processes += helper_processes(child.pid)
            if len(processes) > VICTIMS.index(victim):
                processes[VICTIMS.index(victim)].kill()
                return
    raise TimeoutError(f"there is no {victim}")
