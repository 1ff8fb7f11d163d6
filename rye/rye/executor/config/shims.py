"""The program behind a version manager's shim, asked for once.

pyenv, rbenv, nodenv, asdf and mise put one small program for each command into a folder ``shims``
on PATH. Each call of a shim starts the manager, which takes up to 150 ms to choose the real
program by variables and by version files in the working directory and above it. A tool of the user
runs in the working directory of a checkout, whose files must not choose what runs it.

So Rye asks the manager itself (``pyenv which python3``) in a folder that it chooses, and remembers
the answer, also on disk, while the inputs of the manager are unchanged.
"""

# ruff: noqa: PTH116, PTH117, PTH118, PTH119, PTH120 - texts of the environment, in every call

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from lilux.files.bounded_read import read_text_if_usable
from lilux.sha256 import sha256

from rye.cache.disk import DiskCache
from rye.executor.caches import BoundedDict

_FOLDER = "shims"
_SECONDS = 10
_MAX_QUOTED = 200

# The last command of a shim that is a script, such as: exec "/home/me/.pyenv/libexec/pyenv" exec …
_STARTS = r"""(?m)^\s*exec\s+(["']?)(?P<manager>[^"'\s]+)\1\s+exec\s"""
_VARIABLES = ("HOME", "PATH", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
_VERSION_FILES = (
    ".python-version", ".ruby-version", ".node-version", ".nvmrc", ".tool-versions", "mise.toml",
    ".mise.toml",
)  # fmt: skip


class NoProgramError(Exception):
    """A shim that leads to no program. Its text is the reason."""


class Shims:
    """Answers which program a shim starts. Without a disk cache, only this process remembers."""

    def __init__(self, environ: Mapping[str, str], disk_cache: DiskCache | None = None) -> None:
        self._environ = environ
        self._disk_cache = disk_cache
        self._known: dict[str, str] = BoundedDict()
        self._managers: dict[str, tuple[str, str | None]] = BoundedDict()

    def program(self, path: str, folder: Path | None) -> str:
        """Return the program that ``path`` starts: itself, unless it is a shim.

        The version files in ``folder`` and above it may choose; by default none of a project.
        Raises :class:`NoProgramError`.
        """
        place, name = os.path.split(path)
        if os.path.basename(place) != _FOLDER or not os.path.isabs(place):
            return path
        manager = self._manager(path)
        if manager is None:
            return path
        start = Path("/") if folder is None else folder
        digest = _inputs(path, manager, start, self._environ)
        program = self._known.get(digest) or self._recalled(digest)
        if program is None:
            program = _ask(manager, name, start, place, self._environ)
            if self._disk_cache is not None:
                self._disk_cache.keep("shim", digest, program)
        self._known[digest] = program
        return program

    def _manager(self, path: str) -> str | None:
        status = _stat(path)
        known = self._managers.get(path)
        if known is None or known[0] != status:
            known = self._managers[path] = (status, _manager(path, self._environ))
        return known[1]

    def _recalled(self, digest: str) -> str | None:
        found = None if self._disk_cache is None else self._disk_cache.recall("shim", digest)
        return found if isinstance(found, str) and os.access(found, os.X_OK) else None


def _manager(shim: str, environ: Mapping[str, str]) -> str | None:
    """The version manager that a shim starts: named in a script, or the target of a link."""
    target = os.path.realpath(shim)
    name, program = os.path.basename(shim), os.path.basename(target)
    if name != program:
        # `python3 -> python3.11` is a link to the program itself.
        same = program.startswith(name) or name.startswith(program)
        return None if same else target
    found = re.search(_STARTS, read_text_if_usable(Path(shim)) or "")
    if found is None:
        return None
    if os.path.isabs(found["manager"]):
        return found["manager"]
    from lilux.runtime.env_resolver.interpreters import which

    on_path = which(found["manager"], environ)
    return None if on_path is None else str(on_path)


def _inputs(shim: str, manager: str, folder: Path, environ: Mapping[str, str]) -> str:
    """A digest of what the manager chooses by. Values are only hashed, never stored."""
    own = f"{os.path.basename(manager).upper()}_"
    values = [f"{key}={environ[key]}" for key in sorted(environ) if key.startswith(own)]
    values += [f"{key}={environ.get(key)}" for key in _VARIABLES]
    stats = [_stat(path) for path in _files(shim, manager, folder, environ)]
    return sha256(
        "\0".join([shim, str(folder), *values, *stats]).encode(errors="surrogateescape")
    ).hexdigest()


def _files(shim: str, manager: str, folder: Path, environ: Mapping[str, str]) -> Iterator[str]:
    root = os.path.dirname(os.path.dirname(shim))
    home = environ.get("HOME", "")
    yield from (shim, manager, f"{root}/version", f"{root}/versions", f"{root}/installs")
    yield f"{home}/.tool-versions"
    yield f"{environ.get('XDG_CONFIG_HOME') or f'{home}/.config'}/mise/config.toml"
    for place in (folder, *folder.parents):
        for name in _VERSION_FILES:
            yield os.path.join(place, name)


def _stat(path: str) -> str:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return ""
    return f"{found.st_mtime_ns}.{found.st_size}.{found.st_ino}.{found.st_dev}"


def _ask(manager: str, name: str, folder: Path, shims: str, environ: Mapping[str, str]) -> str:
    import subprocess

    # A shim of this kind exports the folder of its own manager, wherever the home folder is.
    root = f"{os.path.basename(manager).upper()}_ROOT"
    question = f"{os.path.basename(manager)} which {name}"
    try:
        done = subprocess.run(
            [manager, "which", name],
            cwd=folder,
            env={**environ, root: os.path.dirname(shims)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NoProgramError(f"'{question}' did not end in {_SECONDS} seconds") from None
    except OSError as error:
        raise NoProgramError(f"'{question}' could not be started: {error.strerror}") from None
    answer = os.fsdecode(done.stdout).strip()
    if done.returncode == 0 and os.path.isabs(answer) and os.access(answer, os.X_OK):
        return answer
    reason = done.stderr.decode(errors="replace").strip().partition("\n")[0][:_MAX_QUOTED]
    raise NoProgramError(f"'{question}' found no program" + (f" ({reason})" if reason else ""))
