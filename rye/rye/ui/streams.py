"""Server-sent events."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from starlette.responses import StreamingResponse

if TYPE_CHECKING:
    from rye.ui.page import Event

_ALIVE_SECONDS = 15.0
_LINE_END = re.compile(r"\r\n|\r|\n")


class EventStream(StreamingResponse):
    """A response of events, with a comment now and then, so that a lost reader is noticed."""

    def __init__(self, events: AsyncIterator[Event], stopping: asyncio.Event) -> None:
        super().__init__(_lines(events, stopping), media_type="text/event-stream")


async def _lines(events: AsyncIterator[Event], stopping: asyncio.Event) -> AsyncIterator[str]:
    stopped: asyncio.Future[Any] = asyncio.ensure_future(stopping.wait())
    following: asyncio.Future[Any] | None = None
    try:
        yield ": open\n\n"
        while not stopping.is_set():
            if following is None:
                following = asyncio.ensure_future(anext(events))
            await asyncio.wait(
                {following, stopped}, timeout=_ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if not following.done():
                yield ": alive\n\n"
                continue
            try:
                event: Event = following.result()
            except StopAsyncIteration:
                return
            following = None
            yield text_of(event)
        # Otherwise the browser would keep asking, even a program that gets this port later.
        yield "event: end\ndata:\n\n"
    finally:
        stopped.cancel()
        if following is not None:
            following.cancel()


def text_of(event: Event) -> str:
    """Return an event as its lines; a line end in its data cannot begin another field."""
    data = "".join([f"data: {line}\n" for line in _LINE_END.split(event.data)])
    place = f"id: {event.place}\n" if event.place else ""
    return f"event: {event.name}\n{place}{data}\n"
