"""Executable files for an ``EnvResolver`` to find."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lilux.runtime.env_resolver import EnvResolver


def program(path: Path, mode: int = 0o755) -> str:
    """Write an executable file; return its path as a string."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return str(path)


def interpreter(project: Path | None, environ: dict[str, str], rule: dict[str, Any]) -> str | None:
    """Return the interpreter that the rule resolves to, if any."""
    resolver = EnvResolver(project, environ=environ)
    env = resolver.resolve({"interpreter": {"var": "FOUND", **rule}})
    return env.get("FOUND")
