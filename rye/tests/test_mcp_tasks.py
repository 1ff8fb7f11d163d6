"""Cancelled calls wait for their processes to end."""

from __future__ import annotations

import asyncio

import anyio
from rye.executor.run.result import ExecutionResult
from rye.mcp.tasks import RunningCalls


def test_a_cancelled_call_returns_only_after_it_has_ended() -> None:
    started, ended = asyncio.Event(), False

    async def call() -> ExecutionResult:
        nonlocal ended
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            # A call waits for its processes to end.
            for _ in range(10):
                await asyncio.sleep(0)
            ended = True
        raise AssertionError("the call was not cancelled")

    async def run() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(RunningCalls().run, call(), None)
            await started.wait()
            group.cancel_scope.cancel()
        assert ended

    asyncio.run(run())
