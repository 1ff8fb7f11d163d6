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
_MAX_LOG_LINE = 2000
# After its stdin was closed, a server has this long to end by itself.
_END_SECONDS = 2.0


class _Lines:
    """Puts lines together, whatever the sizes of the reads. The end of a long line is left out."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[str] = []
        self._size = 0

    def feed(self, text: str) -> list[str]:
        """Return the lines that ``text`` completes."""
        *ends, rest = text.split("\n")
        lines = []
        for end in ends:
            self._add(end)
            lines.append(self.take())
        self._add(rest)
        return lines

    def take(self) -> str:
        """Return the line that has begun."""
        line = "".join(self._pieces)
        self._pieces, self._size = [], 0
        return line

    def _add(self, piece: str) -> None:
        piece = piece[: self._limit - self._size]
        if piece:
            self._pieces.append(piece)
            self._size += len(piece)


class ServerJob:
    """The process of one server. ``log`` has the last lines of its stderr."""

    def __init__(self, config: Mapping[str, Any], on_log: OnLog) -> None:
        self._config = {**config, "timeout": None, "output_limit": 0}
        self._on_log = on_log
        self._lines = {"stdout": _Lines(_MAX_MESSAGE), "stderr": _Lines(_MAX_LOG_LINE)}
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
            for line in filter(str.strip, self._lines[stream].feed(readable_output(text))):
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
                if last := self._lines["stderr"].take().strip():
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
        self.log.append(line[:_MAX_LOG_LINE].rstrip())
        self._on_log(line[:_MAX_LOG_LINE])
