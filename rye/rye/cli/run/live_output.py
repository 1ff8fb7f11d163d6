"""The output of a running tool, passed on to a terminal, file or pipe.

It is passed on unchanged and at once, with two exceptions. If the whole output is one JSON string,
which is how many runtimes return text, the text itself is shown. On a terminal, JSON is indented.
Output that may turn out to be such a value is buffered until that is decided.
"""

from __future__ import annotations

import os
import signal
import sys

from lilux.primitives.subprocess.output import output_bytes

from rye.cli.output.printing import is_terminal, json_text, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rye.cli.output.progress import RunningTime
    from rye.cli.run.interruption import Interruption

_MAX_BUFFERED = 1024 * 1024
_NO_VALUE: Any = object()
_TERMINAL = "terminal"
# What may follow the first character of a JSON array or object, unlike in `[INFO] …`.
_INSIDE = {"[": '[]{"-0123456789tfn', "{": '"}'}


class LiveOutput:
    """The callback for the output of one tool. Call :meth:`finish` when the tool has ended."""

    def __init__(self, interruption: Interruption, running_time: RunningTime) -> None:
        self._interruption = interruption
        self._running_time = running_time
        self._terminal = is_terminal(sys.stdout)
        self._buffer = ""
        self._buffering = True
        self._open_lines: set[str] = set()
        self._faults: dict[str, OSError] = {}

    def __call__(self, stream: str, text: str) -> None:
        """Write or buffer some output.

        A broken pipe ends the call. After another error, as on a full disk, the tool continues,
        and :meth:`finish` raises the error.
        """
        try:
            if stream == "stdout" and self._buffering:
                self._add_to_buffer(text)
            else:
                self._write(stream, text)
        except BrokenPipeError:
            self._interruption.end(signal.SIGPIPE)
        except OSError as error:
            self._faults.setdefault(stream, error)

    def finish(self) -> None:
        """Write what is buffered, and complete the last line on a terminal."""
        if "stdout" in self._faults:
            raise self._faults["stdout"]
        buffered, self._buffer, self._buffering = self._buffer, "", False
        if buffered:
            self._write("stdout", self._formatted(buffered))
        if _TERMINAL in self._open_lines:
            self._write("stdout" if self._terminal else "stderr", "\n")

    @property
    def is_inside_line(self) -> bool:
        """True if the last line on the terminal is incomplete."""
        return _TERMINAL in self._open_lines

    def end_open_line(self) -> None:
        """Complete the last line on stderr, before an error message."""
        if {_TERMINAL, "stderr"} & self._open_lines:
            self._write("stderr", "\n")

    def finish_interrupted(self) -> None:
        """Write what is buffered after an interrupt, unless that could block on a slow reader."""
        try:
            if self._terminal:
                self.finish()
            self.end_open_line()
        except OSError:  # the terminal may have been closed
            return

    def show(self, data: Any) -> None:
        """Write the data of a tool that prints nothing, such as an HTTP response."""
        if isinstance(data, str):
            self._write("stdout", data)
        elif data is not None:
            self._write("stdout", _indented(data) if self._terminal else f"{json_text(data)}\n")
        self.finish()

    def _add_to_buffer(self, text: str) -> None:
        self._buffer += text
        if not self._may_need_formatting():
            buffered, self._buffer, self._buffering = self._buffer, "", False
            self._write("stdout", buffered)

    def _may_need_formatting(self) -> bool:
        begun = self._buffer.lstrip()
        if len(self._buffer) > _MAX_BUFFERED:
            return False
        if not begun:
            return True
        first, line_end, more = begun.partition("\n")
        if begun[0] == '"':  # a JSON string is on one line
            return not line_end or (not more.strip() and isinstance(_parsed(first), str))
        if not self._terminal or begun[0] not in _INSIDE:
            return False
        inside = begun[1:].lstrip()
        if inside and inside[0] not in _INSIDE[begun[0]]:
            return False
        # A complete value followed by more is JSON Lines, which is passed on line by line.
        return not (line_end and more.strip() and _parsed(first) is not _NO_VALUE)

    def _formatted(self, text: str) -> str:
        value = _parsed(text)
        if isinstance(value, str):
            return value if value.endswith("\n") else f"{value}\n"
        return _indented(value) if self._terminal and isinstance(value, dict | list) else text

    def _write(self, stream: str, text: str) -> None:
        if not text or stream in self._faults:
            return
        self._running_time.stop()
        target = sys.stderr if stream == "stderr" else sys.stdout
        # On a terminal, stdout and stderr share the cursor.
        place = _TERMINAL if is_terminal(target) else stream
        if text.endswith("\n"):
            self._open_lines.discard(place)
        else:
            self._open_lines.add(place)
        target.flush()
        _write_all(target.fileno(), output_bytes(text))


def _parsed(text: str) -> Any:
    import json

    try:
        text.encode()  # fails for bytes that are not UTF-8, which are not JSON
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return _NO_VALUE


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _indented(value: Any) -> str:
    return f"{plain(json_text(value, indent=2))}\n"


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            # Another process that shares the terminal or pipe has made it non-blocking.
            import select

            select.select([], [descriptor], [])
