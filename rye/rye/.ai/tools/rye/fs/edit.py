# rye:signed:20261118T125305Z:5da4f5390d04e4dce0c46a783ccd05251af8d8f97ec56ad320c0f2463d2483ee:CcaPce0ADP99-E-Fb4MVlTxrceKlNs3lS7fCeKHDYdW3W3MrtCd_W5vf-De7omuvfUMGWnc7laUNPKReRyEQCw==:0cdadc7a57fefd2c
"""Replace text in a file."""

from __future__ import annotations

import difflib
from typing import Any

from rye_textfile import decode, encode, read_bytes, write_atomic
from rye_workspace import Refused, Workspace

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "fs"
__tool_description__ = (
    "Replaces text in a UTF-8 file of the project and returns a diff. The old text must match "
    "exactly and occur once, unless replace_all is set."
)

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {
            "type": "string",
            "minLength": 1,
            "description": "The file, relative to the project",
        },
        "old_text": {
            "type": "string",
            "minLength": 1,
            "description": "The text to replace, exactly as in the file",
        },
        "new_text": {"type": "string", "description": "The new text"},
        "replace_all": {
            "type": "boolean",
            "default": False,
            "description": "Replace every occurrence",
        },
    },
    "required": ["path", "old_text", "new_text"],
    "additionalProperties": False,
}

# This tool protects .env by itself, and names it in its messages.
PERMISSIONS = {"write": ["{project_path}", "{project_path}/.env"]}
ENV_CONFIG = {"env": {"RYE_FS_ALLOW": "${RYE_FS_ALLOW:-}"}}

ANNOTATIONS = {"read_only": False, "destructive": True, "idempotent": False, "open_world": False}

MAX_FILE = 10 * 1024 * 1024
MAX_DIFF = 64 * 1024
# A diff takes quadratic time if two large texts differ much.
MAX_DIFFED = 512 * 1024


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return ``path``, the number of ``replacements`` and a unified ``diff`` of bounded size."""
    workspace = Workspace(project_path)
    real = workspace.file(params["path"])
    workspace.check_write(params["path"], real)
    shown = workspace.shown(real)
    before = decode(read_bytes(real, shown, MAX_FILE), shown)
    old, new = _with_line_ends_of(before, params["old_text"], params["new_text"])
    if old == new:
        raise Refused("old_text and new_text are the same; change new_text")
    count = before.count(old)
    if count == 0:
        raise Refused(f"{shown} does not contain old_text; {_hint(before, old)}")
    if count > 1 and not params["replace_all"]:
        raise Refused(
            f"{shown} contains old_text {count} times (lines {_lines_of(before, old)}); "
            "include the lines around it, or set replace_all to true"
        )
    after = before.replace(old, new)
    write_atomic(real, encode(after, "new_text"), shown)
    diff, complete = _diff(before, after, shown)
    return {"path": shown, "replacements": count, "diff": diff, "diff_complete": complete}


def _with_line_ends_of(text: str, old: str, new: str) -> tuple[str, str]:
    """Convert ``\\n`` to the line ends of the file."""
    if old not in text and "\r\n" in text and "\r\n" not in old:
        return old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")
    return old, new


def _lines_of(text: str, piece: str) -> str:
    lines: list[str] = []
    place = text.find(piece)
    while place >= 0 and len(lines) < 10:
        lines.append(str(text.count("\n", 0, place) + 1))
        place = text.find(piece, place + len(piece))
    return ", ".join(lines) + (", …" if place >= 0 else "")


def _hint(text: str, piece: str) -> str:
    """A hint where the text almost matches, if only whitespace differs."""
    wanted = next((line.strip() for line in piece.splitlines() if line.strip()), "")
    if wanted:
        for number, line in enumerate(text.splitlines(), start=1):
            if wanted in line:
                return (
                    f"its first line matches line {number}, but whitespace or later lines differ: "
                    "read the file again"
                )
    return "read the file and copy the text exactly"


def _diff(before: str, after: str, shown: str) -> tuple[str, bool]:
    if len(before) > MAX_DIFFED:
        return "", False
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        f"a/{shown}",
        f"b/{shown}",
    )
    out: list[str] = []
    size = 0
    for line in lines:
        whole = line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        size += len(whole)
        if size > MAX_DIFF:
            return "".join(out), False
        out.append(whole)
    return "".join(out), True
