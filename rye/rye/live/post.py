"""Announces the calls of one process, and serves the pages that look at them, without waiting.

A page sends ``{"do": "cancel", "run": …}`` or ``{"do": "answer", "run": …, "question": …,
"answer": {…}}``, each with a number ``n`` that the reply repeats. It is sent ``call``, ``state``,
``output`` and ``ended`` for every call, without asking.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial

from rye.live.folder import connect, is_own_peer, listen, open_folder, remove, sockets
from rye.live.lines import Lines, line_of, packed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable, Mapping
    from pathlib import Path
    from typing import Any, Protocol

    class LiveCall(Protocol):
        """A call that can be announced."""

        @property
        def run_id(self) -> str:
            """The id in the history."""

        def described(self) -> dict[str, Any]:
            """What does not change: ``item``, ``client``, ``started``, ``parameters``, …"""

        def state(self) -> dict[str, Any]:
            """``part`` and ``questions``."""

        def look(self, on_sight: Any, stdout_from: int, stderr_from: int, limit: int) -> bool:
            """As ``Dialogue.look``; false if there is nothing to look at."""

        def cancel(self) -> str:
            """End the call; return why not, or an empty text."""

        def answer(self, question: str, answer: Mapping[str, Any]) -> str:
            """Answer a question; return why not, or an empty text."""


_MAX_BACKLOG = 8 * 1024 * 1024
_MAX_PAGES = 16
_READ_SIZE = 64 * 1024
_AT_ONCE = 256 * 1024
_MAX_BEHIND = 4 * _AT_ONCE
STREAMS = ("stdout", "stderr")


class _Page:
    """One page that looks at the calls."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.lines = Lines()
        self.outgoing = bytearray()
        self.states: dict[str, dict[str, Any]] = {}
        self.seen: dict[str, list[int]] = {}
        """How many bytes of each stream of a call were sent, or left out."""


