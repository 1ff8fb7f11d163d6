"""Interpreters installed by pyenv, nvm, rbenv, asdf and mise.

The version comes from the rule, or from the variables and files that the manager itself reads.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from lilux.files.bounded_read import read_text_if_usable
from lilux.primitives.errors import ConfigurationError
from lilux.record import Record
from lilux.runtime.env_resolver.config import VersionManager
from lilux.runtime.env_resolver.interpreters import Places, first_executable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Both become part of a path, so they must stay below the manager's folder.
_TOOL_NAME = r"[A-Za-z0-9][A-Za-z0-9._+-]*"
_ALIAS = r"(?:lts/)?(?:\*|[A-Za-z0-9][A-Za-z0-9._-]*)"
_MAX_ALIASES = 10
_ANY = "*"


class _Tool(Record, frozen=True, kw_only=True):
    """A language: its names in the managers, its programs, and its version file."""

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
    """Return the program of the requested version, or of the first installed one that is named.

    An incomplete version (``3.11``, ``20``) selects the highest installed one with that prefix.
    Raises :class:`ConfigurationError` for a malformed version, and for asdf or mise without a tool.
    """
    tool = _tool(rule, fallback)
    if rule.version is not None and not re.fullmatch(_ALIAS, rule.version):
        raise ConfigurationError(
            f"env_config.interpreter.version: {rule.version!r} is not a version",
            hint="write one such as '3.11'",
        )
    return next(_FINDERS[rule.manager](tool, rule.version, places), None)


def _tool(rule: VersionManager, fallback: str | None) -> _Tool:
    only = _ONLY_TOOL.get(rule.manager)
    name = rule.tool
    if only is not None:
        if name is not None and name not in only.names:
            raise ConfigurationError(
                f"env_config.interpreter.tool: {rule.manager} manages {only.names[0]}",
                hint="remove the field or choose another manager",
            )
        return only
    if name is None and fallback is not None:
        name = Path(fallback).name.rstrip("0123456789.")
    if not name:
        raise ConfigurationError(
            f"env_config.interpreter.tool: missing; {rule.manager} manages several tools",
            hint="name one, such as 'python'",
        )
    if not re.fullmatch(_TOOL_NAME, name):
        raise ConfigurationError(
            f"env_config.interpreter.tool: {name!r} is not the name of a tool",
            hint="name one, such as 'python'",
        )
    known = (tool for tool in (_PYTHON, _NODE, _RUBY) if name in tool.names)
    return next(known, _Tool(names=(name,), programs=(f"bin/{name}",)))


def _pyenv(tool: _Tool, version: str | None, places: Places) -> Iterator[Path]:
    return _find_env_style("PYENV", ".pyenv", tool, version, places)


def _rbenv(tool: _Tool, version: str | None, places: Places) -> Iterator[Path]:
    return _find_env_style("RBENV", ".rbenv", tool, version, places)


def _find_env_style(
    prefix: str, folder: str, tool: _Tool, version: str | None, places: Places
) -> Iterator[Path]:
    root = _root(places, f"{prefix}_ROOT", folder)
    if root is None:
        return
    sources = (
        places.environ.get(f"{prefix}_VERSION", "").replace(":", " ").split(),
        _project_file(tool, places),
        _plain_versions(root / "version"),
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
        if not re.fullmatch(_ALIAS, name):
            break
        target = (read_text_if_usable(aliases / name) or "").strip()
        if not target:
            break
        name = target
    return name


def _asdf(tool: _Tool, version: str | None, places: Places) -> Iterator[Path]:
    sources = (
        _from_variable("ASDF", tool, places),
        _in_folder(places.project, _tool_versions, ".tool-versions", tool),
        _project_file(tool, places),
        _in_folder(places.home, _tool_versions, ".tool-versions", tool),
    )
    root = _root(places, "ASDF_DATA_DIR", ".asdf")
    return _find_in_installs(root, _wanted(version, sources), tool)


def _mise(tool: _Tool, version: str | None, places: Places) -> Iterator[Path]:
    config = _root(places, "MISE_CONFIG_DIR", ".config/mise", xdg=("XDG_CONFIG_HOME", "mise"))
    sources = (
        _from_variable("MISE", tool, places),
        _in_folder(places.project, _mise_versions, "mise.toml", tool),
        _in_folder(places.project, _mise_versions, ".mise.toml", tool),
        _in_folder(places.project, _tool_versions, ".tool-versions", tool),
        _project_file(tool, places),
        _in_folder(config, _mise_versions, "config.toml", tool),
        _in_folder(places.home, _tool_versions, ".tool-versions", tool),
    )
    root = _root(places, "MISE_DATA_DIR", ".local/share/mise", xdg=("XDG_DATA_HOME", "mise"))
    return _find_in_installs(root, _wanted(version, sources), tool)


def _find_in_installs(root: Path | None, versions: Iterable[str], tool: _Tool) -> Iterator[Path]:
    if root is None:
        return
    for version in versions:
        text = version.removeprefix("latest").removeprefix(":").replace("ref:", "ref-", 1)
        for name in tool.names:
            yield from _installed(root / "installs" / name, text or _ANY, tool)


def _wanted(version: str | None, sources: Iterable[Iterable[str]]) -> list[str]:
    """Return the requested version, or the versions of the first source that names any.

    Later sources are ignored: a project that pins a version does not fall back to the user's.
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
        # Path.is_dir raises below an unsearchable folder and for a name that is too long.
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
        yield from _plain_versions(places.project / tool.version_file)


