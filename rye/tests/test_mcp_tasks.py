"""Cancelled calls wait for their processes to end."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import anyio
import pytest
from rye.mcp.open_calls import OpenCall, OpenCalls
from rye.mcp.protocol.errors import ProtocolError
from rye.mcp.protocol.types import (
    CallToolParams,
    CallToolResult,
    ClientCapabilities,
    InputRequiredResult,
)
from rye.mcp.request import Request


class ARequest:
    """A request over stdio, which has no event for a lost connection."""

    disconnected = None
    capabilities = ClientCapabilities(elicitation={})

    def __init__(self, era: str = "handshake", token_name: str = "") -> None:
        self.era = era
        self.token_name = token_name


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


def test_a_parked_call_is_not_continued_with_another_token() -> None:
    async def work(call: OpenCall) -> CallToolResult:
        await call.elicit({"message": "Go on?"})
        return CallToolResult([], is_error=False)

    async def run() -> None:
        calls = OpenCalls()
        ada, bob = [cast("Request", ARequest("stateless", name)) for name in ("ada", "bob")]
        asked = await calls.begin(ada, CallToolParams("it"), work)
        assert isinstance(asked, InputRequiredResult)
        again = CallToolParams(
            "it",
            input_responses={"question": {"action": "accept"}},
            request_state=asked.request_state,
        )
        with pytest.raises(ProtocolError, match="belongs to another call"):
            await calls.resume(bob, again)
        assert isinstance(await calls.resume(ada, again), CallToolResult)

    asyncio.run(run())
