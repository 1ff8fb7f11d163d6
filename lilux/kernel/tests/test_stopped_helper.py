"""A helper that somebody stopped: an error in bounded time, and nothing is left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from interrupts import interrupt_when
from lilux.primitives.errors import HelperError
from lilux.primitives.subprocess import SubprocessPrimitive, blocking_helper
from lilux.primitives.subprocess import aio as helper
from lilux.primitives.subprocess import binary as helper_binary
from lilux.primitives.subprocess.blocking import BlockingSubprocess
from processes import Tree, assert_gone, is_alive, lineage, wait_until

SILENT = (
    "lilux-proc did not answer while a request was in flight; whatever it had started is "
    "being ended, and the next call starts a new helper: try again"
)
PARTS = {"keeper": 0, "guardian": 1, "worker": 2}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patience is measured in seconds; here in tenths."""
    monkeypatch.setattr(helper, "_ASK_SECONDS", 0.2)
    monkeypatch.setattr(helper_binary, "_END_SECONDS", 0.3)
    monkeypatch.setattr(blocking_helper, "_PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr(blocking_helper, "_CANCEL_SECONDS", 0.3)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "tree")


@pytest.fixture
def stop() -> Iterator[Callable[[str], list[psutil.Process]]]:
    """Stops a part of the only helper, and gives all parts."""
    own: list[psutil.Process] = []

    def stop(part: str) -> list[psutil.Process]:
        (keeper,) = [
            one
            for one in psutil.Process().children()
            if one.name() == "lilux-proc" and is_alive(one)
        ]
        own.extend(lineage(keeper.pid))
        own[PARTS[part]].suspend()
        return own

    yield stop
    for process in own:
        if is_alive(process):
            process.kill()


Stop = Callable[[str], list[psutil.Process]]


def by_pid(processes: list[psutil.Process]) -> dict[str, psutil.Process]:
    return {str(process.pid): process for process in processes}


def shell(script: str, **config: object) -> dict[str, object]:
    return {"command": "sh", "args": ["-c", script], "render": False, **config}


def test_a_call_of_a_worker_that_is_stopped_is_told_and_the_next_one_works(
    tree: Tree, stop: Stop
) -> None:
    async def main() -> None:
        primitive = SubprocessPrimitive()
        call = asyncio.create_task(primitive.execute(shell(tree.script())))
        processes = await asyncio.to_thread(tree.processes)
        own = stop("worker")
        with pytest.raises(HelperError) as raised:
            await call
        assert str(raised.value) == SILENT
        assert (await primitive.execute({"command": "echo", "args": ["again"]})).stdout == "again\n"
        await asyncio.to_thread(assert_gone, {**processes, **by_pid(own)})

    asyncio.run(main())


def test_detaching_by_a_keeper_that_is_stopped_is_told(stop: Stop) -> None:
    async def main() -> None:
        primitive = SubprocessPrimitive()
        assert (await primitive.execute({"command": "true"})).success
        own = stop("keeper")
        with pytest.raises(HelperError) as raised:
            await primitive.spawn("sleep", ["60"])
        assert str(raised.value) == SILENT
        await asyncio.to_thread(assert_gone, by_pid(own))

    asyncio.run(main())


def test_a_call_of_a_worker_that_is_stopped_can_be_cancelled(tree: Tree, stop: Stop) -> None:
    async def main() -> None:
        call = asyncio.create_task(SubprocessPrimitive().execute(shell(tree.script())))
        processes = await asyncio.to_thread(tree.processes)
        own = stop("worker")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.to_thread(assert_gone, {**processes, **by_pid(own)})

    asyncio.run(main())


@pytest.mark.parametrize("part", PARTS)
def test_the_loop_of_a_helper_that_is_stopped_ends_all_the_same(
    tree: Tree, stop: Stop, part: str
) -> None:
    left: dict[str, psutil.Process] = {}

    async def main() -> None:
        call = asyncio.create_task(SubprocessPrimitive().execute(shell(tree.script())))
        left.update(await asyncio.to_thread(tree.processes))
        left.update(by_pid(stop(part)))
        call.cancel()

    asyncio.run(main())
    assert_gone(left)


def test_a_helper_that_is_awake_is_not_given_up_however_long_a_job_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(helper, "_ASK_SECONDS", 0.4)

    async def main() -> None:
        result = await SubprocessPrimitive().execute(shell("sleep 2; echo done"))
        assert result.stdout == "done\n"

    asyncio.run(main())


def test_without_an_event_loop_a_stopped_worker_is_told_after_the_timeout(
    tree: Tree, stop: Stop
) -> None:
    with BlockingSubprocess() as blocking:
        script = "kill -STOP $PPID; exec sleep 600"
        with pytest.raises(HelperError) as raised:
            blocking.execute(shell(script, timeout=0.2, grace=0.1)).send(None)
        assert str(raised.value) == SILENT
        with pytest.raises(StopIteration) as end:
            blocking.execute(shell("echo again")).send(None)
        assert end.value.value.stdout == "again\n"


def test_without_an_event_loop_an_interrupt_ends_the_tree_of_a_stopped_worker(
    tree: Tree,
) -> None:
    script = tree.script("kill -STOP $PPID; exec sleep 600")
    helpers: list[psutil.Process] = []

    def worker_is_stopped() -> bool:
        if not (tree.folder / "up").exists():
            return False
        for child in psutil.Process().children():
            helpers[:] = lineage(child.pid) if child.name() == "lilux-proc" else helpers
        return helpers[-1].status() == psutil.STATUS_STOPPED

    with BlockingSubprocess() as blocking, interrupt_when(worker_is_stopped):
        with pytest.raises(KeyboardInterrupt):
            blocking.execute(shell(script, timeout=60)).send(None)
        wait_until(lambda: not any(map(is_alive, helpers)), "the helper is gone")
    pids = [int((tree.folder / name).read_text()) for name in tree.NAMES]
    wait_until(lambda: not any(map(psutil.pid_exists, pids)), "the tree is gone")
