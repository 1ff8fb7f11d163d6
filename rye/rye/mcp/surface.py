"""Which tools are offered, and what a name leads to.

The server's own tools are always there. The others come from the catalogue: those that the project
features, or all. Names are given to all tools together, so that a name does not depend on what is
featured.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp import types
from mcp.shared.exceptions import MCPError

from rye.context import Context
from rye.errors import RyeError
from rye.mcp.featured import Featured, read_featured
from rye.mcp.own_tools import RESERVED, own_tools
from rye.mcp.reading import CatalogueReader
from rye.mcp.settings import ServerSettings

if TYPE_CHECKING:
    from rye.catalogue.entry import CatalogueEntry

PAGE_SIZE = 250
"""Clients of the SDK follow a hundred pages at most, and there may be ten thousand tools."""

_CURSOR_MARK = "after:"
_MAX_QUOTED = 200
_logger = logging.getLogger("rye.mcp")


class Page(NamedTuple):
    """A part of the list, and where the next one begins."""

    tools: list[types.Tool]
    next_cursor: str | None


class Surface:
    """The tools that a client may list and call."""

    def __init__(
        self, context: Context, settings: ServerSettings, catalogue: CatalogueReader
    ) -> None:
        """Reads what the project features. Raises :class:`ItemFormatError` and ``OSError``."""
        self._context = context
        self._settings = settings
        self._own = own_tools(allow_sign=settings.allow_sign)
        self._featured = Featured() if settings.all_tools else read_featured(context)
        self._catalogue = catalogue
        self._named: Mapping[str, CatalogueEntry] | None = None
        self._warned: set[str] = set()

    async def page(self, cursor: str | None) -> Page:
        """The tools after ``cursor``. Raises ``MCPError`` for a cursor that is none of ours."""
        after = _read_cursor(cursor)
        # One list is told from one look at the files, however many pages it has.
        known = self._named if after is not None else None
        named = await self.refresh() if known is None else known
        tools = list(self._own) if after is None else []
        names = list(named)
        start = 0 if after is None else bisect_right(names, after)
        shown = names[start : start + PAGE_SIZE - len(tools)]
        more = start + len(shown) < len(names)
        if shown:
            tools += await asyncio.to_thread(self._tools, {name: named[name] for name in shown})
        return Page(tools, _write_cursor(shown[-1]) if more else None)

    async def item_of(self, name: str) -> str:
        """The id of the tool that is listed under ``name``. Raises ``MCPError`` if none is."""
        named = self._named
        if named is None or name not in named:
            named = await self.refresh()
        if name not in named:
            known = [*(tool.name for tool in self._own), *named]
            nearest = await asyncio.to_thread(_nearest, name, known)
            todo = f"did you mean {', '.join(nearest)}?" if nearest else "see tools/list"
            raise MCPError(
                code=types.INVALID_PARAMS,
                message=f"there is no tool named {name[:_MAX_QUOTED]!r}; {todo} "
                "(tools that are not listed run by `execute`)",
                data={"nearest": nearest},
            )
        return named[name].item_id

    def own_tool(self, name: str) -> types.Tool | None:
        """The server's own tool of that name, if it is offered."""
        return next((tool for tool in self._own if tool.name == name), None)

    def schema_of(self, name: str) -> Mapping[str, Any] | None:
        """The input schema of a tool that was listed; for the SDK's check of HTTP headers."""
        own = self.own_tool(name)
        if own is not None:
            return own.input_schema
        entry = (self._named or {}).get(name)
        return None if entry is None else entry.schema

    async def refresh(self) -> Mapping[str, CatalogueEntry]:
        """The tools beside the server's own, in the order of their names, as the files are now."""
        if not (self._settings.all_tools or self._featured.patterns):
            self._named = {}
            return self._named
        self._named = await self._catalogue.ask(lambda catalogue: self._choose(catalogue.entries()))
        return self._named

    async def reread(self) -> None:
        """Files changed. A config that cannot be read leaves what was featured before."""
        self._named = None
        if self._settings.all_tools:
            return
        try:
            self._featured = await asyncio.to_thread(read_featured, self._context)
        except (RyeError, OSError) as error:
            _logger.warning("%s", error)

    def _choose(self, entries: tuple[CatalogueEntry, ...]) -> dict[str, CatalogueEntry]:
        from rye.catalogue.definitions import by_mcp_name

        if self._settings.all_tools:
            wanted = tuple([entry for entry in entries if entry.is_tool])
        else:
            wanted = self._featured.of(entries)
            for missing in self._featured.missing_from(entries):
                self._warn(f"the project features {missing!r}, which is not there")
        chosen = {one.item_id for one in wanted if self._settings.offers(one.item_id)}
        named = {}
        for name, entry in by_mcp_name(entries).items():
            if entry.item_id not in chosen:
                continue
            if entry.fault:
                self._warn(f"{entry.item_id!r} is not listed: {entry.fault}")
            elif name in RESERVED:
                self._warn(
                    f"{entry.item_id!r} is not listed: the server has a tool of that name; "
                    "it runs by `execute`"
                )
            else:
                named[name] = entry
        return dict(sorted(named.items()))

    def _tools(self, named: Mapping[str, CatalogueEntry]) -> list[types.Tool]:
        """Those that clients can be told of unasked: somebody trusted signed the words that they
        pass on to their agents, and the schema is one. A single one that is not spoils the list."""
        from lilux.primitives.errors import SchemaError
        from lilux.schemas.schema_validator import compile_once

        from rye.trust.operations import verify_paths

        reports = verify_paths([Path(entry.path) for entry in named.values()], self._context)
        tools = []
        for (name, entry), report in zip(named.items(), reports, strict=True):
            tool = _tool(name, entry)
            try:
                if report.error is not None:
                    raise report.error
                compile_once(tool.input_schema)
            except (RyeError, SchemaError) as error:
                self._warn(f"{entry.item_id!r} is not listed: {error}")
            else:
                tools.append(tool)
        return tools

    def _warn(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            _logger.warning("%s", message)


def _tool(name: str, entry: CatalogueEntry) -> types.Tool:
    from rye.catalogue.definitions import definition

    return types.Tool.model_validate(definition(entry, "mcp", name=name))


def _nearest(name: str, known: Sequence[str]) -> list[str]:
    from rye.suggestions import closest_ids

    return closest_ids(name, known)


def _write_cursor(name: str) -> str:
    return base64.urlsafe_b64encode(f"{_CURSOR_MARK}{name}".encode()).decode()


def _read_cursor(cursor: str | None) -> str | None:
    if cursor is None:
        return None
    try:
        text = base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        text = ""
    if not text.startswith(_CURSOR_MARK):
        raise MCPError(
            code=types.INVALID_PARAMS,
            message="the cursor is not one that this server gave; list again from the start",
        )
    return text.removeprefix(_CURSOR_MARK)
