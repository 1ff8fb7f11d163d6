"""A helper stopped by SIGSTOP: an error in bounded time, and no process is left."""

from __future__ import annotations

import asyncio
import contextlib
import select
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from interrupts import interrupt_when
from lilux.primitives.errors import HelperError
from lilux.primitives.subprocess import SubprocessPrimitive, session
from lilux.primitives.subprocess.aio import helper_of_loop
from lilux.primitives.subprocess.binary import find_helper
from process_transports import Execute
from processes import Tree, assert_ended, helper_processes, is_alive, stop_process, wait_until

SILENT = (
    "lilux-proc did not answer during a call; its processes are being ended; "
    "try again: the next call starts a new helper"
)
PARTS = {"keeper": 0, "guardian": 1, "worker": 2}
ALL = tuple(PARTS)


@contextlib.contextmanager
def short_patience(silence: float = 1) -> Iterator[None]:
    """Give up a silent helper soon.

    Only for calls to a helper that is already running: on a busy machine, starting one may take
    longer than this.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "SILENCE_SECONDS", silence)
        patch.setattr(session, "CANCEL_SECONDS", 0.3)
        patch.setattr(session, "END_SECONDS", 0.3)
        yield


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "tree")


Stop = Callable[..., list[psutil.Process]]


@pytest.fixture
def stop() -> Iterator[Stop]:
    """Stop processes of the only helper, from the keeper down, and return all its processes."""
    processes: list[psutil.Process] = []

    def stop(*parts: str) -> list[psutil.Process]:
        processes.extend(only_helper())
        for part in parts:
            if parts == ALL:
                # In this order, no process is left that would continue the next one.
                stop_process(processes[PARTS[part]])
            else:
                processes[PARTS[part]].suspend()
        return processes

    yield stop
    for process in processes:
        if is_alive(process):
            process.kill()


def only_helper() -> list[psutil.Process]:
    """Keeper, guardian and worker of the only helper."""
    children = psutil.Process().children()
    (keeper,) = [one for one in children if one.name() == "lilux-proc" and is_alive(one)]
    return helper_processes(keeper.pid)


def by_pid(processes: list[psutil.Process]) -> dict[str, psutil.Process]:
    return {str(process.pid): process for process in processes}


def shell(script: str, **config: Any) -> dict[str, Any]:
    return {"command": "sh", "args": ["-c", script], "render": False, **config}


# In this order, no process is left that would continue the next one. A process is stopped when all
# its threads are.
STOP_HELPER = """
read -r _ _ _ guardian _ < /proc/$PPID/stat
read -r _ _ _ keeper _ < /proc/$guardian/stat
for pid in $keeper $guardian $PPID; do
    kill -STOP $pid
    while grep -qv ') T' /proc/$pid/task/*/stat; do sleep 0.01; done
done
exec sleep 600"""


@pytest.mark.parametrize(("timeout", "silence"), [(2, 3), (60, 1), (None, 1)])
def test_a_stopped_helper_is_reported_and_the_next_call_works(
    execute: Execute, tree: Tree, timeout: float | None, silence: float
) -> None:
    execute({"command": "true"})
    began = time.monotonic()
    with short_patience(silence), pytest.raises(HelperError) as raised:
        execute(shell(tree.script(STOP_HELPER), timeout=timeout))
    assert str(raised.value) == SILENT
    assert time.monotonic() - began < 10
    assert execute({"command": "echo", "args": ["again"]}).stdout == "again\n"
    pids = [int((tree.folder / name).read_text()) for name in tree.NAMES]
    wait_until(lambda: not any(map(psutil.pid_exists, pids)), "the tree has ended")


def test_a_helper_that_is_stopped_while_it_reads_a_long_input_is_reported(
    execute: Execute, stop: Stop
) -> None:
    execute({"command": "true"})
    processes = stop(*ALL)
    with short_patience(), pytest.raises(HelperError) as raised:
        execute({"command": "cat", "input_data": b"x" * 5_000_000})
    assert str(raised.value) == SILENT
    assert_ended(by_pid(processes))
    assert execute({"command": "true"}).success


def test_an_interrupt_ends_the_tree_of_a_stopped_helper(execute: Execute, tree: Tree) -> None:
    processes: list[psutil.Process] = []

    def helper_is_stopped() -> bool:
        if not (tree.folder / "up").exists():
            return False
        processes[:] = processes or only_helper()
        return processes[-1].status() == psutil.STATUS_STOPPED

    # The silence is longer than the usual time to the interrupt, which must come first.
    with (
        short_patience(silence=5),
        interrupt_when(helper_is_stopped),
        pytest.raises(KeyboardInterrupt),
    ):
        execute(shell(tree.script(STOP_HELPER), timeout=60))
    wait_until(lambda: not any(map(is_alive, processes)), "the helper has ended")
    pids = [int((tree.folder / name).read_text()) for name in tree.NAMES]
    wait_until(lambda: not any(map(psutil.pid_exists, pids)), "the tree has ended")


def test_a_helper_that_runs_is_not_given_up_while_its_job_is_silent(execute: Execute) -> None:
    execute({"command": "true"})
    with short_patience():
        assert execute(shell("sleep 2; echo done")).stdout == "done\n"


def test_a_helper_is_not_given_up_while_a_callback_blocks(execute: Execute) -> None:
    seen = []

    def on_output(stream: str, text: str) -> None:
        time.sleep(1.5)
        seen.append(text)

    execute({"command": "true"})
    with short_patience():
        result = execute(shell("echo one; sleep 0.3; echo two"), on_output=on_output)
    assert (result.success, "".join(seen)) == (True, "one\ntwo\n")


def test_detaching_with_a_stopped_keeper_is_reported(stop: Stop) -> None:
    async def main() -> None:
        primitive = SubprocessPrimitive()
        assert (await primitive.execute({"command": "true"})).success
        processes = stop("keeper")
        with short_patience(), pytest.raises(HelperError) as raised:
            await primitive.spawn("sleep", ["60"])
        assert str(raised.value) == SILENT
        await asyncio.to_thread(assert_ended, by_pid(processes))

    asyncio.run(main())


def test_a_call_to_a_stopped_helper_can_be_cancelled(tree: Tree, stop: Stop) -> None:
    async def main() -> None:
        call = asyncio.create_task(SubprocessPrimitive().execute(shell(tree.script())))
        processes = await asyncio.to_thread(tree.processes)
        helper = stop(*ALL)
        call.cancel()
        with short_patience(), pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.to_thread(assert_ended, {**processes, **by_pid(helper)})

    asyncio.run(main())


@pytest.mark.parametrize("parts", [("keeper",), ("guardian",), ("worker",), ALL], ids=" ".join)
def test_the_loop_of_a_stopped_helper_ends(tree: Tree, stop: Stop, parts: tuple[str, ...]) -> None:
    left: dict[str, psutil.Process] = {}
    patience = contextlib.ExitStack()

    async def main() -> None:
        call = asyncio.create_task(SubprocessPrimitive().execute(shell(tree.script())))
        left.update(await asyncio.to_thread(tree.processes))
        left.update(by_pid(stop(*parts)))
        call.cancel()
        patience.enter_context(short_patience())

    with patience:
        asyncio.run(main())
    assert_ended(left)


def test_answers_that_a_busy_loop_has_not_read_count_as_signs_of_life() -> None:
    async def main() -> None:
        helper = await helper_of_loop(find_helper)
        fields = {"op": "exec", "command": "sleep", "args": ["300"]}
        job = asyncio.create_task(helper.request(fields))
        await asyncio.sleep(0)
        # The loop does not run from here on: its timers are called late and one after another.
        for _ in range(4):
            helper._session._ping_at = 0
            helper._on_tick()
            assert select.select([helper._socket], [], [], 60)[0], "no answer to a ping"
        assert helper.alive
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job

    asyncio.run(main())
