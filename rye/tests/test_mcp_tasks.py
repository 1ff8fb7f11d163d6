"""Cancelled calls wait for their processes to end."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import anyio
from rye.mcp.open_calls import OpenCall, OpenCalls
from rye.mcp.protocol.types import CallToolParams, CallToolResult
from rye.mcp.request import Request


class ARequest:
    """A request over stdio, which has no event for a lost connection."""

    era = "handshake"
    disconnected = None
    token_name = ""


def test_a_cancelled_call_returns_only_after_it_has_ended() -> None:
    started, ended = asyncio.Event(), False

    async def work(_call: OpenCall) -> CallToolResult:
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
        request = cast("Request", ARequest())
        begin: Any = OpenCalls().begin
        async with anyio.create_task_group() as group:
            group.start_soon(begin, request, CallToolParams("slow"), work)
            await started.wait()
            group.cancel_scope.cancel()
        assert ended

    asyncio.run(run())
