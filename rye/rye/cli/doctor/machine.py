"""What Rye itself needs on this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from rye.cli.doctor.finding import Finding, ok, problem, warning
from rye.context import Context

_SECONDS = 10


def machine_findings(context: Context) -> Iterator[Finding]:
    """The helper, the extra for MCP, and the user's and the project's folders."""
    yield _helper()
    yield _mcp_extra()
    yield _user_space(context)
    yield from _owners(context)


def _helper() -> Finding:
    from lilux.primitives.errors import ConfigurationError
    from lilux.primitives.subprocess.binary import find_helper

    try:
        path = find_helper()
        done = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except ConfigurationError as error:
        return problem("lilux-proc", str(error))
    except (OSError, subprocess.TimeoutExpired) as error:
        return problem("lilux-proc", f"{path} does not run ({error})", "install lilux-proc again")
    if done.returncode != 0:
        return problem(
            "lilux-proc", f"{path} ends with code {done.returncode}", "install lilux-proc again"
        )
    version = done.stdout.decode(errors="replace").removeprefix("lilux-proc").strip()
    return ok("lilux-proc", f"{path} ({version[:40]})")


def _mcp_extra() -> Finding:
    missing = [name for name in ("mcp", "watchfiles") if find_spec(name) is None]
    if missing:
        return warning(
            "MCP server",
            f"not installed: {', '.join(missing)}",
            "for rye mcp, install: pip install 'rye[mcp]'",
        )
    return ok("MCP server", "installed")


def _user_space(context: Context) -> Finding:
    space = context.user_space / ".ai"
    there = next(folder for folder in (space, *space.parents) if folder.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        return problem(
            "user space",
            f"{space} cannot be written",
            "set USER_SPACE to a folder that you may write to",
        )
    return ok("user space", str(space) if there == space else f"{space} (not there yet)")


def _owners(context: Context) -> Iterator[Finding]:
    folders = {"user space": context.user_space / ".ai", "project": context.project_path / ".ai"}
    for subject, folder in folders.items():
        fault = _foreign(folder)
        if fault:
            yield problem(subject, fault, "make it yours, or use a copy that is")


def _foreign(folder: Path) -> str:
    for path in (folder, folder / "tools"):
        try:
            owner = path.stat().st_uid
        except FileNotFoundError:
            continue
        except OSError as error:
            return f"{path} cannot be looked at ({(error.strerror or '').lower()})"
        if owner not in (os.geteuid(), 0):
            return f"{path} belongs to another user (uid {owner}), who can change what runs"
    return ""
