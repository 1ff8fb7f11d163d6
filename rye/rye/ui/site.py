"""What all pages share: the context of the machine, the catalogue, the history, and the session."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.requests import Request

from rye.context import Context
from rye.live.folder import PresentPage
from rye.live.seen import SeenRuns
from rye.live.watch import Watch
from rye.ui.batch_readings import Readings
from rye.ui.calls import Calls
from rye.ui.checkup import Checkups

if TYPE_CHECKING:
    from rye.catalogue.catalogue import Catalogue
    from rye.executor.locks.pins import PinCheck
    from rye.executor.run.prepare import Preparer
    from rye.history.store import History
    from rye.trust.store import TrustStore


class Site:
    """One server of the page. Its methods may be called by several threads."""

    def __init__(self, context: Context, *, may_run: bool) -> None:
        self.context = context
        self.may_run = may_run
        """True if the page may act, that is if it was started with ``--run``."""
        self.stopping = asyncio.Event()
        """Set when the server ends, so that open streams end."""
        self.live = SeenRuns()
        """The calls under way, and those that ended while the page ran."""
        self.calls = Calls(context, self.live)
        """Starts calls."""
        self._watch = Watch(context.user_space, self.live)
        self.batches = Readings()
        """What was read of batches."""
        self.checkups = Checkups(context)
        """What ``rye doctor`` finds."""
        self._catalogue: Catalogue | None = None
        self._catalogue_lock = threading.Lock()
        self._trust: TrustStore | None = None
        self._trust_lock = threading.Lock()
        self._preparer: Preparer | None = None
        self._preparer_lock = threading.Lock()
        self.pins: dict[Path, PinCheck] = {}
        """The last check of each lockfile; the lock of the preparer guards it."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watch calls and run tools during the block. All calls of the page have ended after it."""
        page = PresentPage(self.context.user_space) if self.may_run else None
        try:
            async with self._watch.running(), self.calls.running():
                ending = asyncio.create_task(self._end())
                try:
                    yield
                finally:
                    ending.cancel()
        finally:
            if page is not None:
                page.close()

    async def _end(self) -> None:
        await self.stopping.wait()
        await self.calls.end_replays()

    @contextmanager
    def catalogue(self) -> Iterator[Catalogue]:
        """The catalogue, for one thread at a time; it remembers the files that it read."""
        from rye.catalogue.catalogue import Catalogue

        with self._catalogue_lock:
            if self._catalogue is None:
                self._catalogue = Catalogue(self.context)
            yield self._catalogue

    def trust_store(self) -> TrustStore:
        """The trust store as it is now; it remembers the signatures that it verified."""
        from rye.cache.disk import cache_of
        from rye.trust.store import TrustStore

        with self._trust_lock:
            if self._trust is None:
                self._trust = TrustStore(self.context, disk_cache=cache_of(self.context.user_space))
            self._trust.stamp()
            return self._trust

    @contextmanager
    def preparer(self) -> Iterator[Preparer]:
        """What prepares calls, for one thread at a time; it remembers what it verified."""
        from rye.executor.run.prepare import Preparer
        from rye.executor.run.primitives import PRIMITIVE_MAP

        with self._preparer_lock:
            if self._preparer is None:
                self._preparer = Preparer(self.context, PRIMITIVE_MAP)
            yield self._preparer

    @contextmanager
    def history(self) -> Iterator[History]:
        """The history, opened for this request. Raises ``HistoryError`` if it cannot be read."""
        from rye.history.store import opened

        with opened(self.context) as history:
            yield history


def site_of(request: Request) -> Site:
    """Return the site that answers a request."""
    site: Site = request.app.state.site
    return site
