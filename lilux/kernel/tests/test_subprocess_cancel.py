"""Cancelling and interrupting a call: the whole process tree ends before the call returns."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psutil
import pytest
from interrupts import interrupt_when
from lilux.primitives.subprocess import SubprocessPrimitive, SubprocessResult
from process_transports import Execute
from processes import Tree, is_alive


def shell(script: str, **config: Any) -> dict[str, Any]:
    return {"command": "sh", "args": ["-c", script], "render": False, **config}


def alive(processes: dict[str, psutil.Process]) -> list[str]:
    return [name for name, process in processes.items() if is_alive(process)]


def left_of(tree: Tree) -> list[str]:
    """The names of the processes of a tree that are still alive."""
    pids = {name: int((tree.folder / name).read_text()) for name in tree.NAMES}
    return [
        name
        for name, pid in pids.items()
        if psutil.pid_exists(pid) and is_alive(psutil.Process(pid))
    ]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_an_interrupt_is_raised_after_the_whole_tree_has_ended(
    execute: Execute, tmp_path: Path, streamed: bool
) -> None:
    tree = Tree(tmp_path / "tree")
    options: dict[str, Any] = {"on_output": lambda *_: None} if streamed else {}
    with interrupt_when((tree.folder / "up").exists), pytest.raises(KeyboardInterrupt):
        execute(shell(tree.script(), timeout=60), **options)
    assert left_of(tree) == []
    assert execute({"command": "true"}).success


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_an_interrupted_call_reports_what_its_processes_waited_for_on_request(
    execute: Execute, tmp_path: Path, streamed: bool
) -> None:
    options: dict[str, Any] = {"on_output": lambda *_: None} if streamed else {}
    found: list[Any] = []
    config = shell(f"sleep 300 & echo > {tmp_path}/up; wait", timeout=60, autopsy_budget=10)
    with interrupt_when((tmp_path / "up").exists), pytest.raises(KeyboardInterrupt):
        execute(config, on_autopsy=found.append, **options)
    (autopsy,) = found
    assert any(one["command"].startswith("sh") for one in autopsy["processes"])
    (tmp_path / "up").unlink()
    with interrupt_when((tmp_path / "up").exists), pytest.raises(KeyboardInterrupt):
        execute({**config, "autopsy": "never"}, on_autopsy=found.append, **options)
    assert len(found) == 1
    assert execute({"command": "true"}, on_autopsy=found.append, **options).success
    assert len(found) == 1


def test_an_interrupted_job_may_clean_up_within_its_grace(execute: Execute, tmp_path: Path) -> None:
    script = (
        f"trap 'echo bye > {tmp_path}/bye; exit' TERM; echo $$ > {tmp_path}/pid; "
        "while :; do sleep 0.02; done"
    )
    with interrupt_when((tmp_path / "pid").exists), pytest.raises(KeyboardInterrupt):
        execute(shell(script, grace=20, timeout=60))
    assert (tmp_path / "bye").read_text() == "bye\n"


def test_an_interrupted_job_that_ignores_sigterm_is_killed_after_its_grace(
    execute: Execute, tmp_path: Path
) -> None:
    tree = Tree(tmp_path / "tree")
    script = "trap '' TERM; " + tree.script("while :; do sleep 0.1; done")
    with interrupt_when((tree.folder / "up").exists), pytest.raises(KeyboardInterrupt):
        execute(shell(script, grace=0.5, timeout=60))
    assert left_of(tree) == []


def test_cancelling_the_task_ends_the_whole_tree_before_it_returns(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "tree")

    async def main() -> None:
        job = asyncio.create_task(SubprocessPrimitive().execute(shell(tree.script())))
        processes = await asyncio.to_thread(tree.processes)
        job.cancel()
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
        assert alive(processes) == []

    asyncio.run(main())


def test_cancelling_repeatedly_still_waits_for_the_end_of_the_tree(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "tree")
    script = "trap '' TERM; " + tree.script("while :; do sleep 0.1; done")

    async def main() -> None:
        job = asyncio.create_task(SubprocessPrimitive().execute(shell(script, grace=1)))
        processes = await asyncio.to_thread(tree.processes)
        while not job.done():
            job.cancel()
            await asyncio.sleep(0.01)
        assert job.cancelled()
        assert alive(processes) == []

    asyncio.run(main())


def test_a_timeout_of_asyncio_ends_the_whole_tree(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "tree")

    async def main() -> None:
        primitive = SubprocessPrimitive()
        seen = asyncio.create_task(asyncio.to_thread(tree.processes))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await primitive.execute(shell(tree.script()))
        assert alive(await seen) == []
        assert (await primitive.execute({"command": "true"})).success

    asyncio.run(main())


def test_cancelling_one_of_many_calls_leaves_the_others_alone() -> None:
    async def main() -> None:
        primitive = SubprocessPrimitive()
        cancelled = asyncio.create_task(primitive.execute(shell("exec sleep 600")))
        others = [
            asyncio.create_task(primitive.execute(shell(f"sleep 0.2; echo {n}"))) for n in range(5)
        ]
        await asyncio.sleep(0.05)
        cancelled.cancel()
        results = await asyncio.gather(*others)
        assert [result.stdout for result in results] == [f"{n}\n" for n in range(5)]
        with pytest.raises(asyncio.CancelledError):
            await cancelled

    asyncio.run(main())


def test_many_calls_at_once_are_not_mixed_up() -> None:
    async def main() -> list[SubprocessResult]:
        primitive = SubprocessPrimitive()
        return await asyncio.gather(
            *(primitive.execute({"command": "cat", "input_data": f"call {n}"}) for n in range(200))
        )

    assert [result.stdout for result in asyncio.run(main())] == [f"call {n}" for n in range(200)]
