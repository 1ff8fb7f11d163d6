"""What a page does to see the calls of other processes: it finds their sockets, and listens.

A process that says something which cannot be understood is left alone. What it says about itself is
shown as text, and can neither replace a call of another process nor grow without a limit.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rye.live.folder import connect, is_this_process, open_folder, sockets
from rye.live.lines import Lines, line_of, unpacked
from rye.live.seen import (
    THIS_PAGE,
    Part,
    SeenOutput,
    SeenRun,
    SeenRuns,
    Told,
    WaitingQuestion,
    shown_parameters,
)
from rye.recording.record import CANCELLED, ERROR, FAILED, OK, REFUSED, TIMEOUT
from rye.recording.run_ids import is_run_id, milliseconds_of

if TYPE_CHECKING:
    import socket

_EVERY_SECONDS = 0.2
_MAX_PROCESSES = 200
_MAX_CALLS = 1000
_MAX_QUESTIONS = 32
_MAX_TEXT = 64 * 1024
_READ_SIZE = 256 * 1024
_AT_ONCE = 100
_REPLY_SECONDS = 5.0
_OUTCOMES = (OK, FAILED, TIMEOUT, REFUSED, CANCELLED, ERROR)
_GONE = "the process that made the call has ended"
_CALLERS = {"cli": "rye run", "batch": "rye batch", "ui": "another page", "mcp": "an MCP client"}


class Watch:
    """Adds the calls of other processes to the runs of a page."""

    def __init__(self, user_space: Path, runs: SeenRuns) -> None:
        self._user_space = user_space
        self._runs = runs
        self._known: dict[str, asyncio.Task[bool]] = {}
        self._refused: set[str] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watch during the block."""
        task = asyncio.create_task(self._look())
        try:
            yield
        finally:
            tasks = [task, *self._known.values()]
            for one in tasks:
                one.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self) -> None:
        folder: int | None = None
        try:
            while True:
                # Again if somebody has removed or replaced it.
                folder = self._current(folder)
                names = set() if folder is None else set(sockets(folder))
                self._refused &= names
                for name in names - self._refused - set(self._known):
                    self._connect(folder, name)
                await asyncio.sleep(_EVERY_SECONDS)
        finally:
            if folder is not None:
                os.close(folder)

    def _current(self, folder: int | None) -> int | None:
        if folder is not None:
            if os.fstat(folder).st_nlink:
                return folder
            os.close(folder)
        return open_folder(self._user_space, create=False)

    def _connect(self, folder: int | None, name: str) -> None:
        if folder is None or len(self._known) >= _MAX_PROCESSES:
            return
        connection = connect(folder, name)
        if connection is not None:
            task = asyncio.create_task(_Process(connection, self._runs).listen())
            self._known[name] = task
            task.add_done_callback(lambda _: self._forget(name, task))

    def _forget(self, name: str, task: asyncio.Task[bool]) -> None:
        del self._known[name]
        if not task.cancelled() and not task.result():
            self._refused.add(name)


