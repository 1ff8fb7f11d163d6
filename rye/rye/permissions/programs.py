"""Which files must be executable and readable, so that a program can run."""

from __future__ import annotations

import os
from collections.abc import Iterable

from lilux.record import Record
from lilux.runtime.env_resolver.interpreters import which

from rye.permissions.base import real

_HELPERS = {"git": ("lib/git-core", "libexec/git-core")}
"""Folders of programs that a program starts, relative to its prefix."""
_PROGRAM_FOLDERS = ("bin", "sbin", "Scripts")
_MAX_LINE = 256


class Programs(Record, frozen=True):
    """Real paths to execute, and real paths to read."""

    execute: tuple[str, ...]
    read: tuple[str, ...]


def programs_of(commands: Iterable[str], path: str, home: str) -> Programs:
    """What the commands need, which are names on ``path`` or absolute paths.

    A command that is not installed needs nothing. Its confinement then does not name it, and
    starting it fails as without one.
    """
    execute: dict[str, None] = {}
    read: dict[str, None] = {}
    pending = list(commands)
    while pending:
        found = _find(pending.pop(0), path)
        if not found or found in execute:
            continue
        program = real(found)
        execute[program] = None
        name = os.path.basename(found)  # noqa: PTH119 - a text
        for one in dict.fromkeys((found, program)):
            prefix = _prefix(one, home)
            read[prefix or one] = None
            if prefix and name in _HELPERS:
                execute.update(dict.fromkeys([f"{prefix}/{helper}" for helper in _HELPERS[name]]))
        pending += _interpreter_of(program)
    return Programs(tuple(execute), tuple([real(one) for one in read]))


def folders_on(path: str, home: str) -> Programs:
    """The folders of a search path, with what the programs there read."""
    folders = [real(one) for one in path.split(os.pathsep) if one.startswith("/")]
    prefixes = [_prefix(f"{one}/program", home) or one for one in folders]
    return Programs(tuple(dict.fromkeys(folders)), tuple(dict.fromkeys(prefixes)))


def _find(command: str, path: str) -> str:
    if os.sep in command:
        return command if command.startswith(os.sep) else ""
    return str(which(command, {"PATH": path}) or "")


def _prefix(program: str, home: str) -> str:
    """The folder where a program is installed; empty if more than programs are there."""
    folder = os.path.dirname(program)  # noqa: PTH120 - a text
    parent, name = os.path.split(folder)
    if name not in _PROGRAM_FOLDERS:
        return ""
    shared = (home, f"{home}/.local", "/", "")
    return "" if parent in shared or home.startswith(f"{parent}/") else parent


def _interpreter_of(program: str) -> list[str]:
    """The commands in the first line of a script; nothing for another file."""
    try:
        with open(program, "rb") as file:  # noqa: PTH123 - on the way of a call
            line = file.readline(_MAX_LINE)
    except OSError:
        return []
    if not line.startswith(b"#!"):
        return []
    words = line[2:].decode("utf-8", "surrogateescape").split()
    is_env = bool(words) and os.path.basename(words[0]) == "env"  # noqa: PTH119 - a text
    return [word for word in words[: 2 if is_env else 1] if not word.startswith("-")]
