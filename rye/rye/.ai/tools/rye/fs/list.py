# rye:signed:20261116T195338Z:405ff269e45fa7db53328b6b11b1b7744b681d7c247a1041d1044d2d344ba9d5:erdt7MheyDIvVrw0tLclCwOXPVJ2lDb6Oht2CsGm1etLhCnv2Ypl7PhLpzvDvqLbzUsecKULLM1YVqTZNS9cBA==:f46ac53fe8a5b861
"""List a folder."""

# ruff: noqa: PTH115 - pathlib would add to the start of every call

from __future__ import annotations

import os
from typing import Any

from rye_walk import Walk
from rye_workspace import Workspace

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "fs"
__tool_description__ = (
    "Lists a folder of the project, one or more levels deep. Symbolic links are not followed."
)

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {
            "type": "string",
            "minLength": 1,
            "default": ".",
            "description": "The folder, relative to the project",
        },
        "depth": {
            "type": "integer",
            "minimum": 1,
            "maximum": 20,
            "default": 1,
            "description": "Number of levels",
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
            "maximum": 10000,
            "default": 1000,
            "description": "Maximum number of entries",
        },
        "allow_outside": {
            "type": "boolean",
            "default": False,
            "description": "Allow a path outside the project",
        },
    },
    "additionalProperties": False,
}

ANNOTATIONS = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return ``entries`` with ``path`` (relative to the folder), ``kind``, and ``size`` of files."""
    workspace = Workspace(project_path, allow_outside=params["allow_outside"])
    real = workspace.folder(params["path"])
    walk = Walk(
        real, hidden=params["hidden"], ignored=params["include_ignored"], depth=params["depth"]
    )
    entries: list[dict[str, Any]] = []
    complete = True
    for entry in walk.entries():
        if len(entries) == params["max_results"]:
            complete = False
            break
        described: dict[str, Any] = {"path": entry.path, "kind": entry.kind}
        if entry.kind == "file":
            described["size"] = _size(entry.real)
        elif entry.kind == "link":
            described["target"] = _target(entry.real)
        entries.append(described)
    return {
        "path": workspace.shown(real),
        "entries": entries,
        "complete": complete and walk.complete,
        "unreadable": walk.unreadable,
    }


def _size(path: str) -> int | None:
    try:
        return os.lstat(path).st_size
    except OSError:
        return None


def _target(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None
