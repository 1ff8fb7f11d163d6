"""The helper has fewer descriptors, threads or processes than its jobs need."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lilux.primitives.errors import HelperError
from lilux.primitives.subprocess import SubprocessPrimitive, SubprocessResult
from proc_client import find_binary
from processes import wait_until

from torture.leftovers import Baseline, Mark
from torture.scenario import Outcome, ScenarioSkippedError

JOBS = 60
ORPHANS = 40
# A user without processes on this machine: the limit of processes is per user.
UNUSED_USER = 64321
SHORTAGE_ERRORS = re.compile(
    r"Failed to spawn: (\S+: )?(Too many open files|Resource temporarily unavailable)"
    r"|no thread or file descriptor is available for this request; try again when other jobs"
    r" have ended"
    r"|^sh: \d+: Cannot fork"  # printed by the job, which may not start a process either
)


def descriptors(times: int, folder: Path) -> Outcome:
    """With 24 descriptors or more, each job runs or reports the shortage; later ones work."""
    before = Baseline()
    failures: list[str] = []
    for turn in range(times):
        with _limited(folder, f"ulimit -n {24 + 8 * (turn % 12)}"):
            failures += asyncio.run(_crowd())
    return Outcome(tried=times * JOBS, failures=(*failures, *before.leftovers()))


def threads(times: int, folder: Path) -> Outcome:
    """With one process or more, including threads, each job runs or gets a clear error."""
    setpriv, prlimit = shutil.which("setpriv"), shutil.which("prlimit")
    if os.geteuid() != 0 or not (setpriv and prlimit):
        raise ScenarioSkippedError("needs root, setpriv and prlimit, to limit another user")
    before = Baseline()
    failures: list[str] = []
    with _readable_binary() as binary:
        for turn in range(times):
            limit = 1 + turn % 40
            as_user = f"{setpriv} --reuid={UNUSED_USER} --clear-groups"
            limited = f'exec {as_user} {prlimit} --nproc={limit}:{limit} {binary} "$@" 2>/dev/null'
            with _limited(folder, limited):
                failures += asyncio.run(_crowd(helper_may_fail=True))
    return Outcome(tried=times * JOBS, failures=(*failures, *before.leftovers()))


def orphans(times: int, folder: Path) -> Outcome:
    """A job leaves more processes behind than the helper has descriptors for them."""
    failures: list[str] = []
    for turn in range(times):
        with _limited(folder, "ulimit -n 48"):
            failures += asyncio.run(_leave_many(folder / f"go-{turn}", hogs=turn % 6))
    return Outcome(tried=times * ORPHANS, failures=tuple(failures))


async def _crowd(*, helper_may_fail: bool = False) -> list[str]:
    primitive = SubprocessPrimitive()
    mark = Mark()
    tree = {"command": "sh", "args": ["-c", mark.tree("echo done")], "render": False}

    async def one(number: int) -> list[str]:
        word = f"word {number}"
        config = tree if number % 2 else {"command": "cat", "input_data": word}
        try:
            result = await primitive.execute(config)
        except HelperError as error:
            return [] if helper_may_fail else [f"job {number}: {error}"]
        if result.stdout == ("done\n" if number % 2 else word) or SHORTAGE_ERRORS.search(
            result.stderr
        ):
            return []
        return [f"job {number} printed {result.stdout!r} and {result.stderr!r}"]

    found = await asyncio.gather(*(one(number) for number in range(JOBS)))
    failures = [sentence for sentences in found for sentence in sentences]
    if not helper_may_fail:
        failures += await _recovers(primitive)
    # While the helper is alive: its end would kill them anyway.
    failures += await asyncio.to_thread(mark.leftovers)
    return failures


async def _recovers(primitive: SubprocessPrimitive) -> list[str]:
    """The next call works soon, when the threads of the earlier jobs have ended."""
    result: SubprocessResult | None = None
    for _ in range(500):
        result = await primitive.execute({"command": "echo", "args": ["again"]})
        if result.success:
            return []
        await asyncio.sleep(0.01)
    return [f"no later call works: {result.stderr if result else ''}"]


async def _leave_many(go: Path, *, hogs: int) -> list[str]:
    primitive = SubprocessPrimitive()
    mark = Mark()
    script = (
        f"i=0; while [ $i -lt {ORPHANS} ]; do (setsid sleep 60 {mark.text} &); i=$((i+1)); done\n"
        f"echo > {go}.up; while [ ! -e {go} ]; do sleep 0.01; done"
    )
    job = asyncio.create_task(
        primitive.execute({"command": "sh", "args": ["-c", script], "render": False})
    )
    await asyncio.to_thread(wait_until, Path(f"{go}.up").exists, "the orphans run")
    holders = [
        asyncio.create_task(primitive.execute({"command": "sleep", "args": ["60"]}))
        for _ in range(hogs)
    ]
    await primitive.status(1)  # answered after the jobs before it have started
    go.touch()
    result = await job
    alive = mark.alive()
    failures = [f"{len(alive)} orphans are alive after the end of their job"] if alive else []
    if (result.background_ended, result.survivors) != (ORPHANS, ()):
        failures.append(f"{result.background_ended} of {ORPHANS} orphans were reported as ended")
    for task in holders:
        task.cancel()
    await asyncio.gather(*holders, return_exceptions=True)
    return failures


@contextlib.contextmanager
def _limited(folder: Path, limit: str) -> Iterator[None]:
    """Put a helper on PATH that first sets a limit for itself."""
    subfolder = folder / "limited"
    subfolder.mkdir(exist_ok=True)
    wrapper = subfolder / "lilux-proc"
    wrapper.write_text(f'#!/bin/sh\n{limit}\nexec {find_binary()} "$@"\n')
    wrapper.chmod(0o755)
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{subfolder}{os.pathsep}{path}"
    try:
        yield
    finally:
        os.environ["PATH"] = path


@contextlib.contextmanager
def _readable_binary() -> Iterator[Path]:
    """A copy of the helper that other users can run, outside the private test folders."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        binary = Path(folder, "helper")
        shutil.copy(find_binary(), binary)
        binary.chmod(0o755)
        yield binary
