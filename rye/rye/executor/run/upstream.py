"""Calls of tools of other MCP servers, which are kept from one call to the next."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lilux.record import replaced

from rye.errors import UpstreamChangedError
from rye.executor.config.build import MCP_TOOL
from rye.executor.run.channel import Progress, Question
from rye.executor.run.outcome import Outcome
from rye.spaces.ids import HTTP_CLIENT
from rye.upstream.definition import differences
from rye.upstream.session import KeptServer, UpstreamResult

if TYPE_CHECKING:
    from pathlib import Path

    from rye.executor.config.build import ExecutionConfig
    from rye.executor.run.channel import Listener
    from rye.executor.run.primitives import OnOutput
    from rye.items.element import ChainElement

TOKEN_OF = "token_of"  # noqa: S105 - the name of a service, not a token
"""The key of a config that names the service whose token is sent."""
IDLE_SECONDS = 1800.0
"""As long as a session over HTTP may be silent."""
_DEFAULT_SECONDS = 300.0
_MAX_REASON = 1000


class _Kept:
    """A server that is kept for one session."""

    def __init__(self, address: Mapping[str, Any], session: str) -> None:
        self.server = KeptServer(address)
        self.session = session
        self.calls = 0
        self.used = time.monotonic()

    @contextmanager
    def in_use(self) -> Iterator[KeptServer]:
        self.calls += 1
        try:
            yield self.server
        finally:
            self.calls -= 1
            self.used = time.monotonic()

    def is_idle(self) -> bool:
        idle = time.monotonic() - self.used >= IDLE_SECONDS
        return bool(self.session) and not self.calls and idle


class UpstreamPool:
    """The servers that an executor keeps: one process for each server and session.

    A session is that of the listener of a call, such as of a client over HTTP: what a server
    remembers of one client, and asks its user, is not for another. The servers of a session end
    when it has not used them for a while, all others with the executor.
    """

    def __init__(self, user_space: Path) -> None:
        self._user_space = user_space
        self._servers: dict[str, _Kept] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def call(
        self, config: ExecutionConfig, on_output: OnOutput | None, listener: Listener | None
    ) -> UpstreamResult:
        """Call the tool that the config names, within its timeout."""
        tool = config.config[MCP_TOOL]
        seconds = config.config.get("timeout") or _DEFAULT_SECONDS
        kept = await self._server_of(config, getattr(listener, "session", ""))
        caller = _Caller(on_output, listener)
        try:
            with kept.in_use() as server:
                async with asyncio.timeout(seconds):
                    return await server.call(tool["name"], config.params, tool["pinned"], caller)
        except TimeoutError:
            error = f"it did not answer within {seconds:g} s"
            return UpstreamResult(False, [], error=error, timed_out=True)
        finally:
            self._end_idle()

    async def aclose(self) -> None:
        """End all servers."""
        servers, self._servers = self._servers, {}
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.gather(*[kept.server.aclose() for kept in servers.values()], *self._ending)

    def _end_idle(self) -> None:
        """End the servers that their sessions do not use, and look again when one may be idle."""
        for key in [key for key, kept in self._servers.items() if kept.is_idle()]:
            ending = asyncio.create_task(self._servers.pop(key).server.aclose())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)
        if self._timer is not None:
            self._timer.cancel()
        if any(kept.session for kept in self._servers.values()):
            self._timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._end_idle)

    async def _server_of(self, config: ExecutionConfig, session: str) -> _Kept:
        if config.primitive_id == HTTP_CLIENT:
            address = await self._address(config)
        else:
            address = {
                key: value
                for key, value in config.config.items()
                if key not in (MCP_TOOL, "timeout", "input_data")
            }
        # Another environment or confinement is another server.
        key = repr((session, sorted(address.items())))
        if key not in self._servers:
            self._servers[key] = _Kept(address, session)
        return self._servers[key]

    async def _address(self, config: ExecutionConfig) -> dict[str, Any]:
        from lilux.primitives.http_client.config import parse_config
        from lilux.primitives.http_client.request import prepare_request

        own = (MCP_TOOL, TOKEN_OF)
        call = {key: value for key, value in config.config.items() if key not in own}
        prepared = prepare_request(parse_config({**call, "method": "POST"}, {}), {}, call["env"])
        headers = dict(prepared.headers)
        service = config.config.get(TOKEN_OF)
        if service is not None:
            token = await auth_store(self._user_space).get_token(str(service))
            headers["Authorization"] = f"Bearer {token}"
        return {"url": str(prepared.url), "headers": headers}


def auth_store(user_space: Path) -> Any:
    """The tokens of the user for other servers."""
    from lilux.runtime.auth import AuthStore

    return AuthStore("rye", user_space / ".ai" / "auth")


class _Caller:
    """Passes on what a server says during a call."""

    def __init__(self, on_output: OnOutput | None, listener: Listener | None) -> None:
        self._on_output = on_output
        self._listener = listener
        self._logging: set[asyncio.Future[None]] = set()

    def progress(self, progress: float, total: float | None, message: str) -> None:
        if self._listener is not None:
            self._listener.progress(Progress(progress, total, message))

    def log(self, line: str) -> None:
        if self._on_output is not None:
            shown = self._on_output("stderr", f"{line}\n")
            if shown is not None:
                task = asyncio.ensure_future(shown)
                self._logging.add(task)
                task.add_done_callback(self._logging.discard)

    async def ask(self, message: str, schema: Mapping[str, Any]) -> tuple[str, Any]:
        if self._listener is None:
            return "cancel", None
        reply = self._listener.ask(Question(message, schema))
        fields = (await reply if hasattr(reply, "__await__") else reply).fields
        if "answer" in fields:
            return "accept", fields["answer"]
        return ("decline" if "declined" in fields else "cancel"), None


def upstream_outcome(result: UpstreamResult, chain: Sequence[ChainElement]) -> Outcome:
    """The outcome of the call of ``chain[0]``, whose server is ``chain[1]``."""
    name, server = chain[0].item_id, chain[1].item_id
    if result.changed:
        refusal = f"{name!r} is not the tool that was pinned"
        refused = _failure(
            UpstreamChangedError.__name__,
            f"{refusal}: {_change(result, chain[0])}",
            f"review that, and accept it with: rye import mcp {server} --update",
        )
        # What the server says now is what the user has not accepted.
        refused.metadata["agent_error"] = f"{refusal}: what its server says about it has changed"
        return refused
    if result.error:
        kind = "ToolTimedOut" if result.timed_out else "UpstreamFailed"
        reason = f"{name!r}: the MCP server {server!r} failed: {result.error}"
        failed = _failure(kind, reason, f"see how it is reached in {chain[1].path}")
        if result.timed_out:
            failed.metadata["timed_out"] = True
        return failed
    text: Any = result.text
    if not result.success:
        reason = text.strip() or "without saying why"
        if len(reason) <= _MAX_REASON:
            return _failure("UpstreamToolFailed", f"{name!r} failed: {reason}", "")
        return replaced(_failure("UpstreamToolFailed", f"{name!r} failed", ""), data=text)
    # Many servers send a text a second time, in an object.
    if result.structured is not None and result.structured != {"result": text}:
        data = result.structured
    elif all(one.get("type") == "text" for one in result.content):
        data = text
    else:
        data = {"content": result.content}
    is_plain = result.content == [{"type": "text", "text": data}]
    metadata = {} if is_plain else {"content": result.content}
    return Outcome(success=True, data=data, metadata=metadata)


def _change(result: UpstreamResult, tool: ChainElement) -> str:
    return "; ".join(differences(tool.metadata, result.offered))


def _failure(error_type: str, error: str, hint: str) -> Outcome:
    text = f"{error}; {hint}" if hint else error
    metadata = {"error_type": error_type, "hint": hint}
    return Outcome(success=False, data=None, error=text, metadata=metadata)
