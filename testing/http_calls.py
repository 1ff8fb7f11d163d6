"""One HTTP call with a client of its own, for tests."""

from __future__ import annotations

import asyncio
from typing import Any

from lilux.primitives.http_client import HttpClientPrimitive, HttpResult


def call(config: Any, params: Any = None, *, environ: dict[str, str] | None = None) -> HttpResult:
    """Makes the call in a loop of its own and closes the client."""

    async def body() -> HttpResult:
        async with HttpClientPrimitive(environ=environ or {}) as http:
            return await http.execute(config, params)

    return asyncio.run(body())
