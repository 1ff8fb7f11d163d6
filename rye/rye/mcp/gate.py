"""How many calls run at once: ``--max-calls N``. As many again may wait; more are refused."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rye.errors import BusyError


class Gate:
    """Counts the calls of a server. Without a limit, every call passes."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._inside = 0
        self._slots = asyncio.Semaphore(limit or 1)

    def place(self) -> Place:
        """Return the place of one call, to be used in a ``with`` block."""
        return Place(self)

    def enter(self) -> None:
        """Count a call. Raises ``BusyError`` if too many are running and waiting."""
        if self._limit is not None and self._inside >= 2 * self._limit:
            calls = "call runs" if self._limit == 1 else "calls run"
            limit = f"{self._limit} {calls} at once, and as many wait"
            raise BusyError(f"the server is busy: at most {limit}", hint="call again later")
        self._inside += 1

    def come_back(self) -> None:
        """Count a call again that was set aside."""
        self._inside += 1

    def leave(self) -> None:
        """Stop counting a call."""
        self._inside -= 1

    async def take_slot(self) -> bool:
        """Wait for a slot; return True if that took time."""
        waited = self._slots.locked()
        await self._slots.acquire()
        return waited

    def free_slot(self) -> None:
        """Let the next call run."""
        self._slots.release()

    @property
    def is_limited(self) -> bool:
        """True if there is a limit."""
        return self._limit is not None


class Place:
    """One call: it waits from the start of the block, and runs after :meth:`run`.

    A call that waits for the user's approval does not keep others from waiting and running: its
    client may never come back.
    """

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._has_slot = False

    def __enter__(self) -> Self:
        self._gate.enter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._has_slot:
            self._gate.free_slot()
        self._gate.leave()

    @contextmanager
    def set_aside(self) -> Iterator[None]:
        """A block during which the call is not counted."""
        self._gate.leave()
        try:
            yield
        finally:
            self._gate.come_back()

    async def run(self) -> bool:
        """Wait until the call may run; return True if that took time."""
        if not self._gate.is_limited:
            return False
        waited = await self._gate.take_slot()
        self._has_slot = True
        return waited
