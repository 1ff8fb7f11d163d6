"""A single HTTP call with a new client, for tests."""

from __future__ import annotations

import asyncio
from typing import Any

from lilux.primitives.http_client import HttpClientPrimitive, HttpResult


def call(config: Any, params: Any = None, *, environ: dict[str, str] | None = None) -> HttpResult:
    """Make the call in a new event loop, and close the client."""

    async def body() -> HttpResult:
        async with HttpClientPrimitive(environ=environ or {}) as http:
            return await http.execute(config, params)

    return asyncio.run(body())
