"""The helper gets fewer descriptors, threads or processes than its jobs would need."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lilux.primitives.errors import HelperError
from lilux.primitives.subprocess import SubprocessPrimitive, SubprocessResult
from proc_client import find_binary
from processes import wait_until

from torture.leftovers import Before, Mark
from torture.scenario import CannotBeTriedError, Outcome

SEED = 20261116
JOBS = 60
ORPHANS = 40
# A user that no process of this machine belongs to: the limit of processes counts by user.
LONELY_USER = 64321
TOLD = re.compile(
    r"Failed to spawn: (\S+: )?(Too many open files|Resource temporarily unavailable)"
    r"|no thread or file descriptor is available for this request; try again when other jobs"
    r" have ended"
    r"|^sh: \d+: Cannot fork"  # the job's own word, since it may start no process either
)


def descriptors(times: int, folder: Path) -> Outcome:
    """Limits from 24 descriptors on: each job runs or says why not, and the next one works."""
    before = Before()
    lost: list[str] = []
    for turn in range(times):
        with _limited(folder, f"ulimit -n {24 + 8 * (turn % 12)}"):
            lost += asyncio.run(_crowd(turn))
    return Outcome(tried=times * JOBS, lost=(*lost, *before.left()))


def threads(times: int, folder: Path) -> Outcome:
    """Limits from one process on, by which threads count too."""
    setpriv, prlimit = shutil.which("setpriv"), shutil.which("prlimit")
    if os.geteuid() != 0 or not (setpriv and prlimit):
        raise CannotBeTriedError("only root, with setpriv and prlimit, can limit another user")
    before = Before()
    lost: list[str] = []
    with _within_reach() as binary:
        for turn in range(times):
            limit = 1 + turn % 40
            as_user = f"{setpriv} --reuid={LONELY_USER} --clear-groups"
            limited = f'exec {as_user} {prlimit} --nproc={limit}:{limit} {binary} "$@" 2>/dev/null'
            with _limited(folder, limited):
                lost += asyncio.run(_crowd(turn, may_lack_a_helper=True))
    return Outcome(tried=times * JOBS, lost=(*lost, *before.left()))


def orphans(times: int, folder: Path) -> Outcome:
    """A job leaves more processes than there are descriptors to look at them, others hold most."""
    lost: list[str] = []
    for turn in range(times):
        with _limited(folder, "ulimit -n 48"):
            lost += asyncio.run(_leave_many(folder / f"go-{turn}", hogs=turn % 6))
    return Outcome(tried=times * ORPHANS, lost=tuple(lost))


async def _crowd(turn: int, *, may_lack_a_helper: bool = False) -> list[str]:
    primitive = SubprocessPrimitive()
    mark = Mark(random.Random(SEED + turn))
    tree = {"command": "sh", "args": ["-c", mark.tree("echo done")], "render": False}

    async def one(number: int) -> list[str]:
        word = f"word {number}"
        config = tree if number % 2 else {"command": "cat", "input_data": word}
        try:
            result = await primitive.execute(config)
        except HelperError as error:
            return [] if may_lack_a_helper else [f"job {number}: {error}"]
        if result.stdout == ("done\n" if number % 2 else word) or TOLD.search(result.stderr):
            return []
        return [f"job {number} said {result.stdout!r} and {result.stderr!r}"]

    wrong = await asyncio.gather(*(one(number) for number in range(JOBS)))
    lost = [sentence for sentences in wrong for sentence in sentences]
    if not may_lack_a_helper:
        lost += await _recovers(primitive)
    # While the helper lives: its own end would take them along.
    lost += await asyncio.to_thread(mark.left)
    return lost


async def _recovers(primitive: SubprocessPrimitive) -> list[str]:
    """The next call works once the threads of the crowd have gone, which takes a moment."""
    result: SubprocessResult | None = None
    for _ in range(500):
        result = await primitive.execute({"command": "echo", "args": ["again"]})
        if result.success:
            return []
        await asyncio.sleep(0.01)
    return [f"no call works any more: {result.stderr if result else ''}"]


async def _leave_many(go: Path, *, hogs: int) -> list[str]:
    primitive = SubprocessPrimitive()
    mark = Mark(random.Random(SEED + hogs))
    script = (
        f"i=0; while [ $i -lt {ORPHANS} ]; do (setsid sleep 60 {mark.text} &); i=$((i+1)); done\n"
        f"echo > {go}.up; while [ ! -e {go} ]; do sleep 0.01; done"
    )
    leaving = asyncio.create_task(
        primitive.execute({"command": "sh", "args": ["-c", script], "render": False})
    )
    await asyncio.to_thread(wait_until, Path(f"{go}.up").exists, "the orphans are up")
    holding = [
        asyncio.create_task(primitive.execute({"command": "sleep", "args": ["60"]}))
        for _ in range(hogs)
    ]
    await primitive.status(1)  # answered after those before it were started
    go.touch()
    result = await leaving
    alive = mark.alive()
    lost = [f"{len(alive)} orphans are left when their job has ended"] if alive else []
    if (result.background_ended, result.survivors) != (ORPHANS, ()):
        lost.append(f"{result.background_ended} of {ORPHANS} orphans were told as ended")
    for task in holding:
        task.cancel()
    await asyncio.gather(*holding, return_exceptions=True)
    return lost


@contextlib.contextmanager
def _limited(folder: Path, limit: str) -> Iterator[None]:
    """While it lasts, the helper that is found on PATH sets itself a limit first."""
    place = folder / "limited"
    place.mkdir(exist_ok=True)
    wrapper = place / "lilux-proc"
    wrapper.write_text(f'#!/bin/sh\n{limit}\nexec {find_binary()} "$@"\n')
    wrapper.chmod(0o755)
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{place}{os.pathsep}{path}"
    try:
        yield
    finally:
        os.environ["PATH"] = path


@contextlib.contextmanager
def _within_reach() -> Iterator[Path]:
    """A copy of the helper that other users can run; the folders of tests are closed to them."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        binary = Path(folder, "helper")
        shutil.copy(find_binary(), binary)
        binary.chmod(0o755)
        yield binary
