"""The catalogue, asked without holding up the calls that run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from rye.context import Context

if TYPE_CHECKING:
    from rye.catalogue.catalogue import Catalogue

T = TypeVar("T")


class CatalogueReader:
    """Reads files in a thread, one question at a time. Nothing is loaded before the first."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._catalogue: Catalogue | None = None
        self._one_at_a_time = asyncio.Lock()

    async def ask(self, question: Callable[[Catalogue], T]) -> T:
        """What ``question`` gives, or raises."""
        async with self._one_at_a_time:
            return await asyncio.to_thread(self._ask, question)

    def _ask(self, question: Callable[[Catalogue], T]) -> T:
        if self._catalogue is None:
            from rye.catalogue.catalogue import Catalogue

            self._catalogue = Catalogue(self._context)
        return question(self._catalogue)