def _in_folder(
    folder: Path | None,
    read: Callable[[Path, tuple[str, ...]], Iterator[str]],
    name: str,
    tool: _Tool,
) -> Iterator[str]:
    return iter(()) if folder is None else read(folder / name, tool.names)


def _installed(folder: Path, version: str, tool: _Tool) -> Iterator[Path]:
    """Yield the program of exactly ``version``, then of those with that prefix, highest first."""
    try:
        # A version is compared with existing names and never becomes part of a path.
        installed = {_without_v(entry.name): entry for entry in folder.iterdir()}
    except (OSError, ValueError):  # ValueError: a NUL in a variable
        return
    version = _without_v(version)
    prefix = tuple("0123456789") if version == _ANY else f"{version}."
    matching = sorted((name for name in installed if name.startswith(prefix)), key=_sort_key)
    for name in [version, *reversed(matching)]:
        if name in installed:
            found = first_executable(installed[name] / program for program in tool.programs)
            if found is not None:
                yield found


def _without_v(version: str) -> str:
    return re.sub(r"^v(?=[0-9])", "", version)


def _sort_key(version: str) -> tuple[bool, list[int], str]:
    """Order releases after pre-releases, as the managers do, then by number."""
    numbers = [re.match(r"[0-9]*", part) for part in version.split(".")]
    release = [int(number.group() or 0) for number in numbers if number is not None]
    return bool(re.fullmatch(r"[0-9.]+", version)), release, version


def _plain_versions(path: Path) -> Iterator[str]:
    """Yield the versions in a file like ``.python-version``: words, with ``#`` comments."""
    for line in (read_text_if_usable(path) or "").splitlines():
        yield from line.partition("#")[0].split()


def _tool_versions(path: Path, names: tuple[str, ...]) -> Iterator[str]:
    """Yield the versions of a tool in a ``.tool-versions`` file, under any of its names."""
    for line in (read_text_if_usable(path) or "").splitlines():
        tool, *versions = line.partition("#")[0].split() or [""]
        if tool in names:
            yield from versions


def _mise_versions(path: Path, names: tuple[str, ...]) -> Iterator[str]:
    """Yield the versions under ``[tools]`` in a mise file: a string, a table, or a list of them."""
    text = read_text_if_usable(path)
    if text is None:
        return
    from lilux.files.toml import load_toml

    try:
        tools = load_toml(text).get("tools")
        # Collected before the first yield: dotted keys can nest deeper than the recursion limit.
        versions = [
            list(_version_texts(tools.get(name))) for name in names if isinstance(tools, dict)
        ]
    except (ValueError, RecursionError):
        return
    for found in versions:
        yield from found


def _version_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _version_texts(value.get("version"))
    elif isinstance(value, list):
        for item in value:
            yield from _version_texts(item)


_FINDERS: dict[str, Callable[[_Tool, str | None, Places], Iterator[Path]]] = {
    "pyenv": _pyenv,
    "nvm": _nvm,
    "rbenv": _rbenv,
    "asdf": _asdf,
    "mise": _mise,
}
