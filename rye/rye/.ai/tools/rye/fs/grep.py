# rye:signed:20261118T125305Z:6635c92fbc884c16444e3bcdc3a32eb1e3aae7fde90ba4d10b08391e28a9acef:6RPo1QOf6Qdcgt08wXEfSicwgDqWapflSBgioey3OW3BHCIDuO047ZfkPHFY4G2hruFKrSIp29kZPSazBSisBg==:0cdadc7a57fefd2c
"""Find lines in files by a regular expression."""

# ruff: noqa: PTH112 - pathlib would add to the start of every call

from __future__ import annotations

import os
import re
from typing import Any, Iterator  # noqa: UP035 - the project may use an old Python

from rye_textfile import is_binary, open_plain
from rye_walk import Walk, pattern
from rye_workspace import Refused, Workspace

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "fs"
__tool_description__ = (
    "Finds lines in the text files of the project by a Python regular expression. Binary files, "
    "files over 5 MiB, names that start with a dot and files that may contain secrets are skipped."
)

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "pattern": {
            "type": "string",
            "minLength": 1,
            "description": "The regular expression to find in a line",
        },
        "path": {
            "type": "string",
            "minLength": 1,
            "default": ".",
            "description": "The folder or file to search, relative to the project",
        },
        "glob": {
            "type": "string",
            "minLength": 1,
            "description": "Only files whose path matches, such as *.py or src/**",
        },
        "literal": {
            "type": "boolean",
            "default": False,
            "description": "Search for the pattern as plain text",
        },
        "ignore_case": {"type": "boolean", "default": False},
        "context": {
            "type": "integer",
            "minimum": 0,
            "maximum": 20,
            "default": 0,
            "description": "Lines to include before and after each match",
        },
        "hidden": {
            "type": "boolean",
            "default": False,
            "description": "Include names that start with a dot",
        },
        "include_ignored": {
            "type": "boolean",
            "default": False,
            "description": "Include caches and installed packages such as node_modules",
        },
        "max_results": {
            "type": "integer",
            "minimum": 1,
            "maximum": 5000,
            "default": 200,
            "description": "Maximum number of matching lines",
        },
    },
    "required": ["pattern"],
    "additionalProperties": False,
}

# Ends a regular expression that takes exponential time on a line.
CONFIG = {"timeout": 60}

# This tool protects .env by itself, and names it in its messages.
PERMISSIONS = {"read": ["{project_path}", "{project_path}/.env"]}
ENV_CONFIG = {"env": {"RYE_FS_ALLOW": "${RYE_FS_ALLOW:-}"}}

ANNOTATIONS = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

MAX_FILE = 5 * 1024 * 1024
MAX_LINE = 500


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return ``matches`` with ``path`` (relative to the project), ``line`` and ``text``.

    With ``context``, each also has ``before`` and ``after``. ``files_searched`` and
    ``files_skipped`` are numbers of files.
    """
    workspace = Workspace(project_path)
    wanted = _expression(params)
    root = workspace.resolve(params["path"])
    matches: list[dict[str, Any]] = []
    searched = skipped = 0
    complete = True
    walk = Walk(root, hidden=params["hidden"], ignored=params["include_ignored"])
    for real in _files(workspace, root, walk, params):
        lines = _lines(real, workspace.shown(real)) if workspace.may_read(real) else None
        if lines is None:
            skipped += 1
            continue
        searched += 1
        shown = workspace.shown(real)
        for index, line in enumerate(lines):
            if wanted.search(line) is None:
                continue
            if len(matches) == params["max_results"]:
                complete = False
                break
            matches.append(_match(shown, lines, index, params["context"]))
        if not complete:
            break
    return {
        "matches": matches,
        "complete": complete and walk.complete,
        "files_searched": searched,
        "files_skipped": skipped,
    }


def _expression(params: dict[str, Any]) -> re.Pattern[str]:
    text = re.escape(params["pattern"]) if params["literal"] else params["pattern"]
    try:
        return re.compile(text, re.IGNORECASE if params["ignore_case"] else 0)
    except (re.error, RecursionError, OverflowError) as error:
        raise Refused(
            f"the pattern is not a valid regular expression ({error}); fix it, or set literal to true"
        ) from None


def _files(workspace: Workspace, root: str, walk: Walk, params: dict[str, Any]) -> Iterator[str]:
    if not os.path.isdir(root):
        yield workspace.file(params["path"])
        return
    wanted = pattern(params["glob"]) if "glob" in params else None
    for entry in walk.entries():
        if entry.kind == "file" and (wanted is None or wanted.fullmatch(entry.path)):
            yield entry.real


def _lines(real: str, shown: str) -> list[str] | None:
    """The lines of a text file; ``None`` if it is binary, too large or unreadable."""
    try:
        fd = open_plain(real, shown)
    except Refused:
        return None
    with os.fdopen(fd, "rb") as file:
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE or is_binary(data):
        return None
    lines = data.decode("utf-8", "replace").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _match(shown: str, lines: list[str], index: int, context: int) -> dict[str, Any]:
    match: dict[str, Any] = {"path": shown, "line": index + 1, "text": _cut(lines[index])}
    if context:
        match["before"] = [_cut(line) for line in lines[max(0, index - context) : index]]
        match["after"] = [_cut(line) for line in lines[index + 1 : index + 1 + context]]
    return match


def _cut(line: str) -> str:
    line = line.rstrip("\r")
    return line if len(line) <= MAX_LINE else line[:MAX_LINE] + "…"
