"""Handling ``tools/call``: a name and arguments in, content out."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rye.context import Context
from rye.errors import ItemNotFoundError, NobodyToAskError, RyeError
from rye.live.folder import a_page_answers
from rye.mcp.accounting import Accounting
from rye.mcp.budget import budget_of
from rye.mcp.builtin_tools import EXECUTE, OUTPUT, SEARCH, SHOW, SIGN, valid_arguments
from rye.mcp.content import Presenter
from rye.mcp.gate import Gate, Place
from rye.mcp.media import Media
from rye.mcp.notifications import CallNotifier, LogLevels
from rye.mcp.open_calls import OpenCall, OpenCalls
from rye.mcp.outputs import Outputs
from rye.mcp.protocol.errors import MISSING_CAPABILITY, ProtocolError
from rye.mcp.protocol.messages import encoded
from rye.mcp.settings import ServerSettings
from rye.mcp.tool_list import CatalogueReader, ToolList

if TYPE_CHECKING:
    from rye.catalogue.catalogue import Catalogue
    from rye.catalogue.entry import CatalogueEntry
    from rye.executor.run.execute import PrimitiveExecutor
    from rye.executor.run.prepare import PreparedCall
    from rye.items.user_config import UserConfig
    from rye.mcp.approval.approver import Approver
    from rye.mcp.call_log import CallEntry, CallLog
    from rye.mcp.protocol.types import (
        CallToolParams,
        CallToolResult,
        InputRequiredResult,
    )
    from rye.mcp.request import Request

_DEFAULT_LIMIT = 10
_NOTE_ROOM = 200
_NOBODY = NobodyToAskError.__name__
_REQUIRED: Mapping[str, Any] = {"requiredCapabilities": {"elicitation": {}}}
_NEEDED_BY_CALLS = (
    "lilux.primitives.subprocess.primitive",
    "rye.catalogue.catalogue",
)


class Calls:
    """Runs tools for clients; any number at once."""

    def __init__(
        self,
        context: Context,
        settings: ServerSettings,
        tool_list: ToolList,
        catalogue: CatalogueReader,
    ) -> None:
        self._context = context
        self._settings = settings
        self._tool_list = tool_list
        self._catalogue = catalogue
        self._executor: PrimitiveExecutor | None = None
        self.levels = LogLevels()
        self.running = OpenCalls(lambda: a_page_answers(context.user_space))
        self.outputs = Outputs()
        self._present = Presenter(self.outputs)
        self._config: UserConfig | None = None
        self._builtin: Mapping[str, Callable[..., Awaitable[Any]]] = {
            SEARCH: self._search,
            SHOW: self._show,
            OUTPUT: self._output,
            SIGN: self._sign,
        }
        self.accounting = Accounting(context, receipts=settings.receipts)
        self._approver: Approver | None = None
        self._gate = Gate(settings.max_calls)
        self._log = None if settings.log is None else _call_log(settings.log)

    async def call(
        self, request: Request, params: CallToolParams
    ) -> CallToolResult | InputRequiredResult:
        """Run a tool and return its result or its failure as content, or a question to the user.

        Raises ``ProtocolError`` if the tool is not offered. Cancellation ends the tool first.
        """
        arguments = params.arguments or {}
        try:
            if params.request_state is not None and request.era == "stateless":
                return await self.running.resume(request, params)
            builtin = self._tool_list.builtin(params.name)
            if builtin is None:
                entry = await self._tool_list.entry_of(params.name)
                self.accounting.show(entry)
                arguments = {"item_id": entry.item_id, "parameters": arguments}
                return await self._begin(request, params, arguments)
            arguments = valid_arguments(builtin, arguments)
            if builtin.name == EXECUTE:
                return await self._begin(request, params, arguments)
            return await self._use(request, builtin.name, arguments)
        except ProtocolError:
            raise
        except Exception as error:  # noqa: BLE001 - its text may contain values
            return self._present.error(error)

    async def warm_up(self) -> None:
        """Import the modules that calls need, in a thread."""
        await asyncio.to_thread(_import_all)

    async def aclose(self) -> None:
        """Cancel running calls and close the executor."""
        self.running.cancel_all()
        await self.running.wait_all()
        if self._executor is not None:
            await self._executor.aclose()
        await self.accounting.aclose()
        self.outputs.close()

    async def _use(
        self, request: Request, name: str, arguments: Mapping[str, Any]
    ) -> CallToolResult:
        """Serve a call of a built-in tool."""
        serve = self._builtin[name]

        async def work(entry: CallEntry | None) -> CallToolResult:
            result = self._present.success(await serve(**arguments))
            if entry is not None:
                entry.succeeded()
            return result

        return await self._logged(request, name, work, exists=True)

    async def _begin(
        self, request: Request, params: CallToolParams, arguments: Mapping[str, Any]
    ) -> CallToolResult | InputRequiredResult:
        """Start a call of a tool, and wait for it."""

        async def work(call: OpenCall) -> CallToolResult:
            async def run(entry: CallEntry | None) -> CallToolResult:
                with self._gate.place() as place:
                    return await self._execute(call, entry, place, **arguments)

            item = str(arguments["item_id"])
            return await self._logged(call, item, run, exists=params.name != EXECUTE)

        return await self.running.begin(request, params, work)

    async def _logged(
        self,
        request: Request,
        item: str,
        work: Callable[[CallEntry | None], Awaitable[CallToolResult]],
        *,
        exists: bool,
    ) -> CallToolResult:
        """Return what ``work`` returns, or its error as content, and log the call."""
        if self._log is None:
            return await work(None)
        from rye.mcp.call_log import CallEntry

        entry = CallEntry(request, item, exists=exists)
        result: CallToolResult | None = None
        try:
            result = await work(entry)
        except ProtocolError as error:
            entry.failed(error)
            raise
        except Exception as error:  # noqa: BLE001 - its text may contain values
            entry.failed(error)
            result = self._present.error(error)
        finally:
            # A cancelled call has no result.
            self._log.write(entry, 0 if result is None else len(encoded(result)))
        return result

    async def _execute(
        self,
        call: OpenCall,
        entry: CallEntry | None,
        place: Place,
        item_id: str,
        *,
        parameters: Mapping[str, Any] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - of the tool, not of this function
        dry_run: bool = False,
        max_output: int | None = None,
    ) -> CallToolResult:
        from rye.mcp.listener import ClientListener

        budget, started = budget_of(self._user_config(), max_output), time.time_ns()
        if self._settings.restricted:
            item_id = (await self._entry(item_id)).item_id
        notifier = CallNotifier(call, item_id, lines=self.levels.wants_lines(call))
        if self._executor is None:
            self._executor = _executor_class()(
                context=self._context,
                confined_only=self._settings.confined,
                warm=self._tool_list.features,
            )
        async with notifier.sending():
            result = await self._executor.execute(
                item_id,
                parameters,
                timeout=timeout,
                dry_run=dry_run,
                on_output=notifier.on_output if notifier.wanted else None,
                listener=ClientListener(call, notifier),
                caller=self.accounting.caller(call, item_id),
                approve=lambda prepared: self._approve(call, entry, place, prepared),
                questions=call.questions,
                run_id=self.accounting.run_id(entry, dry_run=dry_run),
            )
        self.accounting.note(result)
        if entry is not None:
            entry.ended(result)
        if call.era == "stateless" and result.metadata.get("error_type") == _NOBODY:
            raise ProtocolError(MISSING_CAPABILITY, str(result.error), _REQUIRED)
        media = Media(self._context.project_path, started, result.readable)
        return self._present.result(result, budget, version=call.version, media=media)

    def _user_config(self) -> UserConfig:
        if self._config is None:
            from rye.items.user_config import UserConfig

            self._config = UserConfig(self._context)
        return self._config

    async def _output(self, **arguments: Any) -> str:
        from rye.mcp.output_tool import output_text

        budget = budget_of(self._user_config(), None)
        return await asyncio.to_thread(
            output_text, self.outputs, **arguments, budget=budget - _NOTE_ROOM
        )

    async def _approve(
        self, call: OpenCall, entry: CallEntry | None, place: Place, prepared: PreparedCall
    ) -> bool:
        """Wait for the user, if a rule says so, and for the turn of the call."""
        call.tool = prepared.chain[0].item_id
        if entry is not None:
            entry.found(call.tool)
        if self._approver is None:
            from rye.mcp.approval.approver import Approver

            self._approver = Approver(self._context, self._settings)
        with place.set_aside():
            asked = await self._approver.approve(call, prepared)
        waited = await place.run()
        return asked or waited

    async def _search(self, query: str, limit: int = _DEFAULT_LIMIT) -> dict[str, Any]:
        def look_up(catalogue: Catalogue) -> list[CatalogueEntry]:
            if query.strip():
                # All of them, to say how many there are.
                found = [hit.entry for hit in catalogue.search(query, sys.maxsize)]
            else:
                found = [entry for entry in catalogue.entries() if entry.is_tool]
            return [entry for entry in found if self._offers(entry)]

        found = await self._catalogue.ask(look_up)
        return {
            "tools": [_brief(entry) for entry in found[:limit]],
            "total": len(found),
            "next": _next_step(len(found), limit),
        }

    async def _show(self, item_id: str) -> dict[str, Any]:
        from rye.catalogue.definitions import definition, input_schema
        from rye.catalogue.example import example_parameters

        entry = await self._entry(item_id)
        self.accounting.show(entry)
        declared = [one.get("params", {}) for one in entry.examples]
        example = declared[0] if declared else example_parameters(entry.schema)
        shown = {
            "item_id": entry.item_id,
            "description": entry.description,
            "version": entry.version,
            "space": entry.space,
            "category": entry.category,
            "input_schema": input_schema(entry),
            "annotations": definition(entry, "mcp")["annotations"],
            "example": {} if example is None else {"item_id": entry.item_id, "parameters": example},
            "examples": [dict(one) for one in entry.examples],
            "fault": entry.fault,
        }
        return {key: value for key, value in shown.items() if value not in ("", {}, [])}

    async def _sign(self, item_id: str) -> dict[str, Any]:
        return await asyncio.to_thread(self._sign_item, item_id)

    def _sign_item(self, item_id: str) -> dict[str, Any]:
        from rye.authoring.check import refuse_what_cannot_run
        from rye.executor.chain.snapshot import Library
        from rye.trust.operations import sign_item

        library = Library(self._context)
        found = library.resolver.resolve(item_id)
        if found.path is None or not self._settings.offers(found.item_id, confined=True):
            raise _not_offered(item_id)
        if found.space.name == "system":
            raise RyeError(
                f"{found.item_id!r} belongs to the system space, which its publisher signs",
                hint="sign only items of the project or the user",
            )
        refuse_what_cannot_run(found.item_id, found.path, found.space.root, library)
        signed = sign_item(found.path, self._context)
        return {"item_id": found.item_id, "path": str(signed.path), "signed": True}

    def _offers(self, entry: CatalogueEntry) -> bool:
        return self._settings.offers(entry.item_id, confined=entry.confined)

    async def _entry(self, item_id: str) -> CatalogueEntry:
        """Return the item; one that is not offered is reported as if it did not exist.

        Raises the same errors as ``Catalogue.entry``.
        """
        try:
            entry = await self._catalogue.ask(lambda catalogue: catalogue.entry(item_id))
        except ItemNotFoundError:
            if self._settings.restricted:
                # The original error may suggest items that are not offered.
                raise _not_offered(item_id) from None
            raise
        if not self._offers(entry):
            raise _not_offered(item_id)
        return entry


def _call_log(path: str) -> CallLog:
    from rye.mcp.call_log import CallLog

    return CallLog(Path(path))


def _import_all() -> None:
    from importlib import import_module

    for name in _NEEDED_BY_CALLS:
        import_module(name)
    _executor_class()


def _executor_class() -> type[PrimitiveExecutor]:
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


def _next_step(total: int, limit: int) -> str:
    if not total:
        return "nothing matches; try other words, or list all tools with an empty query"
    if total > limit:
        return f"{total - limit:,} more match; add words, or raise limit"
    return "read the parameters of a tool with `show`, and run it with `execute`"


def _not_offered(item_id: str) -> ItemNotFoundError:
    return ItemNotFoundError(
        f"item {item_id!r} is not available on this server",
        hint="find available items with `search`",
    )
