# rye:signed:20261118T125305Z:8456744cc30f0661c1729f3f62f20c734ce4a602de545de61c2e1ab1f35736af:4mbwCth9wiDI2ty8B6W7kTFx5jPyss_ufSDISJXTXlQ724rPCqhFzMI5EHEDMPaiWFZNexPSZjW0KwXX5dX8Bg==:0cdadc7a57fefd2c
"""Find files by a glob pattern."""

from __future__ import annotations

from typing import Any

from rye_walk import Walk, pattern
from rye_workspace import Workspace

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "fs"
__tool_description__ = (
    "Finds files of the project by a glob pattern such as **/*.py or src/*.{js,ts}. A pattern "
    "without a slash matches names in every folder."
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
            "description": "Include names that start with a dot; implied if the pattern contains one",
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
            "description": "Maximum number of files",
        },
    },
    "required": ["pattern"],
    "additionalProperties": False,
}

# This tool protects .env by itself, and names it in its messages.
PERMISSIONS = {"read": ["{project_path}", "{project_path}/.env"]}
ENV_CONFIG = {"env": {"RYE_FS_ALLOW": "${RYE_FS_ALLOW:-}"}}

ANNOTATIONS = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return sorted ``files``, relative to ``path``; ``complete`` is false if some are missing."""
    workspace = Workspace(project_path)
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
