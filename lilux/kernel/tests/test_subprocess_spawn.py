"""Detached processes, with the examples of the specification."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from lilux.primitives.subprocess import KillResult, SpawnResult, StatusResult, SubprocessPrimitive
from processes import wait_until


def test_spawn_status_kill_as_in_the_specification(tmp_path: Path) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text("import sys, time; print('started', flush=True); time.sleep(600)")
    log = tmp_path / "worker.log"

    async def main() -> None:
        primitive = SubprocessPrimitive()
        spawned = await primitive.spawn("python3", [str(worker)], log_path=str(log))
        assert (spawned.success, spawned.error) == (True, None)
        assert spawned.pid is not None
        wait_until(lambda: log.read_text() == "started\n", "the worker writes to its log")
        assert await primitive.status(spawned.pid) == StatusResult(pid=spawned.pid, alive=True)
        killed = await primitive.kill(spawned.pid, grace=3.0)
        assert killed == KillResult(success=True, pid=spawned.pid, method="terminated")
        assert await primitive.status(spawned.pid) == StatusResult(pid=spawned.pid, alive=False)
        again = await primitive.kill(spawned.pid)
        assert again == KillResult(success=True, pid=spawned.pid, method="already_dead")

    asyncio.run(main())


def test_a_detached_process_outlives_the_event_loop() -> None:
    async def spawn() -> SpawnResult:
        return await SubprocessPrimitive().spawn("sleep", ["600"], envs={"A": "1"})

    async def end(spawned: SpawnResult) -> KillResult:
        assert spawned.pid is not None
        primitive = SubprocessPrimitive()
        assert (await primitive.status(spawned.pid, start_time=spawned.start_time)).alive
        return await primitive.kill(spawned.pid, start_time=spawned.start_time)

    spawned = asyncio.run(spawn())
    assert asyncio.run(end(spawned)).method == "terminated"


def test_a_failed_spawn_gives_the_reason() -> None:
    async def spawn(command: str, **options: str) -> SpawnResult:
        return await SubprocessPrimitive().spawn(command, [], **options)  # type: ignore[arg-type] # log_path only

    missing = asyncio.run(spawn("no-such-command"))
    assert missing == SpawnResult(
        success=False, error="Failed to spawn: no-such-command: No such file or directory"
    )
    no_log = asyncio.run(spawn("true", log_path="/no/such/log"))
    assert no_log.error == "log file /no/such/log: No such file or directory"
    assert asyncio.run(spawn("a\0b")).error == (
        "command contains a NUL byte, which no program can be given; remove it"
    )


def test_an_invalid_environment_is_reported() -> None:
    async def main() -> SpawnResult:
        return await SubprocessPrimitive().spawn("true", [], envs={"A": 1})  # type: ignore[dict-item] # on purpose

    assert asyncio.run(main()).error == "env['A'] must be a string, got int"


def test_a_number_that_cannot_be_a_pid_is_refused() -> None:
    async def main() -> None:
        primitive = SubprocessPrimitive()
        killed = await primitive.kill(-5)
        assert killed == KillResult(
            success=False, pid=-5, error="pid must be a positive number below 2147483648, got -5"
        )
        assert (await primitive.status(0)).alive is False

    asyncio.run(main())


def test_arguments_of_the_wrong_type_give_a_failed_result() -> None:
    async def main() -> None:
        primitive: Any = SubprocessPrimitive()
        assert (await primitive.spawn("true", "abc")).error == (
            "args must be a list of strings, got str"
        )
        assert (await primitive.spawn(b"true", [])).error == "cmd must be a path, got bytes"
        assert (await primitive.kill({1})).error == "pid must be a number, got set"
        assert (await primitive.kill(1, grace=float("nan"))).error == (
            "grace must be a finite number of seconds"
        )
        assert (await primitive.status("1")).alive is False

    asyncio.run(main())
