"""Which files must be executable and readable, so that a program can run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from lilux.record import Record
from lilux.runtime.env_resolver.interpreters import which

from rye.permissions.base import SYSTEM_PROGRAMS, real
from rye.permissions.locations import is_inside, steps_to

_HELPERS = {"git": ("lib/git-core", "libexec/git-core")}
"""Folders of programs that a program starts, relative to its prefix."""
_PROGRAM_FOLDERS = ("bin", "sbin", "Scripts")
_PARTS = (
    *_PROGRAM_FOLDERS,
    *("lib", "lib32", "lib64", "libexec", "share", "include", "ssl", "pyvenv.cfg"),
)
"""What an installation consists of. Next to it, some programs keep the keys of the user:
``~/.cargo/credentials.toml``, ``~/.docker/config.json``."""
_USER_PROGRAMS = (
    *(".local/share/uv/python", ".local/share/uv/tools", ".local/share/pipx/venvs"),
    *(".pyenv/versions", ".pyenv/libexec", ".pyenv/plugins", ".pyenv/pyenv.d", ".pyenv/version"),
    *(".rbenv/versions", ".rbenv/libexec", ".rbenv/plugins", ".rbenv/version"),
    *(".nvm/versions", ".nodenv/versions", ".volta/tools", ".local/share/fnm/node-versions"),
    *(".local/share/mise/installs", ".asdf/installs", ".sdkman/candidates"),
    ".rustup/toolchains",
)
"""Where the version managers of a user install programs, below the home."""
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
    seen = {""}
    while pending:
        found = _find(pending.pop(0), path)
        if found in seen:
            continue
        seen.add(found)
        program = real(found)
        execute[program] = None
        folder, name = os.path.split(found)
        for one in dict.fromkeys((f"{real(folder)}/{name}", program)):
            read.update(dict.fromkeys(_installation(one, home) or [one]))
            if name in _HELPERS:
                prefix = os.path.dirname(os.path.dirname(one))  # noqa: PTH120 - a text
                execute.update(dict.fromkeys([f"{prefix}/{helper}" for helper in _HELPERS[name]]))
        pending += _interpreter_of(program)
    return Programs(tuple(execute), tuple([real(one) for one in read]))


def folders_on(path: str, home: str, writable: Sequence[str]) -> Programs:
    """The folders of a search path and those of version managers, with what the programs read.

    A folder may be one that a tool can write, such as ``.venv/bin`` of the project. Then a link in
    its place may lead anywhere, and is not followed.
    """
    folders = []
    for one in path.split(os.pathsep):
        *links, found = steps_to(one)
        planted = any(is_inside(link, each) for link in links for each in writable)
        if one.startswith("/") and not is_inside(home, found) and not planted:
            folders.append(found)
    managed = [real(one) for one in _user_programs(home)]
    read = [part for one in folders for part in _installation(f"{one}/program", home) or [one]]
    return Programs(
        tuple(dict.fromkeys([*folders, *managed])), tuple(dict.fromkeys([*read, *managed]))
    )


def _find(command: str, path: str) -> str:
    if os.sep in command:
        return command if command.startswith(os.sep) else ""
    return str(which(command, {"PATH": path}) or "")


def _installation(program: str, home: str) -> list[str]:
    """What a program reads where it is installed; empty if more than programs are there."""
    parent, name = os.path.split(os.path.dirname(program))  # noqa: PTH120 - a text
    if name not in _PROGRAM_FOLDERS or parent == f"{home}/.local" or is_inside(home, parent):
        return []
    if any(is_inside(parent, one) for one in (*SYSTEM_PROGRAMS, *_user_programs(home))):
        return [real(parent)]
    parts = [real(f"{parent}/{part}") for part in _PARTS]
    # The folder may be one that a tool can write, and a link there may lead anywhere.
    return [one for one in parts if is_inside(one, real(parent))]


def _user_programs(home: str) -> list[str]:
    return [f"{home}/{one}" for one in _USER_PROGRAMS]


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
