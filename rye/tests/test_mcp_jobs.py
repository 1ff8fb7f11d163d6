"""A call ends with whoever wanted it, and not before its job has ended."""

from __future__ import annotations

import asyncio

import anyio
from rye.executor.run.result import ExecutionResult
from rye.mcp.jobs import Jobs


def test_a_cancelled_call_is_over_only_when_its_job_is() -> None:
    begun, ended = asyncio.Event(), False

    async def job() -> ExecutionResult:
        nonlocal ended
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            # As a job waits for the end of its processes.
            for _ in range(10):
                await asyncio.sleep(0)
            ended = True
        raise AssertionError("nobody ends it otherwise")

    async def run() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(Jobs().run, job(), None)
            await begun.wait()
            group.cancel_scope.cancel()
        assert ended

    asyncio.run(run())
