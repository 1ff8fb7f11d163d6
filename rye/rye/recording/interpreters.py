"""Which program ran a tool: found out after the call, so that the call does not pay for it.

The record of a call has the path of the program, and its size and time of change. Whoever moves the
record adds the SHA-256 of the file and its version, if the file is still the same. Only well-known
interpreters are asked for their version, and only outside the project: another program could do
anything with ``--version``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any

_ASKED = r"(python|pypy|perl|ruby|lua|php)[0-9.]*|node|bash|zsh|fish|uv|deno|bun|gawk|Rscript|pwsh"
_MAX_BYTES = 512 * 1024 * 1024
_SECONDS = 5.0
_VERSION = rb"\d+(?:\.\d+)+"


def stamp(path: str) -> dict[str, Any]:
    """Return the identity of a program for one system call: path, size and time of change."""
    try:
        status = os.stat(path)  # noqa: PTH116 - on the way of each call
    except OSError:
        return {"path": path}
    return {"path": path, "size": status.st_size, "mtime_ns": status.st_mtime_ns}


def described(
    interpreter: Mapping[str, Any], project: str, connection: sqlite3.Connection | None = None
) -> dict[str, Any]:
    """Add ``sha256`` and ``version``, as far as they can be known; remembered in the database."""
    path, size, changed = (interpreter.get(name) for name in ("path", "size", "mtime_ns"))
    if size is None or "sha256" in interpreter:
        return dict(interpreter)
    key = [path, size, changed]
    if connection is not None:
        row = connection.execute(
            "SELECT sha256, version FROM interpreters WHERE path = ? AND size = ? AND mtime_ns = ?",
            key,
        ).fetchone()
        if row is not None:
            return _with(interpreter, row[0], row[1])
    if stamp(str(path)) != dict(interpreter):
        return dict(interpreter)
    digest, version = _digest(str(path)), _version(str(path), project)
    if connection is not None:
        connection.execute(
            "INSERT OR IGNORE INTO interpreters VALUES (?, ?, ?, ?, ?)", [*key, digest, version]
        )
    return _with(interpreter, digest, version)


def _with(
    interpreter: Mapping[str, Any], digest: str | None, version: str | None
) -> dict[str, Any]:
    more = {"sha256": digest, "version": version}
    return {**interpreter, **{name: value for name, value in more.items() if value}}


def _digest(path: str) -> str | None:
    import hashlib

    try:
        with open(path, "rb") as file:  # noqa: PTH123 - a text
            if os.fstat(file.fileno()).st_size > _MAX_BYTES:
                return None
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _version(path: str, project: str) -> str | None:
    """Ask the program, if it is an interpreter that nobody of the project could have put there."""
    import subprocess

    real = Path(os.path.realpath(path))
    if re.fullmatch(_ASKED, real.name) is None or (project and real.is_relative_to(project)):
        return None
    try:
        done = subprocess.run(
            [real, "--version"],
            cwd="/",
            env={"PATH": "/usr/bin:/bin"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(_VERSION, done.stdout + done.stderr)
    return None if found is None else found[0].decode("ascii")
