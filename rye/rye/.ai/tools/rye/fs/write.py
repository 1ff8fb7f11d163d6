# rye:signed:20261118T125305Z:b79fc8cecdbebbad4b54b426b65985e4a3feaa7feb42f63a07d12ed0c5498f0f:fg-iGOG9WFq8BsPsc49lkV745PzeRsKQRvw6SvH9GtDaWj00ntDJ4KlW6PlSHnBrvdO-K7ih8S3gHvUcNmveCQ==:0cdadc7a57fefd2c
"""Write a text file atomically."""

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
    "Writes a UTF-8 text file of the project atomically: readers see the old content or the new. "
    "Missing folders are created; an existing file is replaced and keeps its mode. Names that start "
    "with a dot, repositories and installed packages cannot be written."
)

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {
            "type": "string",
            "minLength": 1,
            "description": "The file, relative to the project",
        },
        "content": {"type": "string", "description": "The complete new content"},
        "create_only": {
            "type": "boolean",
            "default": False,
            "description": "Fail if the file already exists",
        },
    },
    "required": ["path", "content"],
    "additionalProperties": False,
}

# This tool protects .env by itself, and names it in its messages.
PERMISSIONS = {"write": ["{project_path}", "{project_path}/.env"]}
ENV_CONFIG = {"env": {"RYE_FS_ALLOW": "${RYE_FS_ALLOW:-}"}}

ANNOTATIONS = {"read_only": False, "destructive": True, "idempotent": True, "open_world": False}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return ``path`` and ``size`` in bytes; ``created`` is true if the file is new."""
    workspace = Workspace(project_path)
    if params["path"].endswith(("/", os.sep)):
        raise Refused(f"{params['path']} is a folder; add the name of the file")
    real = workspace.target(params["path"])
    shown = workspace.shown(real)
    data = encode(params["content"], "content")
    try:
        os.makedirs(os.path.dirname(real), exist_ok=True)
    except OSError as error:
        raise Refused(f"the folder of {shown} cannot be created: {error.strerror}") from None
    created = write_atomic(real, data, shown, create_only=params["create_only"])
    return {"path": shown, "size": len(data), "created": created}