class _Process:
    """A process that has calls under way."""

    def __init__(self, connection: socket.socket, runs: SeenRuns) -> None:
        self._connection = connection
        self._is_ours = is_this_process(connection)
        self._all = runs
        self._runs: dict[str, SeenRun] = {}
        self._numbers = count(1)
        self._replies: dict[int, asyncio.Future[str]] = {}

    async def listen(self) -> bool:
        """Listen until the process closes the connection; false if it says something wrong."""
        loop, lines = asyncio.get_running_loop(), Lines()
        try:
            while data := await loop.sock_recv(self._connection, _READ_SIZE):
                for number, message in enumerate(lines.feed(data)):
                    self._hear(message)
                    if number % _AT_ONCE == 0:
                        # Reading returns at once if there is more: others get a turn here.
                        await asyncio.sleep(0)
        except OSError:
            pass
        except (ValueError, TypeError, LookupError, ArithmeticError):
            return False
        finally:
            self._connection.close()
            for run in self._runs.values():
                run.end("unknown", _GONE)
            for reply in self._replies.values():
                if not reply.done():
                    reply.set_result(_GONE)
        return True

    def _hear(self, message: Mapping[str, Any]) -> None:
        """Raises one of the plain errors of Python for what is not one of our messages."""
        for kind, about in message.items():
            if kind == "call":
                self._begin(about)
            elif kind == "reply":
                self._reply(about, message)
            elif kind in ("state", "output", "ended"):
                run = self._runs.get(_text(about["run"]))
                if run is not None:
                    _CHANGES[kind](run, about)
                elif kind == "output":
                    self._own_call(about)

    def _begin(self, about: Mapping[str, Any]) -> None:
        run_id = _text(about["run"])
        if not is_run_id(run_id) or self._all.get(run_id) is not None:
            return
        if len(self._runs) >= _MAX_CALLS:
            raise ValueError("too many calls")
        started = milliseconds_of(run_id)
        caller = THIS_PAGE if self._is_ours else _caller(about)
        run = SeenRun(run_id, _text(about["item"]), caller, started=started)
        run.is_ours = self._is_ours
        run.project = _text(about["project"])
        run.parameters = shown_parameters(_object(about["parameters"]))
        run.told = Told(
            lambda: self._do({"do": "cancel", "run": run_id}),
            lambda question, answer: self._do(
                {"do": "answer", "run": run_id, "question": question, "answer": dict(answer)}
            ),
        )
        self._runs[run_id] = self._all.add(run)

    def _own_call(self, about: Mapping[str, Any]) -> None:
        """The page sees its own calls elsewhere, and learns here which process runs."""
        run = self._all.get(_text(about["run"]))
        if run is not None and not run.pid:
            run.pid = int(about["pid"])

    def _reply(self, number: object, message: Mapping[str, Any]) -> None:
        reply = self._replies.get(number) if isinstance(number, int) else None
        if reply is not None and not reply.done():
            reply.set_result(_text(message["fault"]))

    async def _do(self, request: dict[str, Any]) -> str:
        """Send a request, and return why it was not done; an empty text if it was."""
        number = next(self._numbers)
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[str] = loop.create_future()
        self._replies[number] = reply
        try:
            async with asyncio.timeout(_REPLY_SECONDS):
                await loop.sock_sendall(self._connection, line_of({**request, "n": number}))
                return await reply
        except TimeoutError:
            return "the process does not answer"
        except OSError:
            return _GONE
        finally:
            del self._replies[number]


def _set_state(run: SeenRun, about: Mapping[str, Any]) -> None:
    part = about["part"]
    if part is not None:
        progress, total, message = part
        total = None if total is None else float(total)
        run.part = Part(float(progress), total, _text(message))
    asked = {}
    for one in about["questions"][:_MAX_QUESTIONS]:
        question_id = _text(one["id"])
        if not question_id.isalnum():
            raise ValueError("not an id")
        schema = _schema(one["schema"])
        asked[question_id] = WaitingQuestion(question_id, _text(one["message"]), schema)
    run.questions = asked


def _add_output(run: SeenRun, about: Mapping[str, Any]) -> None:
    if "pid" in about:
        run.pid = int(about["pid"])
    _add(run.stdout, about, "stdout")
    _add(run.stderr, about, "stderr")


def _end(run: SeenRun, about: Mapping[str, Any]) -> None:
    _add_output(run, about)
    outcome = about["outcome"]
    run.end(outcome if outcome in _OUTCOMES else "unknown", _text(about["error"]))


def _add(stream: SeenOutput, about: Mapping[str, Any], name: str) -> None:
    if left_out := about.get(f"{name}_left_out"):
        stream.add_text(f"\n[{int(left_out)} bytes were not shown]\n")
    stream.add(unpacked(about.get(name)))


_CHANGES = {"state": _set_state, "output": _add_output, "ended": _end}


def _caller(about: Mapping[str, Any]) -> str:
    client = _text(about["client"])
    return client or _CALLERS.get(_text(about["kind"]), "a program")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value[:_MAX_TEXT]


def _schema(value: object) -> Mapping[str, Any]:
    """A form of plain fields."""
    schema = _object(value)
    for field in _object(schema.get("properties", {})).values():
        _object(field)
    return schema


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("not an object")
    return value
