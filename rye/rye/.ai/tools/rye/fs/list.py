# rye:signed:20261116T195035Z:1062b213d2a44e75c92545db82d080385c88708b9c58fd32b76159baf962d07a:rhP0NToWWYwWPXzg2r_4BzM1KwcCRNAqkrxmAxm5Wh1FxUvLtFLN0rkb5GOEQqkpLR_inf3WPIWlH9IOxsT0Bg==:cd7c763470a45766
"""Lists a folder."""

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
    "Lists a folder of the project, one level or several. Symbolic links are shown, not followed."
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
            "description": "How many levels",
        },
        "hidden": {
            "type": "boolean",
            "default": False,
            "description": "Also what begins with a dot",
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
            "description": "How many entries at most",
        },
        "allow_outside": {
            "type": "boolean",
            "default": False,
            "description": "Allow a path that leads out of the project",
        },
    },
    "additionalProperties": False,
}

ANNOTATIONS = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Gives ``entries`` with ``path`` (below the folder), ``kind``, and ``size`` of files."""
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
