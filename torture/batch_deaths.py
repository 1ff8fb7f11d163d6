"""The driver or the helper of a local ``rye batch`` dies by SIGKILL at random moments."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from processes import helper_processes, is_alive, wait_until
from rye_command import COMMAND, default_signals, environment
from rye_project import Project

from torture.leftovers import Baseline, Mark, wait_until_empty
from torture.scenario import Outcome

SEED = 20261118
JOBS = 4
HELPER_PARTS = 3
KILLS_IN_A_BATCH = 10
CALLS_FOR_A_KILL = 80
TIMEOUT_SECONDS = 120
MIN_RESULTS = 3 * JOBS
"""So many successful calls after a kill show that no lane waits for the dead helper."""
TOOL = "tools/once"
# Each run leaves one line, so that a call that runs twice is seen, and processes of its own.
SCRIPT = 'echo "$1" >> "$2"\n' + Mark.named("$0").tree('sleep "$3"; echo "did $1"')


class Where(NamedTuple):
    """Where the calls of a batch run."""

    name: str
    jobs: int
    kills: int
    """So many in one batch."""
    env: Mapping[str, str]


LOCAL = Where("local", JOBS, KILLS_IN_A_BATCH, {})


class Batch:
    """A batch of calls that must not run twice, in a folder of its own."""

    def __init__(
        self,
        project: Project,
        folder: Path,
        count: int,
        numbers: random.Random,
        backend: Where = LOCAL,
    ) -> None:
        folder.mkdir()
        self.mark = Mark()
        self.count = count
        self.unknown = 0
        self._project = project
        self._backend = backend
        self._folder = folder / "batch"
        self._lines = folder / "lines"
        self._lines.touch()
        self._out = folder / "out.jsonl"
        self._calls = folder / "calls.jsonl"
        calls = (
            {"n": n, "mark": self.mark.text, "lines": str(self._lines), "seconds": seconds}
            for n in range(1, count + 1)
            for seconds in [numbers.choice((0, 0, 0.02))]
        )
        self._calls.write_text("".join(json.dumps(call) + "\n" for call in calls))

    @contextlib.contextmanager
    def running(self) -> Iterator[subprocess.Popen[str]]:
        """Start the batch, or resume it; killed at the end of the block."""
        if self._started():
            arguments = ["resume", str(self._folder)]
        else:
            options = {"--out": self._out, "--dir": self._folder, "--jobs": self._backend.jobs}
            arguments = [
                TOOL,
                str(self._calls),
                "--on",
                self._backend.name,
                *(str(one) for two in options.items() for one in two),
            ]
        with (
            default_signals(),
            subprocess.Popen(
                [*COMMAND, "batch", *arguments],
                cwd=self._project.path,
                env=environment(self._project.user, self._backend.env),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            ) as driver,
        ):
            try:
                wait_until(
                    lambda: self._started() or driver.poll() is not None,
                    "the batch can be resumed",
                    seconds=TIMEOUT_SECONDS,
                )
                yield driver
            finally:
                driver.kill()

    def _started(self) -> bool:
        return (self._folder / "manifest.json").exists()

    def journal_size(self) -> int:
        """Eight bytes for each call that was started."""
        journal = self._folder / "journal"
        return journal.stat().st_size if journal.exists() else 0

    def outcomes(self) -> Counter[str]:
        """How many results of each kind there are."""
        return Counter(one["outcome"] for one in self._results())

    def in_doubt(self) -> int:
        """Calls that were started and have no result."""
        # An unknown call was in the journal before the resume that wrote its result.
        return self.journal_size() // 8 - len(self._results())

    def _results(self) -> list[dict[str, Any]]:
        path = self._folder / "results.jsonl"
        if not path.exists():
            return []
        return [json.loads(one) for one in path.read_bytes().splitlines(True) if one[-1:] == b"\n"]

    def finish(self, driver: subprocess.Popen[str]) -> list[str]:
        """Wait for the end; return a sentence for each call that was lost or that ran twice."""
        try:
            output, _ = driver.communicate(timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            return ["the batch did not end"]
        failures = self.mark.leftovers()
        results = self._results()
        self.unknown = sum(one["outcome"] == "unknown" for one in results)
        if driver.returncode != (1 if self.unknown else 0):
            last = (output.strip().splitlines() or ["no output"])[-1]
            failures.append(f"the batch ended with {driver.returncode}: {last}")
        if sorted(one["line"] for one in results) != list(range(1, self.count + 1)):
            failures.append(f"{self.count} calls have {len(results)} results, or wrong ones")
        if self._out.read_bytes() != (self._folder / "results.jsonl").read_bytes():
            failures.append("the copy of the results is different")
        ran = Counter(map(int, self._lines.read_text().split()))
        return [*failures, *(text for one in results if (text := _fault(one, ran[one["line"]])))]


def _fault(result: dict[str, Any], runs: int) -> str:
    """What is wrong with a result; empty if nothing is."""
    line, outcome = result["line"], result["outcome"]
    if outcome == "unknown":
        return "" if runs <= 1 else f"call {line}, which is unknown, ran {runs} times"
    if outcome != "ok":
        return f"call {line} is {outcome}: {result['error']}"
    if runs != 1:
        return f"call {line} ran {runs} times"
    if result["data"]["stdout"] != f"did {line}\n":
        return f"call {line} has the result of another one"
    return ""


def driver_killed(times: int, folder: Path) -> Outcome:
    """Kill the driver while it starts, resumes and runs calls; resume it each time."""

    def killrepeatedly(batch: Batch, kills: int, numbers: random.Random) -> list[str]:
        failures: list[str] = []
        for turn in range(kills):
            with batch.running() as driver:
                if turn % 3 == 2:
                    # While it starts.
                    time.sleep(numbers.uniform(0, 0.5))
                else:
                    before = batch.journal_size()
                    wait_until(
                        lambda before=before: (
                            batch.journal_size() > before  # type: ignore[misc] # a default binds it now
                            or driver.poll() is not None
                        ),
                        "a call has started",
                    )
                    time.sleep(numbers.uniform(0, 0.05))
                parts = _helper_of(driver)
                driver.kill()
                driver.wait()
                if driver.returncode >= 0:
                    failures.append(f"death {turn}: the batch had ended before")
            failures += [f"death {turn}: {one}" for one in survivors(parts)]
            failures += [f"death {turn}: {one}" for one in batch.mark.leftovers()]
            if (doubt := batch.in_doubt()) > JOBS:
                failures.append(f"death {turn}: {doubt} calls are in doubt, and {JOBS} ran")
        with batch.running() as driver:
            return failures + batch.finish(driver)

    return repeat(times, folder, killrepeatedly)


def helper_killed(times: int, folder: Path) -> Outcome:
    """Kill keeper, guardian or worker while the driver goes on with another helper."""

    def killrepeatedly(batch: Batch, kills: int, numbers: random.Random) -> list[str]:
        failures: list[str] = []
        dead: list[psutil.Process] = []
        with batch.running() as driver:
            for turn in range(kills):
                before = batch.outcomes()
                wait_for_results(batch, driver, before["ok"] + MIN_RESULTS)
                before = batch.outcomes()
                time.sleep(numbers.uniform(0, 0.05))
                parts: list[psutil.Process] = []
                while len(parts) < HELPER_PARTS and driver.poll() is None:
                    parts = _helper_of(driver)
                if not parts:
                    failures.append(f"death {turn}: the batch had ended before")
                    break
                numbers.choice(parts).kill()
                dead += parts
                wait_for_results(batch, driver, batch.outcomes()["ok"] + MIN_RESULTS)
                lost = batch.outcomes()["unknown"] - before["unknown"]
                if lost > JOBS:
                    failures.append(f"death {turn}: {lost} calls are unknown, and {JOBS} ran")
            return [*failures, *batch.finish(driver), *survivors(dead)]

    return repeat(times, folder, killrepeatedly)


def repeat(
    times: int,
    folder: Path,
    kill_repeatedly: Callable[[Batch, int, random.Random], list[str]],
    backend: Where = LOCAL,
) -> Outcome:
    """Run as many batches as the kills need, and check each of them."""
    numbers = random.Random(SEED)
    project = Project(folder, shipped_system=True)
    arguments = ("-c", SCRIPT, "{mark}", "{n}", "{lines}", "{seconds}")
    project.command(TOOL, "/bin/sh", *arguments)
    failures: list[str] = []
    unknown = calls = 0
    for first in range(0, times, backend.kills):
        kills = min(backend.kills, times - first)
        place = folder / f"batch-{first}"
        batch = Batch(project, place, (kills + 1) * CALLS_FOR_A_KILL, numbers, backend)
        failures += [f"{place.name}: {one}" for one in kill_repeatedly(batch, kills, numbers)]
        unknown += batch.unknown
        calls += batch.count
    note = f"{unknown} of {calls} calls are unknown, each of the others ran once"
    return Outcome(tried=times, failures=tuple(failures), note=note)


def without_leftovers(outcome: Outcome, before: Baseline) -> Outcome:
    """The outcome, which fails if something is left."""
    return replace(outcome, failures=(*outcome.failures, *before.leftovers()))


def wait_for_results(batch: Batch, driver: subprocess.Popen[str], number: int) -> None:
    wait_until(
        lambda: batch.outcomes()["ok"] >= number or driver.poll() is not None,
        f"{number} calls have succeeded",
        seconds=TIMEOUT_SECONDS,
    )


def _helper_of(driver: subprocess.Popen[str]) -> list[psutil.Process]:
    """Keeper, guardian and worker of the helper that started last; empty if there is none."""
    while driver.poll() is None:
        # Jobs, which have the helper's name at first, may end while they are looked at.
        with contextlib.suppress(psutil.NoSuchProcess):
            helpers = [
                one
                for one in psutil.Process(driver.pid).children()
                if one.name() == "lilux-proc" and is_alive(one)
            ]
            if not helpers:
                return []
            newest = max(helpers, key=psutil.Process.create_time)
            return helper_processes(newest.pid)[:HELPER_PARTS]
    return []


def survivors(processes: list[psutil.Process], seconds: float = 15) -> list[str]:
    """A sentence for each process of a worker that does not end."""
    return wait_until_empty(
        lambda: [f"process {one.pid} of a helper is alive" for one in processes if is_alive(one)],
        seconds,
    )