class Post:
    """The announcement of a process. All methods belong to one thread."""

    def __init__(self, user_space: Path) -> None:
        """Raises ``OSError`` if nothing can be announced here."""
        folder = open_folder(user_space, create=True)
        if folder is None:
            raise PermissionError("the folder of calls under way cannot be used")
        self._pages: list[_Page] = []
        self._calls: dict[str, LiveCall] = {}
        self._totals: dict[str, list[int]] = {}
        """The sizes of the streams of a call at the last look."""
        try:
            _remove_dead(folder)
            self._listener, self._name = listen(folder, _MAX_PAGES)
        except BaseException:
            os.close(folder)
            raise
        self._folder = folder

    def add(self, call: LiveCall) -> None:
        """Announce a call."""
        self._calls[call.run_id] = call
        for page in self._pages:
            self._introduce(page, call)

    def remove(
        self, call: LiveCall, outcome: str, error: str, output: Mapping[str, bytes] | None
    ) -> None:
        """Say that a call has ended; ``output`` is all of it, if nothing of it was left out."""
        if self._calls.pop(call.run_id, None) is None:
            return
        self._totals.pop(call.run_id, None)
        for page in self._pages:
            at = page.seen.pop(call.run_id, [0, 0])
            page.states.pop(call.run_id, None)
            ended: dict[str, Any] = {"run": call.run_id, "outcome": outcome, "error": error}
            for stream, position in zip(STREAMS, at, strict=True):
                rest = b"" if output is None else output[stream][position:]
                ended[stream] = packed(rest[-_AT_ONCE:])
                ended[f"{stream}_left_out"] = max(0, len(rest) - _AT_ONCE)
            page.outgoing += line_of({"ended": ended})
        self._flush()

    @property
    def is_done(self) -> bool:
        """True if no call is announced, and the pages know that."""
        return not self._calls and not any(page.outgoing for page in self._pages)

    @property
    def is_watched(self) -> bool:
        """True if a page looks: then :meth:`serve` has something to do even if nothing arrives."""
        return bool(self._pages)

    def descriptors(self) -> Iterable[int]:
        """What to wait for; :meth:`serve` when one of them can be read."""
        return [self._listener.fileno(), *[page.connection.fileno() for page in self._pages]]

    def serve(self) -> None:
        """Do everything that can be done without waiting."""
        self._accept()
        for page in list(self._pages):
            self._hear(page)
        if self._pages:
            for call in list(self._calls.values()):
                self._show(call)
        self._flush()

    def close(self, *, patience: float = 0.0) -> None:
        """Withdraw the announcement; wait so many seconds for a page that has not read it all."""
        if self._folder >= 0:
            remove(self._folder, self._name)
            os.close(self._folder)
            self._folder = -1
        for page in self._pages:
            if page.outgoing and patience:
                page.connection.settimeout(patience)
                with suppress(OSError):
                    page.connection.sendall(page.outgoing)
            page.connection.close()
        self._pages.clear()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            if len(self._pages) >= _MAX_PAGES or not is_own_peer(connection):
                connection.close()
                continue
            connection.setblocking(False)
            page = _Page(connection)
            self._pages.append(page)
            for call in self._calls.values():
                self._introduce(page, call)

    def _introduce(self, page: _Page, call: LiveCall) -> None:
        page.seen[call.run_id] = [0, 0]
        page.outgoing += line_of({"call": {"run": call.run_id, **call.described()}})

    def _hear(self, page: _Page) -> None:
        try:
            while data := page.connection.recv(_READ_SIZE):
                for message in page.lines.feed(data):
                    fault = self._do(message)
                    page.outgoing += line_of({"reply": message.get("n"), "fault": fault})
        except (BlockingIOError, InterruptedError):
            return
        except (OSError, ValueError):
            pass
        self._drop(page)

    def _do(self, message: Mapping[str, Any]) -> str:
        call = self._calls.get(str(message.get("run")))
        if call is None:
            return "the call has ended"
        if message.get("do") == "cancel":
            return call.cancel()
        answer = message.get("answer")
        if message.get("do") == "answer" and isinstance(answer, dict):
            return call.answer(str(message.get("question")), answer)
        return "the request is not known here"

    def _show(self, call: LiveCall) -> None:
        state = call.state()
        for page in self._pages:
            if page.states.get(call.run_id) != state:
                page.states[call.run_id] = state
                page.outgoing += line_of({"state": {"run": call.run_id, **state}})
        seen = [page.seen.get(call.run_id, [0, 0]) for page in self._pages]
        at = [min(positions) for positions in zip(*seen, strict=True)]
        totals = self._totals.get(call.run_id, at)
        # Of somebody who writes faster than this, the latest part is shown.
        start = [
            -_AT_ONCE if total - position > _MAX_BEHIND else position
            for position, total in zip(at, totals, strict=True)
        ]
        # False while the last look is not answered; one that finds nothing calls nobody.
        call.look(partial(self._saw, call.run_id), start[0], start[1], _AT_ONCE)

    def _saw(self, run_id: str, sight: Any) -> None:
        if run_id not in self._calls:
            return
        self._totals[run_id] = [sight.stdout.total, sight.stderr.total]
        for page in self._pages:
            at = page.seen.get(run_id)
            if at is None or len(page.outgoing) > _MAX_BACKLOG // 2:
                continue
            output: dict[str, Any] = {"run": run_id, "pid": sight.pid}
            for index, stream in enumerate(STREAMS):
                part = getattr(sight, stream)
                end = part.start + len(part.data)
                if end > at[index]:
                    output[stream] = packed(part.data[max(0, at[index] - part.start) :])
                    output[f"{stream}_left_out"] = max(0, part.start - at[index])
                    at[index] = end
            page.outgoing += line_of({"output": output})

    def _flush(self) -> None:
        for page in list(self._pages):
            try:
                while page.outgoing:
                    del page.outgoing[: page.connection.send(page.outgoing)]
            except (BlockingIOError, InterruptedError):
                if len(page.outgoing) > _MAX_BACKLOG:
                    self._drop(page)
            except OSError:
                self._drop(page)

    def _drop(self, page: _Page) -> None:
        page.connection.close()
        if page in self._pages:
            self._pages.remove(page)


def _remove_dead(folder: int) -> None:
    """Remove the sockets of processes that were killed, also if no page does so."""
    for name in sockets(folder):
        connection = connect(folder, name)
        if connection is not None:
            connection.close()
