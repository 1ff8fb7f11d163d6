# rye:signed:20261116T195035Z:b69477f1cec2f235070d0356289fded08f8d653ffb9ac7a55c1d27d74d206692:0cPmeqrk4tcs-e0pfG-J57_f40nZO6N0uwYM8TG7NjqwakH01TbjF3q6WdAyzyT7HsH4RuPzAcS-PZVERET3DQ==:cd7c763470a45766
"""Finds files by a pattern of their paths."""

from __future__ import annotations

from typing import Any

from rye_walk import Walk, pattern
from rye_workspace import Workspace

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "fs"
__tool_description__ = (
    "Finds files of the project by a pattern such as **/*.py or src/*.{js,ts}. A pattern without "
    "a slash looks at names in every folder."
)

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "pattern": {
            "type": "string",
            "minLength": 1,
            "description": "* and ? within a name, ** across folders, [a-z], {py,md}",
        },
        "path": {
            "type": "string",
            "minLength": 1,
            "default": ".",
            "description": "The folder to search, relative to the project",
        },
        "hidden": {
            "type": "boolean",
            "default": False,
            "description": "Also what begins with a dot; on by itself if the pattern names such",
        },
        "include_ignored": {
            "type": "boolean",
            "default": False,
            "description": "Also caches and foreign packages such as node_modules",
        },
        "max_results": {
            "type": "integer",
            "minimum": 1,
            "maximum": 10000,
            "default": 1000,
            "description": "How many files at most",
        },
        "allow_outside": {
            "type": "boolean",
            "default": False,
            "description": "Allow a path that leads out of the project",
        },
    },
    "required": ["pattern"],
    "additionalProperties": False,
}

ANNOTATIONS = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Gives ``files``, relative to ``path`` and in order, and whether they are ``complete``."""
    workspace = Workspace(project_path, allow_outside=params["allow_outside"])
    real = workspace.folder(params["path"])
    wanted = pattern(params["pattern"])
    hidden = params["hidden"] or "/." in f"/{params['pattern'].removeprefix('./')}"
    walk = Walk(real, hidden=hidden, ignored=params["include_ignored"])
    files: list[str] = []
    complete = True
    for entry in walk.entries():
        if entry.kind in ("folder", "other") or wanted.fullmatch(entry.path) is None:
            continue
        if len(files) == params["max_results"]:
            complete = False
            break
        files.append(entry.path)
    return {
        "path": workspace.shown(real),
        "files": files,
        "complete": complete and walk.complete,
        "unreadable": walk.unreadable,
    }
