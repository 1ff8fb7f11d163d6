"""The tools that the server offers: names, pages and definitions.

The built-in tools are always listed. The others come from the catalogue: the featured tools of the
project, or all tools. Names are computed over all tools together, so that the name of a tool does
not depend on which tools are featured.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rye.context import Context
from rye.errors import RyeError
from rye.mcp.builtin_tools import RESERVED, builtin_tools
from rye.mcp.featured import Featured, read_featured
from rye.mcp.protocol.errors import INVALID_PARAMS, ProtocolError
from rye.mcp.protocol.types import Tool
from rye.mcp.settings import ServerSettings

if TYPE_CHECKING:
    from rye.catalogue.catalogue import Catalogue
    from rye.catalogue.entry import CatalogueEntry

T = TypeVar("T")

PAGE_SIZE = 250
"""Clients built with the SDK follow at most a hundred pages, and a project may have ten thousand
tools."""

_CURSOR_PREFIX = "after:"
_MAX_QUOTED = 200
_MAX_UNLISTED = 20
_NAME_IS_RESERVED = "the server has a built-in tool of this name; run it with `execute`"
_logger = logging.getLogger("rye.mcp")


class CatalogueReader:
    """Queries the catalogue in a thread, so that running calls are not delayed.

    Queries run one at a time; the first one loads the catalogue.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._catalogue: Catalogue | None = None
        self._lock = asyncio.Lock()

    async def ask(self, query: Callable[[Catalogue], T]) -> T:
        """Return what ``query`` returns for the catalogue, or raise what it raises."""
        async with self._lock:
            return await asyncio.to_thread(self._ask, query)

    def _ask(self, query: Callable[[Catalogue], T]) -> T:
        if self._catalogue is None:
            from rye.catalogue.catalogue import Catalogue

            self._catalogue = Catalogue(self._context)
        return query(self._catalogue)


class Page(NamedTuple):
    """One page of the list, and the cursor of the next one."""

    tools: list[Tool]
    next_cursor: str | None


