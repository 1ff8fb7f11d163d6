"""Interpreters installed by pyenv, nvm, rbenv, asdf and mise, found where these keep them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from lilux.files.text import read_text_if_usable
from lilux.patterns import pattern
from lilux.primitives.errors import ConfigurationError
from lilux.record import Record
from lilux.runtime.env_resolver.config import VersionManager
from lilux.runtime.env_resolver.interpreters import Places, first_executable
from lilux.runtime.env_resolver.version_files import mise_versions, plain_versions, tool_versions

# Both become part of a path, so they may not lead out of the manager's folder.
_TOOL_NAME = pattern(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_ALIAS = pattern(r"(?:lts/)?(?:\*|[A-Za-z0-9][A-Za-z0-9._-]*)")
_MAX_ALIASES = 10
_ANY = "*"


class _Tool(Record, frozen=True, kw_only=True):
    """A language: what managers call it, its programs, and its own version file."""

    names: tuple[str, ...]
    programs: tuple[str, ...]
    version_file: str | None = None


_PYTHON = _Tool(
    names=("python",), programs=("bin/python", "bin/python3"), version_file=".python-version"
)
_NODE = _Tool(names=("node", "nodejs"), programs=("bin/node",), version_file=".nvmrc")
_RUBY = _Tool(names=("ruby",), programs=("bin/ruby",), version_file=".ruby-version")
_ONLY_TOOL = {"pyenv": _PYTHON, "nvm": _NODE, "rbenv": _RUBY}


def find_version(rule: VersionManager, fallback: str | None, places: Places) -> Path | None:
    """The program of the asked version, or of the first installed one that the files name.

    A version that is not complete (``3.11``, ``20``) means the highest installed one that begins
    so. Raises :class:`ConfigurationError` for a version that is no version, and if asdf or mise is
    asked without saying for which tool.
    """
    tool = _tool(rule, fallback)
    if rule.version is not None and not _ALIAS.fullmatch(rule.version):
        raise ConfigurationError(
            f"env_config.interpreter.version: {rule.version!r} is not a version; "
            "write one like '3.11'"
        )
    return next(_FINDERS[rule.manager](tool, rule.version, places), None)


def _tool(rule: VersionManager, fallback: str | None) -> _Tool:
    only = _ONLY_TOOL.get(rule.manager)
    name = rule.tool
    if only is not None:
        if name is not None and name not in only.names:
            raise ConfigurationError(
                f"env_config.interpreter.tool: {rule.manager} manages {only.names[0]}; "
                "leave it out or choose another manager"
            )
        return only
    if name is None and fallback is not None:
        name = Path(fallback).name.rstrip("0123456789.")
    if not name:
        raise ConfigurationError(
            f"env_config.interpreter.tool: missing; {rule.manager} manages many, "
            "so name one like 'python'"
        )
    if not _TOOL_NAME.fullmatch(name):
        raise ConfigurationError(
            f"env_config.interpreter.tool: {name!r} is not the name of a tool; "
            "write one like 'python'"
        )
    known = (tool for tool in (_PYTHON, _NODE, _RUBY) if name in tool.names)
    return next(known, _Tool(names=(name,), programs=(f"bin/{name}",)))


def _pyenv(tool: _Tool, version: str | None, places: Places) -> Iterator[Path]:
    return _env_style("PYENV", ".pyenv", tool, version, places)


def _rbenv(tool: _Tool, version: str | None, places: Places) -> Iterator[Path]:
    return _env_style("RBENV", ".rbenv", tool, version, places)


def _env_style(
    prefix: str, folder: str, tool: _Tool, version: str | None, places: Places
) -> Iterator[Path]:
    root = _root(places, f"{prefix}_ROOT", folder)
    if root is None:
        return
    sources = (
        places.environ.get(f"{prefix}_VERSION", "").replace(":", " ").split(),
        _project_file(tool, places),
        plain_versions(root / "version"),
    )
    for one in _wanted(version, sources):
        yield from _installed(root / "versions", one.removeprefix(f"{tool.names[0]}-"), tool)


def _nvm(tool: _Tool, version: str | None, places: Places) -> Iterator[Path]:
    root = _root(places, "NVM_DIR", ".nvm", xdg=("XDG_CONFIG_HOME", "nvm"))
    if root is None:
        return
    for one in _wanted(version, (_project_file(tool, places), ["default"])):
        name = _nvm_alias(root / "alias", one)
        any_version = name in {"node", "stable"}
        yield from _installed(root / "versions" / "node", _ANY if any_version else name, tool)


def _nvm_alias(aliases: Path, name: str) -> str:
    for _ in range(_MAX_ALIASES):
        if not _ALIAS.fullmatch(name):
            break
        target = (read_text_if_usable(aliases / name) or "").strip()
        if not target:
            break
        name = target
    return name


def _asdf(tool: _Tool, version: str | None, places: Places) -> Iterator[Path]:
    sources = (
        _from_variable("ASDF", tool, places),
        _in_folder(places.project, tool_versions, ".tool-versions", tool),
        _project_file(tool, places),
        _in_folder(places.home, tool_versions, ".tool-versions", tool),
    )
    root = _root(places, "ASDF_DATA_DIR", ".asdf")
    return _many_tools(root, _wanted(version, sources), tool)


def _mise(tool: _Tool, version: str | None, places: Places) -> Iterator[Path]:
    config = _root(places, "MISE_CONFIG_DIR", ".config/mise", xdg=("XDG_CONFIG_HOME", "mise"))
    sources = (
        _from_variable("MISE", tool, places),
        _in_folder(places.project, mise_versions, "mise.toml", tool),
        _in_folder(places.project, mise_versions, ".mise.toml", tool),
        _in_folder(places.project, tool_versions, ".tool-versions", tool),
        _project_file(tool, places),
        _in_folder(config, mise_versions, "config.toml", tool),
        _in_folder(places.home, tool_versions, ".tool-versions", tool),
    )
    root = _root(places, "MISE_DATA_DIR", ".local/share/mise", xdg=("XDG_DATA_HOME", "mise"))
    return _many_tools(root, _wanted(version, sources), tool)


def _many_tools(root: Path | None, versions: Iterable[str], tool: _Tool) -> Iterator[Path]:
    if root is None:
        return
    for version in versions:
        text = version.removeprefix("latest").removeprefix(":").replace("ref:", "ref-", 1)
        for name in tool.names:
            yield from _installed(root / "installs" / name, text or _ANY, tool)


def _wanted(version: str | None, sources: Iterable[Iterable[str]]) -> list[str]:
    """The version that was asked for, else what the first source says that says anything.

    A later source is no substitute: a project that pins a version does not get the user's.
    """
    if version is not None:
        return [version]
    return next(filter(None, map(list, sources)), [])


def _root(
    places: Places, variable: str, in_home: str, *, xdg: tuple[str, str] | None = None
) -> Path | None:
    value = places.environ.get(variable)
    if value:
        return Path(value) if Path(value).is_absolute() else None
    if xdg is not None:
        base = places.environ.get(xdg[0])
        # Path.is_dir raises in a folder that may not be searched, or for a name that is too long.
        if base and os.path.isdir(folder := Path(base, xdg[1])):  # noqa: PTH112 - see above
            return folder
    return None if places.home is None else places.home / in_home


def _from_variable(prefix: str, tool: _Tool, places: Places) -> Iterator[str]:
    for name in tool.names:
        yield from places.environ.get(
            f"{prefix}_{name.upper().replace('-', '_')}_VERSION", ""
        ).split()


def _project_file(tool: _Tool, places: Places) -> Iterator[str]:
    if places.project is not None and tool.version_file is not None:
        yield from plain_versions(places.project / tool.version_file)


def _in_folder(
    folder: Path | None,
    read: Callable[[Path, tuple[str, ...]], Iterator[str]],
    name: str,
    tool: _Tool,
) -> Iterator[str]:
    return iter(()) if folder is None else read(folder / name, tool.names)


def _installed(folder: Path, version: str, tool: _Tool) -> Iterator[Path]:
    """The program of exactly that version, then those that begin with it, the highest first."""
    try:
        # A version is compared with what is there and never made part of a path.
        installed = {_bare(entry.name): entry for entry in folder.iterdir()}
    except (OSError, ValueError):  # ValueError: a NUL in a variable that the caller made up
        return
    version = _bare(version)
    beginning = tuple("0123456789") if version == _ANY else f"{version}."
    begin_so = sorted(filter(lambda name: name.startswith(beginning), installed), key=_rank)
    for name in [version, *reversed(begin_so)]:
        if name in installed:
            found = first_executable(installed[name] / program for program in tool.programs)
            if found is not None:
                yield found


def _bare(version: str) -> str:
    return re.sub(r"^v(?=[0-9])", "", version)


def _rank(version: str) -> tuple[bool, list[int], str]:
    """Releases above candidates, as the managers do it; then by number, and not by letter."""
    numbers = [re.match(r"[0-9]*", part) for part in version.split(".")]
    release = [int(number.group() or 0) for number in numbers if number is not None]
    return bool(re.fullmatch(r"[0-9.]+", version)), release, version


_FINDERS: dict[str, Callable[[_Tool, str | None, Places], Iterator[Path]]] = {
    "pyenv": _pyenv,
    "nvm": _nvm,
    "rbenv": _rbenv,
    "asdf": _asdf,
    "mise": _mise,
}
