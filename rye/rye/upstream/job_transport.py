"""A transport of the MCP client over a job: the server's process is supervised like any other."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from lilux.primitives.subprocess import SubprocessPrimitive, SubprocessResult
from lilux.primitives.subprocess.dialogue import Dialogue
from lilux.primitives.subprocess.output import readable_output

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

OnLog = Callable[[str], None]

# A message beyond this would take more memory than any answer is worth.
_MAX_MESSAGE = 64 * 1024 * 1024
_QUEUED_MESSAGES = 256
_KEPT_LOG_LINES = 20
# After its stdin was closed, a server has this long to end by itself.
_END_SECONDS = 2.0


class ServerJob:
    """The process of one server. ``log`` has the last lines of its stderr."""

    def __init__(self, config: Mapping[str, Any], on_log: OnLog) -> None:
        self._config = {**config, "timeout": None, "output_limit": 0}
        self._on_log = on_log
        self._unfinished = {"stdout": "", "stderr": ""}
        self.log: deque[str] = deque(maxlen=_KEPT_LOG_LINES)
        self.result: SubprocessResult | None = None
        self.ended = asyncio.Event()

    def ending(self) -> str:
        """How the process ended, and its last words."""
        if self.result is None:
            return "the connection was closed"
        last = self.log[-1] if self.log else self.result.stderr.strip()
        return f"it ended with exit code {self.result.return_code}" + (f": {last}" if last else "")

    @asynccontextmanager
    async def transport(self) -> AsyncIterator[TransportStreams]:
        """Start the process; the streams carry its messages. The process ends with the context."""
        import anyio
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        incoming, read = anyio.create_memory_object_stream[Any](_QUEUED_MESSAGES)
        write, outgoing = anyio.create_memory_object_stream[Any](0)
        dialogue = Dialogue(stdin=True)

        async def on_output(stream: str, text: str) -> None:
            *lines, rest = (self._unfinished[stream] + readable_output(text)).split("\n")
            self._unfinished[stream] = "" if len(rest) > _MAX_MESSAGE else rest
            for line in filter(str.strip, lines):
                if stream == "stderr":
                    self._note(line)
                    continue
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    # Some servers print a greeting; it is no message, so it is log.
                    self._note(line)
                else:
                    await incoming.send(SessionMessage(message))

        async def run() -> None:
            try:
                self.result = await SubprocessPrimitive().execute(
                    self._config, on_output=on_output, dialogue=dialogue
                )
            finally:
                if last := self._unfinished["stderr"].strip():
                    self._note(last)
                incoming.close()
                self.ended.set()

        async def pass_on() -> None:
            async for message in outgoing:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                if not dialogue.send(f"{text}\n".encode()):
                    return

        job = asyncio.create_task(run(), name="upstream server")
        sender = asyncio.create_task(pass_on(), name="upstream messages")
        try:
            yield read, write
        finally:
            sender.cancel()
            dialogue.close()
            await asyncio.wait([job], timeout=_END_SECONDS)
            job.cancel()
            with suppress(asyncio.CancelledError):
                await job
            for stream in (incoming, read, write, outgoing):
                stream.close()

    def _note(self, line: str) -> None:
        self.log.append(line.rstrip())
        self._on_log(line)
