"""Requests that cannot be read are answered; left alone, their client would wait for ever.

An agent's text may hold half of a surrogate pair, which JSON can spell and no Unicode text can be.
"""

from __future__ import annotations

import json
from typing import Any

import anyio
from mcp import types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError


class Answered:
    """The messages of a client, without those that are none; as much of a stream as is read."""

    def __init__(self, incoming: Any, outgoing: Any) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    @property
    def last_context(self) -> Any:
        """Which the SDK takes along with each message."""
        return self._incoming.last_context

    def __aiter__(self) -> Answered:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> SessionMessage:
        """The next message. Raises ``EndOfStream`` when the client has left."""
        while True:
            item: SessionMessage | Exception = await self._incoming.receive()
            if isinstance(item, SessionMessage):
                return item
            number = _asked_under(item)
            if number is not None:
                await self._outgoing.send(_refusal(number))

    async def aclose(self) -> None:
        """Nothing more is read."""
        await self._incoming.aclose()


def _refusal(number: int | str) -> SessionMessage:
    error = types.ErrorData(
        code=types.INVALID_REQUEST,
        message="the request cannot be read; send a request of JSON-RPC 2.0 in valid Unicode, "
        "nested less deeply",
    )
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=number, error=error))


def _asked_under(fault: Exception) -> int | str | None:
    """The id under which the client waits for an answer, if it does."""
    if not isinstance(fault, ValidationError):
        return None
    for found in fault.errors(include_url=False, include_context=False):
        message = found["input"]
        if isinstance(message, str):
            message = _decoded(message)
        if isinstance(message, dict) and "method" in message:
            number = message.get("id")
            if isinstance(number, str):
                return number if number.isascii() else None
            return number if type(number) is int else None
    return None


def _decoded(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
