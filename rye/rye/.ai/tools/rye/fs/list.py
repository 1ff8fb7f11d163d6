# rye:signed:20261118T125305Z:7d347067c14b37e8ffc4bb9d90ddba643dcefaa3335378e6969c5a1d49d741b1:vvfGoZOA8OajQxqtCQODEhmhWvr3CkVw5PtVWl7p23CYJJebUkQNyrJ6jYap0wkubG7Qgr6-LRAw_C3ZxCCuAw==:0cdadc7a57fefd2c
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
    },
    "additionalProperties": False,
}

# This tool protects .env by itself, and names it in its messages.
PERMISSIONS = {"read": ["{project_path}", "{project_path}/.env"]}
ENV_CONFIG = {"env": {"RYE_FS_ALLOW": "${RYE_FS_ALLOW:-}"}}

ANNOTATIONS = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return ``entries`` with ``path`` (relative to the folder), ``kind``, and ``size`` of files."""
    workspace = Workspace(project_path)
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
