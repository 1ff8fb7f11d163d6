"""The channel of a tool: progress for the caller, and questions to the user.

``RYE_CHANNEL`` is the number of a descriptor, a socket. The tool writes JSON lines to it::

    {"progress": 3, "total": 10, "message": "…"}
    {"ask": {"message": "…", "schema": {…}, "name": "…"}}

and reads one line for each question: ``{"answer": …}``, ``{"declined": true}``, or
``{"unavailable": true}`` where nobody can be asked. A line that is neither is answered with
``{"error": "…"}``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Iterator, Mapping

from lilux.primitives.subprocess.dialogue import Dialogue
from lilux.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Task
    from typing import Any, Protocol

    from rye.items.element import ChainElement

    class Listener(Protocol):
        """Who waits for a tool. ``ask`` may be a coroutine function, except in a blocking call.

        A listener whose attribute ``can_ask`` is false only shows progress. One with a
        ``session``, a text, shares kept MCP servers only with others of this session.
        """

        def progress(self, progress: Progress) -> None:
            """Show it; must not block."""

        def ask(self, question: Question) -> Reply | Awaitable[Reply]:
            """Ask the user."""


VARIABLE = "RYE_CHANNEL"
UNNAMED = "question"
"""The name of a question that a tool does not name."""
# A client uses it as a key, and may show it.
_NAME = r"[A-Za-z][A-Za-z0-9_.-]{0,63}"
_CHANNEL = "channel"
_MAX_LINE = 1024 * 1024
# A tool that asks more than this without reading the answers does not want them.
_MAX_WAITING = 32


class Progress(Record, frozen=True):
    """How far a tool has come."""

    progress: float
    total: float | None
    message: str


class Question(Record, frozen=True):
    """What a tool asks the user."""

    message: str
    schema: Mapping[str, Any]
    name: str = UNNAMED


class Unreadable(Record, frozen=True):
    """A line that means nothing."""

    reason: str


class Reply(Record, frozen=True):
    """The line that answers a question."""

    fields: Mapping[str, Any]

    def line(self) -> bytes:
        """The bytes for the tool."""
        import json

        return json.dumps(self.fields).encode() + b"\n"


DECLINED = Reply({"declined": True})
UNAVAILABLE = Reply({"unavailable": True})


def answered(value: object) -> Reply:
    """The user's answer."""
    return Reply({"answer": value})


class ChannelLines:
    """Splits what a tool writes into messages, whatever the sizes of the reads."""

    def __init__(self) -> None:
        self._rest = b""
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[Progress | Question | Unreadable]:
        """Yield the messages that ``data`` completes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if self._skipping:
                self._skipping = False
            elif line.strip():
                yield _message(line)
        if len(self._rest) > _MAX_LINE:
            self._rest = b""
            if not self._skipping:
                self._skipping = True
                yield Unreadable(f"a line is longer than {_MAX_LINE} bytes")


def _message(line: bytes) -> Progress | Question | Unreadable:
    import json

    try:
        given = json.loads(line)
    except (ValueError, RecursionError):
        return Unreadable("a line is not JSON")
    if isinstance(given, dict) and "ask" in given:
        return _question(given["ask"])
    if isinstance(given, dict) and _is_number(given.get("progress")):
        total, message = given.get("total"), given.get("message")
        return Progress(
            given["progress"],
            total if _is_number(total) else None,
            message if isinstance(message, str) else "",
        )
    return Unreadable("a line needs a number `progress`, or `ask`")


def _question(ask: object) -> Question | Unreadable:
    if not isinstance(ask, dict) or not isinstance(ask.get("message"), str):
        return Unreadable("`ask` needs a text `message`")
    schema = ask.get("schema", {"type": "string"})
    if not isinstance(schema, dict):
        return Unreadable("the `schema` of `ask` is not an object")
    import re

    from lilux.primitives.errors import SchemaError
    from lilux.schemas.schema_validator import compile_once

    try:
        compile_once(schema)
    except SchemaError:
        return Unreadable("the `schema` of `ask` is not a valid JSON Schema")
    name = ask.get("name", UNNAMED)
    if not isinstance(name, str) or re.fullmatch(_NAME, name) is None:
        return Unreadable(
            "the `name` of `ask` is not a letter followed by up to 63 letters, digits and `_.-`"
        )
    return Question(ask["message"], schema, name)


def _is_number(value: object) -> bool:
    # NaN and the infinities are not JSON, though Python reads them.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def require_user(tool: ChainElement, listener: Listener | None) -> None:
    """Raise ``NobodyToAskError`` if the tool needs a user, and nobody can be asked."""
    if not tool.metadata.needs_user:
        return
    if listener is not None and getattr(listener, "can_ask", True):
        return
    from rye.errors import NobodyToAskError

    raise NobodyToAskError(
        f"{tool.item_id!r} has to ask the user, and nobody can be asked",
        hint="run it on a terminal, or from a client that can ask its user",
    )


class Conversation:
    """Connects the channel of one call with its listener; without one, nobody can be asked.

    In an event loop, a question is answered by a task, and the next one waits for it. Call
    :meth:`end` after the call.
    """

    def __init__(self, listener: Listener | None, source: int | None = None) -> None:
        self.dialogue = Dialogue(channel=VARIABLE, on_message=self._hear, source=source)
        # A person who types the input of a tool cannot answer its questions as well.
        self._can_ask = source is None
        self._listener = listener
        self.latest: Progress | None = None
        """The last progress that the tool reported."""
        self._lines = ChannelLines()
        self._waiting: deque[Question] = deque()
        self._task: Task[None] | None = None

    def end(self) -> None:
        """Stop asking."""
        if self._task is not None:
            self._task.cancel()

    def _hear(self, data: bytes) -> None:
        for message in self._lines.feed(data):
            if isinstance(message, Progress):
                self.latest = message
                if self._listener is not None:
                    self._listener.progress(message)
            elif isinstance(message, Unreadable):
                self._answer(Reply({"error": message.reason}))
            elif self._task is None:
                self._ask(message)
            elif len(self._waiting) < _MAX_WAITING:
                self._waiting.append(message)
            else:
                self._answer(Reply({"error": "too many questions wait for an answer"}))

    def _ask(self, question: Question) -> None:
        if self._listener is None or not self._can_ask:
            self._answer(UNAVAILABLE)
            return
        reply = self._listener.ask(question)
        if isinstance(reply, Reply):
            self._answer(reply)
            return
        from asyncio import get_running_loop

        self._task = get_running_loop().create_task(self._wait(reply))

    async def _wait(self, reply: Awaitable[Reply]) -> None:
        try:
            self._answer(await reply)
        except Exception:  # noqa: BLE001 - the tool waits for an answer in any case
            self._answer(UNAVAILABLE)
        self._task = None
        # The listener may answer the next one at once.
        while self._waiting and self._task is None:
            self._ask(self._waiting.popleft())

    def _answer(self, reply: Reply) -> None:
        self.dialogue.send(reply.line(), stream=_CHANNEL)
