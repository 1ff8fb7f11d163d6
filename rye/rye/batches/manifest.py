"""The manifest of a batch: what runs, and how. A user may have edited it."""

from __future__ import annotations

import json
from pathlib import Path
from types import NoneType
from typing import Any

from rye.errors import BatchError

VERSION = 1
_FIELDS = {"tool": str, "space": str, "closure": str, "calls": int, "options": dict}
_OPTIONS = {
    "env": (list, NoneType),
    "jobs": (int, NoneType),
    "max_failures": (int, NoneType),
    "on": (str, NoneType),
    "order": (str, NoneType),
    "out": (str, NoneType),
    "receipts": (str, NoneType),
    "retry": (int, NoneType),
    "timeout": (int, float, NoneType),
}


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest in the folder of a batch. Raises :class:`BatchError`."""
    try:
        found = json.loads((folder / "manifest.json").read_bytes())
    except OSError:
        if (folder / "calls.jsonl").exists():
            raise BatchError(
                f"the batch {folder} has not begun: its calls have not all been checked",
                hint="if nothing is reading them now, remove the folder and start the batch again",
            ) from None
        raise BatchError(f"{folder} is not a batch", hint="pass the folder of a batch") from None
    except ValueError:
        raise _damaged(folder, "not JSON") from None
    if not isinstance(found, dict):
        raise _damaged(folder, "not an object")
    if found.get("version") != VERSION:
        raise _damaged(folder, f"'version' is not {VERSION}")
    for name, kind in _FIELDS.items():
        if not isinstance(found.get(name), kind):
            raise _damaged(folder, f"{name!r} is missing or is not of type {kind.__name__}")
    if found["calls"] < 0:
        raise _damaged(folder, "'calls' is negative")
    for name, kinds in _OPTIONS.items():
        if not isinstance(found["options"].get(name), kinds):
            raise _damaged(folder, f"'options.{name}' is not of type {kinds[0].__name__}")
    return found


def _damaged(folder: Path, reason: str) -> BatchError:
    return BatchError(
        f"{folder / 'manifest.json'} cannot be used: {reason}",
        hint="restore it, or start another batch",
    )
