# rye:signed:20261116T195035Z:56bbd3f2e8fadc3878a189bfa378bf8579d001118b6d742561b10bc1785104ce:8l2NWSaFrIvHbGUL6Gs0HeGXho5aP30Xf7RY-F_JgrwwHWc2DE3ZCzc1D-Q8c60NYmKzhXwkwDU19Ca_OHc4CA==:cd7c763470a45766
"""Writes a text file in one step."""

# ruff: noqa: PTH103, PTH120 - pathlib would add to the start of every call

from __future__ import annotations

import os
from typing import Any

from rye_textfile import encode, write_atomic
from rye_workspace import Refused, Workspace

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "fs"
__tool_description__ = (
    "Writes a UTF-8 text file of the project in one step: readers see the old content or the new. "
    "Missing folders are made; an existing file is replaced and keeps its mode."
)

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {
            "type": "string",
            "minLength": 1,
            "description": "The file, relative to the project",
        },
        "content": {"type": "string", "description": "The whole new content"},
        "create_only": {
            "type": "boolean",
            "default": False,
            "description": "Refuse to replace a file that exists",
        },
        "allow_outside": {
            "type": "boolean",
            "default": False,
            "description": "Allow a path that leads out of the project",
        },
    },
    "required": ["path", "content"],
    "additionalProperties": False,
}

ANNOTATIONS = {"read_only": False, "destructive": True, "idempotent": True, "open_world": False}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Gives ``path``, ``size`` in bytes and whether the file was ``created``."""
    workspace = Workspace(project_path, allow_outside=params["allow_outside"])
    if params["path"].endswith(("/", os.sep)):
        raise Refused(f"{params['path']} names a folder; add the name of the file")
    real = workspace.resolve(params["path"])
    shown = workspace.shown(real)
    data = encode(params["content"], "content")
    try:
        os.makedirs(os.path.dirname(real), exist_ok=True)
    except OSError as error:
        raise Refused(f"the folder of {shown} cannot be made: {error.strerror}") from None
    created = write_atomic(real, data, shown, create_only=params["create_only"])
    return {"path": shown, "size": len(data), "created": created}
