"""Programs to be found by an ``EnvResolver``, and what it finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lilux.runtime.env_resolver import EnvResolver


def program(path: Path, mode: int = 0o755) -> str:
    """An executable file; its path as text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return str(path)


def interpreter(project: Path | None, environ: dict[str, str], rule: dict[str, Any]) -> str | None:
    """What the rule resolves to, if it does."""
    resolver = EnvResolver(project, environ=environ)
    env = resolver.resolve({"interpreter": {"var": "FOUND", **rule}})
    return env.get("FOUND")
