"""Which calls of an executor run in a copy of a prepared process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from lilux.primitives.errors import NotPreparedError

from rye.context import Context
from rye.executor.run.prepare import PreparedCall
from rye.spaces.ids import SUBPROCESS
from rye.warm.reasons import keep_reason, may_be_prepared
from rye.warm.request import WarmRequest
from rye.warm.settings import WarmConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rye.cache.disk import DiskCache
    from rye.warm.pool import WarmPool


class Warmth:
    """The prepared processes of an executor."""

    def __init__(
        self,
        context: Context,
        disk_cache: DiskCache,
        *,
        enabled: bool = True,
        at_once: Callable[[str], bool] | None = None,
    ) -> None:
        """``at_once`` returns true for the ids of tools that need no second call."""
        self._enabled = enabled
        self._at_once = at_once
        self._disk_cache = disk_cache
        self._config = WarmConfig(context, disk_cache)
        self._pool: WarmPool | None = None

    @property
    def pool(self) -> WarmPool:
        """Made when a call could use it first."""
        if self._pool is None:
            from rye.warm.pool import WarmPool

            self._pool = WarmPool(self._config.current, self._note)
        return self._pool

    async def run(
        self, call: PreparedCall, run: Callable[[Any], Awaitable[Any]]
    ) -> tuple[Any, bool]:
        """The result of ``run(prepared process or None)``, and whether there was one.

        A process that cannot take the call has done nothing, so the call is made again without.
        """
        request = self._request(call) if self._enabled else None
        if request is not None:
            at_once = self._at_once is not None and self._at_once(request.tool)
            # A tool that is called again gets compiled modules.
            soon = not call.placement.compiled
            process = self.pool.process(request, at_once=at_once, changes_soon=soon)
            if process is not None:
                try:
                    return await run(process), True
                except NotPreparedError as error:
                    self.pool.failed(process, request, error)
        return await run(None), False

    async def aclose(self) -> None:
        """End all prepared processes."""
        if self._pool is not None:
            await self._pool.aclose()

    def _request(self, call: PreparedCall) -> WarmRequest | None:
        config = call.config.config
        if call.config.primitive_id != SUBPROCESS or not may_be_prepared(
            [one.metadata for one in call.chain]
        ):
            return None
        if config.get("background") == "keep" or config.get("observe"):
            return None
        return WarmRequest(tool=call.chain[0].item_id, closure=call.closure.digest, config=config)

    def _note(self, closure: str, reason: str) -> None:
        keep_reason(self._disk_cache, closure, reason)
        self._disk_cache.flush()
