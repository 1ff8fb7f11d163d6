"""One wait for the disk for many calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class GroupSync:
    """Lets everybody who wrote before a wait began share that wait.

    A disk takes as long for one entry as for a thousand. So the rate of a batch is not limited to
    one call for each wait, and the event loop goes on meanwhile.
    """

    def __init__(self, sync: Callable[[], Awaitable[None]]) -> None:
        """``sync`` returns when everything written before it was called is on the disk."""
        self._sync = sync
        self._turn = asyncio.Lock()
        self._written = 0
        self._synced = 0

    async def wait(self) -> None:
        """Return when what was written before this call is on the disk."""
        self._written += 1
        mine = self._written
        async with self._turn:
            if self._synced >= mine:
                return
            written = self._written
            await self._sync()
            self._synced = written
