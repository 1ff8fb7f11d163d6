"""The sinks that receive the events of a stream. A failing sink does not affect the others."""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from lilux.primitives.http_client.config import InvalidConfigError

SINKS_KEY = "__sinks"
_CLOSE_SECONDS = 5.0
_MAX_DETAIL = 500


class Sink(Protocol):
    """A destination of events. It is closed exactly once."""

    async def write(self, data: str) -> None:
        """Receive the data of one event."""

    async def close(self) -> None:
        """Release resources; called after the last event."""


class ReturnSink:
    """Keeps events for the result: the first ``max_size``, within ``max_bytes`` of UTF-8.

    The first event that does not fit and all after it are dropped. ``dropped`` counts them, and
    the result reports them (``truncated``, ``sink_errors``).
    """

    def __init__(self, max_size: int = 10_000, *, max_bytes: int = 10 * 1024 * 1024) -> None:
        self.max_size = max_size
        self.max_bytes = max_bytes
        self.events: list[str] = []
        self.dropped = 0
        self._bytes = 0

    async def write(self, data: str) -> None:
        """Keep ``data``, or count it as dropped."""
        size = len(data.encode("utf-8", errors="surrogatepass"))
        full = len(self.events) >= self.max_size or self._bytes + size > self.max_bytes
        if self.dropped or full:
            self.dropped += 1
            return
        self._bytes += size
        self.events.append(data)

    async def close(self) -> None:
        """Do nothing."""


class SinkFan:
    """Passes each event to every working sink, in the order of the list."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self.count = 0
        """The number of dispatched events."""
        self.scrub: Callable[[str], str] = str
        """Applied to the error texts of sinks."""
        self._sinks = list(sinks)
        self._failed: dict[int, tuple[str, str]] = {}
        self._closed = False

    @property
    def names(self) -> list[str]:
        """The class name of each sink."""
        return [type(sink).__name__ for sink in self._sinks]

    def add(self, sink: Sink) -> None:
        """Send the events to ``sink`` too."""
        self._sinks.append(sink)

    @property
    def alive(self) -> bool:
        """False once every sink has failed."""
        return len(self._failed) < len(self._sinks)

    @property
    def events(self) -> list[str] | None:
        """The events of the first ``ReturnSink``, or ``None`` without one."""
        return next((s.events for s in self._sinks if isinstance(s, ReturnSink)), None)

    @property
    def truncated(self) -> bool:
        """True if a ``ReturnSink`` dropped events."""
        return any(isinstance(sink, ReturnSink) and sink.dropped for sink in self._sinks)

    def errors(self) -> list[str] | None:
        """Return a line for each sink that failed or dropped events, or ``None``."""
        if not self._sinks:
            return None
        names = self.names
        lines = [
            # Scrubbed before it is cut, since a part of a secret would not be recognised.
            f"{names[i]}: {what}{self.scrub(detail)[:_MAX_DETAIL]}"
            for i, (what, detail) in sorted(self._failed.items())
        ]
        lines += [
            f"{type(sink).__name__}: {sink.dropped} events did not fit and were dropped; "
            "raise max_size or max_bytes"
            for sink in self._sinks
            if isinstance(sink, ReturnSink) and sink.dropped
        ]
        return lines or None

    async def write(self, data: str, *, seconds: float) -> None:
        """Dispatch one event. A sink that raises, or takes longer, gets no further events."""
        self.count += 1
        for index, sink in enumerate(self._sinks):
            if index not in self._failed:
                await self._guard(index, "write", functools.partial(sink.write, data), seconds)

    async def close(self) -> None:
        """Close every sink once, in at most 5 s each; a cancellation is raised after that."""
        if self._closed:
            return
        self._closed = True
        if not self._sinks:
            return
        closing = asyncio.ensure_future(self._close_all())
        cancelled: asyncio.CancelledError | None = None
        while not closing.done():
            try:
                await asyncio.shield(closing)
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled

    async def _close_all(self) -> None:
        seen: set[int] = set()
        for index, sink in enumerate(self._sinks):
            if id(sink) in seen:
                continue
            seen.add(id(sink))
            await self._guard(index, "close", sink.close, _CLOSE_SECONDS)

    async def _guard(
        self, index: int, verb: str, call: Callable[[], Awaitable[None]], seconds: float
    ) -> None:
        try:
            async with asyncio.timeout(seconds) as limit:
                outcome = call()
                if inspect.isawaitable(outcome):
                    await outcome
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            self._fail(index, verb, error)
        except TimeoutError as error:
            if limit.expired():
                self._failed.setdefault(index, (f"{verb} took longer than {seconds:g} seconds", ""))
            else:
                self._fail(index, verb, error)
        except Exception as error:  # noqa: BLE001 - a sink is user code and may raise anything
            self._fail(index, verb, error)

    def _fail(self, index: int, verb: str, error: BaseException) -> None:
        detail = str(error)
        what = f"{verb} failed: {type(error).__name__}" + (": " if detail else "")
        self._failed.setdefault(index, (what, detail))


def sort_sinks(params: Any) -> tuple[list[Any], InvalidConfigError | None]:
    """Return the usable sinks of ``params``, and the first problem, if any.

    The usable sinks are returned even then, since they must be closed.
    """
    if not isinstance(params, Mapping):
        return [], InvalidConfigError(f"params: expected a dict, got {type(params).__name__}")
    value = params.get(SINKS_KEY)
    if value is None:
        return [], None
    if not isinstance(value, (list, tuple)):
        reason = f"{SINKS_KEY}: expected a list of sinks, got {type(value).__name__}"
        return [], InvalidConfigError(reason)
    usable: list[Any] = []
    problem: InvalidConfigError | None = None
    for index, sink in enumerate(value):
        if callable(getattr(sink, "write", None)) and callable(getattr(sink, "close", None)):
            usable.append(sink)
        elif problem is None:
            problem = InvalidConfigError(
                f"{SINKS_KEY}[{index}]: {type(sink).__name__} is not a sink",
                "it needs async write(data) and close()",
            )
    return usable, problem
