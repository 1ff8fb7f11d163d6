# rye:signed:20261118T125305Z:ec9f933e508da5d184b5fc0a1f99ae93cc3b1e8c173ad74d082ddeba1247d0d6:lZ_zZi9-_hNbnkTyGRScYS4KAHXrxz1NbgtL6Q4Skiea2znKhZJGU5_UlGpvKCsJ1DmjLVnt6PjNqBuS0gNJCw==:0cdadc7a57fefd2c
"""Read a text file, or a range of its lines."""

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
    "Reads a UTF-8 text file of the project, or a range of its lines. The size of the result is "
    "limited; next_line is where to continue."
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
            "description": "Maximum number of lines",
        },
    },
    "required": ["path"],
    "additionalProperties": False,
}

# This tool protects .env by itself, and names it in its messages.
PERMISSIONS = {"read": ["{project_path}", "{project_path}/.env"]}
ENV_CONFIG = {"env": {"RYE_FS_ALLOW": "${RYE_FS_ALLOW:-}"}}

ANNOTATIONS = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

MAX_CONTENT = 256 * 1024
_CHUNK = 256 * 1024


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return ``content`` with ``start_line``, ``end_line``, ``next_line`` and ``size`` in bytes.

    ``next_line`` is ``None`` at the end of the file. A line longer than the limit is cut, and
    ``line_cut`` is true.
    """
    workspace = Workspace(project_path)
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
            raise Refused(f"{shown} has {skipped} lines; start_line {first} is after the end")
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
    """Read whole lines; return their bytes, their number, and true if the only one was cut."""
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
    """Remove an incomplete UTF-8 character at the end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data if back == needed else data[:-back]
    return data