class ToolList:
    """The tools that a client may list, and call by their names."""

    def __init__(
        self, context: Context, settings: ServerSettings, catalogue: CatalogueReader
    ) -> None:
        """Read the project's config. Raises :class:`ItemFormatError` and ``OSError``."""
        self._context = context
        self._settings = settings
        self._builtin = builtin_tools(allow_sign=settings.allow_sign)
        self._featured = Featured() if settings.all_tools else read_featured(context)
        self._catalogue = catalogue
        self._named: Mapping[str, CatalogueEntry] | None = None
        self._warned: set[str] = set()

    def features(self, item_id: str) -> bool:
        """True if the project features the item."""
        return any(fnmatchcase(item_id, one) for one in self._featured.patterns)

    async def page(self, cursor: str | None) -> Page:
        """Return the tools after ``cursor``. Raises ``ProtocolError`` for an unknown cursor."""
        after = _read_cursor(cursor)
        # All pages of one list come from the same look at the files.
        known = self._named if after is not None else None
        named = await self.refresh() if known is None else known
        tools = list(self._builtin) if after is None else []
        names = list(named)
        start = 0 if after is None else bisect_right(names, after)
        shown = names[start : start + PAGE_SIZE - len(tools)]
        more = start + len(shown) < len(names)
        if shown:
            tools += await asyncio.to_thread(self._tools, {name: named[name] for name in shown})
        return Page(tools, _write_cursor(shown[-1]) if more else None)

    async def entry_of(self, name: str) -> CatalogueEntry:
        """Return the id of the tool that is listed as ``name``.

        Raises ``ProtocolError`` if there is none.
        """
        named = self._named
        if named is None or name not in named:
            named = await self.refresh()
        if name not in named:
            known = [*(tool.name for tool in self._builtin), *named]
            nearest = await asyncio.to_thread(_nearest, name, known)
            advice = f"did you mean {', '.join(nearest)}?" if nearest else "see tools/list"
            raise ProtocolError(
                INVALID_PARAMS,
                f"no tool is named {name[:_MAX_QUOTED]!r}; {advice} "
                "(run unlisted tools with `execute`)",
                {"nearest": nearest},
            )
        return named[name]

    def builtin(self, name: str) -> Tool | None:
        """Return the built-in tool of this name, if it is offered."""
        return next((tool for tool in self._builtin if tool.name == name), None)

    def schema_of(self, name: str) -> Mapping[str, Any] | None:
        """Return the input schema of a listed tool; the SDK checks HTTP headers against it."""
        builtin = self.builtin(name)
        if builtin is not None:
            return builtin.input_schema
        entry = (self._named or {}).get(name)
        return None if entry is None else entry.schema

    async def refresh(self) -> Mapping[str, CatalogueEntry]:
        """Read the files again and return the listed tools, without the built-in ones, by name."""
        if not (self._settings.all_tools or self._featured.patterns):
            self._named = {}
            return self._named
        self._named = await self._catalogue.ask(lambda catalogue: self._choose(catalogue.entries()))
        return self._named

    async def reload(self) -> None:
        """Read the config again after a change. An invalid config changes nothing."""
        self._named = None
        if self._settings.all_tools:
            return
        try:
            self._featured = await asyncio.to_thread(read_featured, self._context)
        except (RyeError, OSError) as error:
            _logger.warning("%s", error)

    async def warn_unconfined(self) -> None:
        """Log that offered tools are not confined, if there are any."""
        if self._settings.confined:
            return
        offers = self._settings.offers

        def unconfined(catalogue: Catalogue) -> list[str]:
            found = [one for one in catalogue.summaries() if one.is_tool and not one.confined]
            return [one.item_id for one in found if offers(one.item_id, confined=False)]

        found = await self._catalogue.ask(unconfined)
        if found:
            tools = "1 offered tool is" if len(found) == 1 else f"{len(found):,} offered tools are"
            self._warn(
                f"{tools} not confined, such as {found[0]!r}: an agent that runs it can do what "
                "you can, also sign and trust; see `rye permissions`, or use --confined"
            )

    def _choose(self, entries: tuple[CatalogueEntry, ...]) -> dict[str, CatalogueEntry]:
        from rye.catalogue.definitions import by_mcp_name

        if self._settings.all_tools:
            wanted = tuple([entry for entry in entries if entry.is_tool])
        else:
            wanted = self._featured.of(entries)
            for missing in self._featured.missing_from(entries):
                self._warn(f"featured tool {missing!r} does not exist")
        offers = self._settings.offers
        chosen = {one.item_id for one in wanted if offers(one.item_id, confined=one.confined)}
        named = {}
        unlisted = {}
        for name, entry in by_mcp_name(entries).items():
            if entry.item_id not in chosen:
                continue
            if entry.fault:
                unlisted[entry.item_id] = entry.fault
            elif name in RESERVED:
                unlisted[entry.item_id] = _NAME_IS_RESERVED
            else:
                named[name] = entry
        self._warn_unlisted(unlisted)
        return dict(sorted(named.items()))

    def _tools(self, named: Mapping[str, CatalogueEntry]) -> list[Tool]:
        """Return the definitions of the tools that have a trusted signature and a valid schema.

        Clients pass listed descriptions on to their agents unasked, so a trusted key must have
        signed them. One invalid schema would make clients reject the whole list.
        """
        from lilux.primitives.errors import SchemaError
        from lilux.schemas.schema_validator import compile_once

        from rye.trust.operations import verify_paths

        reports = verify_paths([Path(entry.path) for entry in named.values()], self._context)
        tools = []
        unlisted = {}
        for (name, entry), report in zip(named.items(), reports, strict=True):
            tool = _tool(name, entry)
            try:
                if report.error is not None:
                    raise report.error
                compile_once(tool.input_schema)
            except (RyeError, SchemaError) as error:
                unlisted[entry.item_id] = str(error)
            else:
                tools.append(tool)
        self._warn_unlisted(unlisted)
        return tools

    def _warn_unlisted(self, reasons: Mapping[str, str]) -> None:
        """Log why tools are not listed, by id: the first of them, then the number of the rest."""
        lines = [f"{item_id!r} is not listed: {reason}" for item_id, reason in reasons.items()]
        new = [line for line in lines if line not in self._warned]
        for line in new[:_MAX_UNLISTED]:
            self._warn(line)
        self._warned.update(new)
        rest = len(new) - _MAX_UNLISTED
        if rest > 0:
            tools = "tool is" if rest == 1 else "tools are"
            self._warn(f"{rest:,} more {tools} not listed; see `rye verify` and `rye doctor`")

    def _warn(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            _logger.warning("%s", message)


def _tool(name: str, entry: CatalogueEntry) -> Tool:
    import msgspec

    from rye.catalogue.definitions import definition

    return msgspec.convert(definition(entry, "mcp", name=name), Tool)


def _nearest(name: str, known: Sequence[str]) -> list[str]:
    from rye.suggestions import closest_ids

    return closest_ids(name, known)


def _write_cursor(name: str) -> str:
    return base64.urlsafe_b64encode(f"{_CURSOR_PREFIX}{name}".encode()).decode()


def _read_cursor(cursor: str | None) -> str | None:
    if cursor is None:
        return None
    try:
        text = base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        text = ""
    if not text.startswith(_CURSOR_PREFIX):
        raise ProtocolError(
            INVALID_PARAMS,
            "the cursor is not one that this server returned; list again from the start",
        )
    return text.removeprefix(_CURSOR_PREFIX)
