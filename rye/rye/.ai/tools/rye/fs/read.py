# rye:signed:20261116T195035Z:706662a3876343c5c84e4ba5abd9acae49208f622460330cb48ebdb93d335e6b:2ReN1eq4QGM2KW8J8KeyPCJE_qVQm4lOzWexZ-oREcA3LQgYibkSsmw_zUahzNtQCdGEjKU4XR3Fa6X74HtHDQ==:cd7c763470a45766
"""Reads a text file, whole or a range of its lines."""

from __future__ import annotations

import os
from typing import Any

from rye_textfile import decode, is_binary, open_plain
from rye_workspace import Refused, Workspace

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "fs"
__tool_description__ = (
    "Reads a UTF-8 text file of the project, whole or a range of lines. The result is bounded; "
    "next_line says where to go on."
)

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {
            "type": "string",
            "minLength": 1,
            "description": "The file, relative to the project",
        },
        "start_line": {
            "type": "integer",
            "minimum": 1,
            "default": 1,
            "description": "The first line to read, counted from 1",
        },
        "max_lines": {
            "type": "integer",
            "minimum": 1,
            "maximum": 20000,
            "default": 2000,
            "description": "How many lines at most",
        },
        "allow_outside": {
            "type": "boolean",
            "default": False,
            "description": "Allow a path that leads out of the project",
        },
    },
    "required": ["path"],
    "additionalProperties": False,
}

ANNOTATIONS = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

MAX_CONTENT = 256 * 1024
_CHUNK = 256 * 1024


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Gives ``content`` with ``start_line``, ``end_line``, ``next_line`` and ``size`` in bytes.

    ``next_line`` is ``None`` at the end of the file. A line that is longer than all that fits is
    cut, and ``line_cut`` is true.
    """
    workspace = Workspace(project_path, allow_outside=params["allow_outside"])
    real = workspace.file(params["path"])
    shown = workspace.shown(real)
    first = params["start_line"]
    with os.fdopen(open_plain(real, shown), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if is_binary(file.read(8192)):
            raise Refused(f"{shown} is a binary file of {size} bytes; only text can be read")
        file.seek(0)
        skipped = _skip_lines(file, first - 1)
        if skipped < first - 1 or (first > 1 and file.tell() >= size):
            raise Refused(f"{shown} has {skipped} lines; start_line {first} is behind the end")
        content, lines, cut = _take_lines(file, params["max_lines"])
        at_end = not cut and file.tell() >= size
    text = decode(_whole_characters(content) if cut else content, shown)
    if first == 1 and text.startswith("\ufeff"):
        text = text[1:]
    return {
        "path": shown,
        "content": text,
        "start_line": first,
        "end_line": first + lines - 1,
        "next_line": None if at_end else first + lines,
        "line_cut": cut,
        "size": size,
    }


def _skip_lines(file: Any, count: int) -> int:
    for done in range(count):
        while True:
            piece = file.readline(_CHUNK)
            if not piece:
                return done
            if piece.endswith(b"\n"):
                break
            if len(piece) < _CHUNK:
                return done + 1
    return count


def _take_lines(file: Any, max_lines: int) -> tuple[bytes, int, bool]:
    """The bytes of whole lines, their number, and whether the only one had to be cut."""
    taken: list[bytes] = []
    room = MAX_CONTENT
    while len(taken) < max_lines:
        start = file.tell()
        line = file.readline(room + 1)
        if not line:
            break
        if len(line) > room:
            if not taken:
                return line[:room], 1, True
            file.seek(start)
            break
        taken.append(line)
        room -= len(line)
    return b"".join(taken), len(taken), False


def _whole_characters(data: bytes) -> bytes:
    """Without the beginning of a character that was cut at the end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data if back == needed else data[:-back]
    return data
