# rye:signed:20261116T195035Z:a87dfa80c19b2b14fd5fa02d7c0958f15aba0e3eaa57b9e0d10f27b0893ab9c7:KV3xjgyumT6YDVvj6ilPqT2KtRqEcgBfOwC1yI1VVCE3xHEQ4gvnh3aW90n8xtghT8E9ZworThq2JKG6_3FYBg==:cd7c763470a45766
"""Replaces a piece of text in a file."""

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
    "Replaces an exact piece of text in a UTF-8 file of the project and gives the difference. "
    "The piece must occur exactly once, unless replace_all is set."
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
            "description": "The text to replace, exactly as it stands in the file",
        },
        "new_text": {"type": "string", "description": "The text to put there"},
        "replace_all": {
            "type": "boolean",
            "default": False,
            "description": "Replace every occurrence",
        },
        "allow_outside": {
            "type": "boolean",
            "default": False,
            "description": "Allow a path that leads out of the project",
        },
    },
    "required": ["path", "old_text", "new_text"],
    "additionalProperties": False,
}

ANNOTATIONS = {"read_only": False, "destructive": True, "idempotent": False, "open_world": False}

MAX_FILE = 10 * 1024 * 1024
MAX_DIFF = 64 * 1024
# A diff of two large and very different texts takes quadratic time.
MAX_DIFFED = 512 * 1024


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Gives ``path``, the number of ``replacements`` and a unified ``diff``, bounded."""
    workspace = Workspace(project_path, allow_outside=params["allow_outside"])
    real = workspace.file(params["path"])
    shown = workspace.shown(real)
    before = decode(read_bytes(real, shown, MAX_FILE), shown)
    old, new = _in_the_line_ends_of(before, params["old_text"], params["new_text"])
    if old == new:
        raise Refused("old_text and new_text are the same; there is nothing to change")
    count = before.count(old)
    if count == 0:
        raise Refused(f"{shown} does not contain old_text; {_nearest(before, old)}")
    if count > 1 and not params["replace_all"]:
        raise Refused(
            f"{shown} contains old_text {count} times (lines {_lines_of(before, old)}); "
            "add lines around it, or set replace_all to true"
        )
    after = before.replace(old, new)
    write_atomic(real, encode(after, "new_text"), shown)
    diff, complete = _diff(before, after, shown)
    return {"path": shown, "replacements": count, "diff": diff, "diff_complete": complete}


def _in_the_line_ends_of(text: str, old: str, new: str) -> tuple[str, str]:
    """A caller who writes ``\\n`` means the line ends of the file."""
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


def _nearest(text: str, piece: str) -> str:
    """Where the piece nearly is, if only blanks differ; that is the usual slip."""
    wanted = next((line.strip() for line in piece.splitlines() if line.strip()), "")
    if wanted:
        for number, line in enumerate(text.splitlines(), start=1):
            if wanted in line:
                return (
                    f"its first line is like line {number}, so blanks or later lines differ: "
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
