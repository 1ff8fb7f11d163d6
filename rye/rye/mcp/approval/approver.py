"""Decides whether a call of an agent may run, and asks the user if a rule says so."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rye.errors import ApprovalError, DeclinedError
from rye.executor.caches import BoundedDict
from rye.mcp.approval.rules import ALWAYS, NEVER, SESSION, AgentRules, Decision
from rye.mcp.protocol.errors import ProtocolError

if TYPE_CHECKING:
    from rye.cache.disk import DiskCache
    from rye.context import Context
    from rye.executor.run.prepare import PreparedCall
    from rye.mcp.open_calls import OpenCall
    from rye.mcp.settings import ServerSettings

    SessionKey = tuple[str, str, str]

_CONFIRM = {"type": "object", "properties": {}}
_INSTEAD = "do something else, or ask the user what to do"


class Approver:
    """Approves the calls of one server.

    An approval is for one call; with ``session`` for all calls of the same tool, as long as nothing
    that it runs changes, in one session.
    """

    def __init__(
        self, context: Context, settings: ServerSettings, disk_cache: DiskCache | None = None
    ) -> None:
        self._context = context
        self._rules = AgentRules(context, settings, disk_cache)
        self._approved: dict[SessionKey, bool] = BoundedDict()
        self._asking: dict[SessionKey, asyncio.Lock] = BoundedDict()

    async def approve(self, client: OpenCall, call: PreparedCall) -> bool:
        """Return True if the user was asked, and False if the rules allow the call.

        Raises ``ApprovalError`` if they do not, or if nobody can be asked, ``DeclinedError`` if the
        user declines, and ``PermissionsError`` if the user's config cannot be used.
        """
        tool = call.chain[0]
        decision = self._rules.decide(tool.item_id, tool.metadata.annotations)
        if decision.allow == ALWAYS:
            return False
        if decision.allow == NEVER:
            raise ApprovalError(
                f"{tool.item_id!r} may not be run by agents", hint=f"change {decision.source}"
            )
        if decision.allow != SESSION or client.session is None:
            await self._ask(client, call, decision)
            return True
        key = (client.session, tool.item_id, call.closure.digest)
        if key in self._approved:
            return False
        async with self._asking.setdefault(key, asyncio.Lock()):
            if key not in self._approved:
                await self._ask(client, call, decision)
                self._approved[key] = True
        return True

    async def _ask(self, client: OpenCall, call: PreparedCall, decision: Decision) -> None:
        tool = call.chain[0].item_id
        if not client.can_ask:
            raise ApprovalError(
                f"{tool!r} needs the user's approval, and this client cannot ask the user",
                hint="open a page that can, with: rye ui --run, use a client that supports "
                f"elicitation, or change {decision.source}",
            )
        from rye.mcp.approval.question import question_about

        message = question_about(call, self._context)
        try:
            answer = await client.elicit({"message": message, "requestedSchema": _CONFIRM})
        except TimeoutError:
            raise DeclinedError(f"the user did not answer about {tool!r}", hint=_INSTEAD) from None
        except ProtocolError:
            who = "this client failed to ask the user"
            if not client.can_elicit:
                who = "the page that could ask the user was closed"
            raise ApprovalError(
                f"{tool!r} needs the user's approval, and {who}",
                hint=f"use another client, or change {decision.source}",
            ) from None
        if answer["action"] != "accept":
            raise DeclinedError(f"the user declined to run {tool!r}", hint=_INSTEAD)
