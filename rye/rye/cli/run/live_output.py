"""What a running tool says, on its way to the terminal, the file or the pipe.

It passes as it comes and as it is, with one exception each for people and for both: JSON that is
looked at on a terminal is indented, and a single JSON text, which is how many runtimes hand over
what a function returned, is shown as the text that it is. To tell, output that may turn out to be
such a value is held back until it is clear.
"""

from __future__ import annotations

import os
import signal
import sys

from rye.cli.output.printing import is_terminal, json_text, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rye.cli.output.progress import Progress
    from rye.cli.run.interruption import Interruption

_MAX_HELD = 1024 * 1024
_NO_VALUE: Any = object()
_TERMINAL = "terminal"
# What may follow the first character of an array or object; a log line such as `[INFO]` differs.
_INSIDE = {"[": '[]{"-0123456789tfn', "{": '"}'}


class LiveOutput:
    """The callback for the output of one tool. Call :meth:`finish` when it has ended."""

    def __init__(self, interruption: Interruption, progress: Progress) -> None:
        self._interruption = interruption
        self._progress = progress
        self._terminal = is_terminal(sys.stdout)
        self._held = ""
        self._holding = True
        self._open_lines: set[str] = set()
        self._faults: dict[str, OSError] = {}

    def __call__(self, stream: str, text: str) -> None:
        """Show, or hold back. A reader that is gone ends the call; the tool of a full disk may do
        its work, and :meth:`finish` raises."""
        try:
            if stream == "stdout" and self._holding:
                self._hold(text)
            else:
                self._write(stream, text)
        except BrokenPipeError:
            self._interruption.end(signal.SIGPIPE)
        except OSError as error:
            self._faults.setdefault(stream, error)

    def finish(self) -> None:
        """Show what was held back, and end a line that is open on a terminal."""
        if "stdout" in self._faults:
            raise self._faults["stdout"]
        held, self._held, self._holding = self._held, "", False
        if held:
            self._write("stdout", self._presented(held))
        if _TERMINAL in self._open_lines:
            self._write("stdout" if self._terminal else "stderr", "\n")

    def make_room(self) -> None:
        """End a line that is open on stderr: a message of ours follows."""
        if {_TERMINAL, "stderr"} & self._open_lines:
            self._write("stderr", "\n")

    def break_off(self) -> None:
        """Show what can be shown without waiting for a reader, after the call was ended."""
        try:
            if self._terminal:
                self.finish()
            self.make_room()
        except OSError:  # the terminal is gone, which may be why
            return

    def show(self, data: Any) -> None:
        """The data of a tool that does not print, such as the body of a response."""
        if isinstance(data, str):
            self._write("stdout", data)
        elif data is not None:
            self._write("stdout", _indented(data) if self._terminal else f"{json_text(data)}\n")
        self.finish()

    def _hold(self, text: str) -> None:
        self._held += text
        if not self._may_be_presented():
            held, self._held, self._holding = self._held, "", False
            self._write("stdout", held)

    def _may_be_presented(self) -> bool:
        begun = self._held.lstrip()
        if len(self._held) > _MAX_HELD:
            return False
        if not begun:
            return True
        first, line_end, more = begun.partition("\n")
        if begun[0] == '"':  # a JSON text is on one line
            return not line_end or (not more.strip() and isinstance(_parsed(first), str))
        if not self._terminal or begun[0] not in _INSIDE:
            return False
        inside = begun[1:].lstrip()
        if inside and inside[0] not in _INSIDE[begun[0]]:
            return False
        # A whole value and then more: lines of JSON, one after the other as they come.
        return not (line_end and more.strip() and _parsed(first) is not _NO_VALUE)

    def _presented(self, text: str) -> str:
        value = _parsed(text)
        if isinstance(value, str):
            return value if value.endswith("\n") else f"{value}\n"
        return _indented(value) if self._terminal and isinstance(value, dict | list) else text

    def _write(self, stream: str, text: str) -> None:
        if not text or stream in self._faults:
            return
        self._progress.stop()
        target = sys.stderr if stream == "stderr" else sys.stdout
        # Both streams of one terminal share its cursor.
        place = _TERMINAL if is_terminal(target) else stream
        if text.endswith("\n"):
            self._open_lines.discard(place)
        else:
            self._open_lines.add(place)
        target.flush()
        _write_all(target.fileno(), text.encode("utf-8", "backslashreplace"))


def _parsed(text: str) -> Any:
    import json

    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return _NO_VALUE


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _indented(value: Any) -> str:
    return f"{plain(json_text(value, indent=2))}\n"


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            # Somebody who shares the terminal or pipe has made it non-blocking.
            import select

            select.select([], [descriptor], [])
