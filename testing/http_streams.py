"""HTTP calls in stream mode, and a sink that records events, for tests."""

from __future__ import annotations

import asyncio
from typing import Any

from lilux.primitives.http_client import HttpClientPrimitive, HttpResult, Timing

SECRET = "sk-marked-0123456789"  # noqa: S105 - the marked secret of the tests
"""The value of ``${API_KEY}`` in a call."""


class ListSink:
    """Records its events and how often it was closed."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.closed = 0

    async def write(self, data: str) -> None:
        self.seen.append(data)

    async def close(self) -> None:
        self.closed += 1


async def _no_wait(_seconds: float) -> None:
    await asyncio.sleep(0)


def stream(config: dict[str, Any], *sinks: Any, **params: Any) -> HttpResult:
    """Make a call in stream mode, in a new loop, without waits between retries."""

    async def body() -> HttpResult:
        timing = Timing(sleep=_no_wait)
        async with HttpClientPrimitive(timing=timing, environ={"API_KEY": SECRET}) as http:
            given = {"__sinks": list(sinks), **params} if sinks else params
            return await http.execute({"mode": "stream", **config}, given)

    return asyncio.run(body())
