"""Finding an interpreter on the file system, without starting a process."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from lilux.files.search_path import find_program
from lilux.record import Record
from lilux.runtime.env_resolver.config import (
    InterpreterRule,
    NodeModules,
    SystemBinary,
    VenvPython,
    VersionManager,
)

_VENV_PYTHONS = ("bin/python", "Scripts/python.exe", "bin/python3")
_NODES = ("node", "node.exe", "node.cmd")


class Places(Record, frozen=True, kw_only=True):
    """The roots of a search and the variables that control it."""

    environ: Mapping[str, str]
    project: Path | None = None
    user: Path | None = None
    system: Path | None = None

    def in_project(self, path: str) -> Path | None:
        """Resolve ``path`` against the project, unless it is absolute or begins with ``~``."""
        return below(self.project, path, self.home)

    @property
    def home(self) -> Path | None:
        """The user's home folder, from the variables."""
        home = self.environ.get("HOME") or self.environ.get("USERPROFILE")
        return Path(home) if home else None


def resolve_interpreter(rule: InterpreterRule, places: Places) -> str | None:
    """Return the path that the strategy finds, or the fallback; a bare name is searched on PATH."""
    found = _find(rule, places)
    if found is not None:
        return str(found)
    if rule.fallback is None or os.path.dirname(rule.fallback):  # noqa: PTH120 - no Path for a name
        return rule.fallback
    on_path = which(rule.fallback, places.environ)
    return rule.fallback if on_path is None else str(on_path)


def _find(rule: InterpreterRule, places: Places) -> Path | None:
    match rule.strategy:
        case VenvPython() as strategy:
            return _venv_python(strategy, places)
        case NodeModules() as strategy:
            return first_executable(_node_candidates(strategy, places))
        case SystemBinary() as strategy:
            return _system_binary(strategy, places)
        case VersionManager() as strategy:
            # Imported on use: most runtimes do not use a version manager.
            from lilux.runtime.env_resolver.version_managers import find_version

            return find_version(strategy, rule.fallback, places)


def _venv_python(strategy: VenvPython, places: Places) -> Path | None:
    roots = {"project": places.project, "user": places.user or places.home, "system": places.system}
    for space in strategy.search:
        venv = below(roots[space], strategy.venv_path, places.home)
        found = None if venv is None else first_executable(venv / name for name in _VENV_PYTHONS)
        if found is None and space == "system":
            found = which("python3", places.environ) or which("python", places.environ)
        if found is not None:
            return found
    return None


def _node_candidates(strategy: NodeModules, places: Places) -> Iterator[Path]:
    for search_path in strategy.search_paths:
        root = places.in_project(search_path)
        if root is None:
            continue
        # An author may point at the project, at node_modules or at its .bin.
        if root.name == "node_modules":
            root = root / ".bin"
        elif root.name != ".bin":
            root = root / "node_modules" / ".bin"
        yield from (root / name for name in _NODES)


def _system_binary(strategy: SystemBinary, places: Places) -> Path | None:
    if not os.path.dirname(strategy.binary):  # noqa: PTH120 - no Path for a name
        return which(strategy.binary, places.environ)
    path = places.in_project(strategy.binary)
    return None if path is None else first_executable([path])


def which(name: str, environ: Mapping[str, str]) -> Path | None:
    """Find ``name`` on the PATH of ``environ``; relative entries are skipped."""
    found = find_program(name, environ.get("PATH", os.defpath).split(os.pathsep))
    return None if found is None else Path(found)


def first_executable(candidates: Iterable[Path]) -> Path | None:
    """Return the first candidate that is an executable file.

    Symlinks are not resolved, since Python finds its virtual environment by the path that it was
    called by.
    """
    for candidate in candidates:
        # Path.is_file raises below an unsearchable folder and for a name that is too long.
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):  # noqa: PTH113 - see above
            return candidate
    return None


def below(root: Path | None, path: str, home: Path | None) -> Path | None:
    """Resolve ``path`` against ``root``, or against ``home`` if it begins with ``~/``."""
    if path == "~" or path.startswith("~/"):
        return None if home is None else home / path[2:]
    if Path(path).is_absolute():
        return Path(path)
    return None if root is None else root / path
