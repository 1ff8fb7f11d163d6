"""A call by name and arguments becomes content."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mcp import types
from mcp.shared.exceptions import MCPError

from rye.context import Context
from rye.errors import ItemNotFoundError, ParameterError, RyeError
from rye.mcp.content import content_of, failure_content, success
from rye.mcp.jobs import CLIENT_GONE, Jobs
from rye.mcp.own_tools import EXECUTE, SEARCH, SHOW
from rye.mcp.reading import CatalogueReader
from rye.mcp.reporting import LogLevels, Report
from rye.mcp.settings import ServerSettings
from rye.mcp.surface import Surface

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from rye.catalogue.catalogue import Catalogue
    from rye.catalogue.entry import CatalogueEntry
    from rye.executor.run.execute import PrimitiveExecutor

    Asked = ServerRequestContext[Any, Any]

_DEFAULT_LIMIT = 10


class Calls:
    """Runs tools for clients; any number at once."""

    def __init__(
        self,
        context: Context,
        settings: ServerSettings,
        surface: Surface,
        catalogue: CatalogueReader,
    ) -> None:
        self._context = context
        self._settings = settings
        self._surface = surface
        self._catalogue = catalogue
        self._executor: PrimitiveExecutor | None = None
        self.levels = LogLevels()
        self.jobs = Jobs()

    async def call(self, ctx: Asked, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Content for the end of the call, good or bad.

        Raises ``MCPError`` for a tool that is not offered; cancelling it ends the tool.
        """
        arguments = params.arguments or {}
        try:
            own = self._surface.own_tool(params.name)
            if own is None:
                item_id = await self._surface.item_of(params.name)
                return await self._execute(ctx, item_id, arguments)
            # To many models, null is how to leave something out.
            arguments = {key: value for key, value in arguments.items() if value is not None}
            _require_valid(own, arguments)
            if own.name == EXECUTE:
                return await self._execute(ctx, **arguments)
            if own.name == SEARCH:
                return success(await self._search(**arguments))
            if own.name == SHOW:
                return success(await self._show(**arguments))
            return success(await asyncio.to_thread(self._sign, **arguments))
        except MCPError:
            raise
        except Exception as error:  # noqa: BLE001 - what escapes would be told by its text, which may hold values
            return failure_content(error)

    async def warm_up(self) -> None:
        """Load what calls need, in a thread."""
        await asyncio.to_thread(_load_all)

    async def aclose(self) -> None:
        """End what runs, and close what is open."""
        self.jobs.end_all()
        if self._executor is not None:
            await self._executor.aclose()

    async def _execute(
        self,
        ctx: Asked,
        item_id: str,
        parameters: Mapping[str, Any] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - of the tool, not of this function
        dry_run: bool = False,
    ) -> types.CallToolResult:
        if self._settings.only:
            item_id = (await self._entry(item_id)).item_id
        report = Report(ctx, item_id, lines=self.levels.wants_lines(ctx))
        if self._executor is None:
            self._executor = _load()(context=self._context)
        job = self._executor.execute(
            item_id,
            parameters,
            timeout=timeout,
            dry_run=dry_run,
            on_output=report.on_output if report.wanted else None,
        )
        gone = None if ctx.request is None else ctx.request.scope.get(CLIENT_GONE)
        if not report.wanted:
            return content_of(await self.jobs.run(job, gone))
        async with report.telling():
            result = await self.jobs.run(job, gone)
        return content_of(result)

    async def _search(self, query: str, limit: int = _DEFAULT_LIMIT) -> dict[str, Any]:
        def question(catalogue: Catalogue) -> list[CatalogueEntry]:
            if query.strip():
                # Of the best hits, some may not be offered.
                most = sys.maxsize if self._settings.only else limit
                found = [hit.entry for hit in catalogue.search(query, most)]
            else:
                found = [entry for entry in catalogue.entries() if entry.is_tool]
            return [entry for entry in found if self._settings.offers(entry.item_id)][:limit]

        found = await self._catalogue.ask(question)
        return {"tools": [_brief(entry) for entry in found]}

    async def _show(self, item_id: str) -> dict[str, Any]:
        from rye.catalogue.definitions import definition, input_schema
        from rye.catalogue.example import example_parameters

        entry = await self._entry(item_id)
        example = example_parameters(entry.schema)
        shown = {
            "item_id": entry.item_id,
            "description": entry.description,
            "version": entry.version,
            "space": entry.space,
            "category": entry.category,
            "input_schema": input_schema(entry),
            "annotations": definition(entry, "mcp")["annotations"],
            "example": {} if example is None else {"item_id": entry.item_id, "parameters": example},
            "fault": entry.fault,
        }
        return {key: value for key, value in shown.items() if value not in ("", {})}

    def _sign(self, item_id: str) -> dict[str, Any]:
        from rye.spaces.resolver import Resolver
        from rye.trust.operations import sign_item

        found = Resolver(self._context).resolve(item_id)
        if found.path is None or not self._settings.offers(found.item_id):
            raise _not_offered(item_id)
        if found.space.name == "system":
            raise RyeError(
                f"{found.item_id!r} is of the system space, which its makers sign",
                hint="sign items of the project or the user",
            )
        signed = sign_item(found.path, self._context)
        return {"item_id": found.item_id, "path": str(signed.path), "signed": True}

    async def _entry(self, item_id: str) -> CatalogueEntry:
        """The item; one that is not offered looks as if it were not there.

        Raises what ``Catalogue.entry`` raises.
        """
        try:
            entry = await self._catalogue.ask(lambda catalogue: catalogue.entry(item_id))
        except ItemNotFoundError:
            if self._settings.only:
                # The nearest names may be none that are offered.
                raise _not_offered(item_id) from None
            raise
        if not self._settings.offers(entry.item_id):
            raise _not_offered(item_id)
        return entry


def _load_all() -> None:
    from importlib import import_module

    for name in (
        "jsonschema_rs",
        "lilux.primitives.subprocess.primitive",
        "rye.catalogue.catalogue",
    ):
        import_module(name)
    _load()


def _load() -> type[PrimitiveExecutor]:
    from rye.executor.run.execute import PrimitiveExecutor

    return PrimitiveExecutor


def _brief(entry: CatalogueEntry) -> dict[str, Any]:
    from rye.catalogue.entry import one_line

    properties = (entry.schema or {}).get("properties")
    return {
        "item_id": entry.item_id,
        "description": one_line(entry.description),
        "parameters": list(properties) if isinstance(properties, Mapping) else [],
    }


def _not_offered(item_id: str) -> ItemNotFoundError:
    return ItemNotFoundError(
        f"this server offers no item {item_id!r}", hint="see `search` for those that it offers"
    )


def _require_valid(tool: types.Tool, arguments: Mapping[str, Any]) -> None:
    from lilux.schemas.schema_validator import validate_parameters

    verdict = validate_parameters(dict(arguments), tool.input_schema)
    if not verdict.valid:
        raise ParameterError(
            f"wrong arguments for {tool.name!r}",
            verdict.errors,
            hint="call it as its schema says",
        )
