"""Where an interpreter is: looks at the file system, and starts no process."""

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
    """The roots of a search and the variables that steer it."""

    environ: Mapping[str, str]
    project: Path | None = None
    user: Path | None = None
    system: Path | None = None

    def in_project(self, path: str) -> Path | None:
        """``path`` below the project; an absolute one or one with ``~`` stands for itself."""
        return below(self.project, path, self.home)

    @property
    def home(self) -> Path | None:
        """The user's home folder as the variables tell it."""
        home = self.environ.get("HOME") or self.environ.get("USERPROFILE")
        return Path(home) if home else None


def resolve_interpreter(rule: InterpreterRule, places: Places) -> str | None:
    """The path that the rule's strategy finds, else its fallback, on PATH if it is a bare name."""
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
            # On use only: most runtimes do not ask for a version manager.
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
    """``name`` on the PATH of ``environ``; entries relative to the current folder do not count."""
    found = find_program(name, environ.get("PATH", os.defpath).split(os.pathsep))
    return None if found is None else Path(found)


def first_executable(candidates: Iterable[Path]) -> Path | None:
    """The first candidate that is a file and may be executed; symlinks are not resolved, since
    a virtual environment is known by the path that its Python was called by."""
    for candidate in candidates:
        # Path.is_file raises in a folder that may not be searched, or for a name that is too long.
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):  # noqa: PTH113 - see above
            return candidate
    return None


def below(root: Path | None, path: str, home: Path | None) -> Path | None:
    """``path`` taken from ``root``, or from ``home`` if it begins with ``~/``."""
    if path == "~" or path.startswith("~/"):
        return None if home is None else home / path[2:]
    if Path(path).is_absolute():
        return Path(path)
    return None if root is None else root / path
