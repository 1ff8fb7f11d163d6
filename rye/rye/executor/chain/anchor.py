"""Anchors: where the modules of a tool and of its runtime are found.

A runtime declares an anchor, or a tool, whose keys then take precedence::

    anchor:
      enabled: true
      mode: auto                    # auto: if a marker exists; always; never
      markers_any: [__init__.py]    # looked for in the tool's folder
      root: tool_dir                # tool_dir, tool_parent or project_path
      lib: lib/python               # relative to the folder of the file that declares it
      cwd: "{anchor_path}"          # optional; relative to the anchor
      env_paths:
        PYTHONPATH: {prepend: ["{anchor_path}", "{runtime_lib}"]}

No part of it may leave its folder through a symbolic link.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lilux.record import Record, field
from lilux.templating import Placeholder, env_value, substitute

from rye.context import Context
from rye.errors import AnchorError
from rye.executor.chain.declaration import Declaration
from rye.items.element import ChainElement
from rye.spaces.containment import is_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

MODES = ("auto", "always", "never")
ROOTS = ("tool_dir", "tool_parent", "project_path")
_KEYS = ("enabled", "mode", "markers_any", "root", "lib", "cwd", "env_paths")


class EnvPath(Record, frozen=True, kw_only=True):
    """Folders to prepend and append to one variable, as the author wrote them."""

    name: str
    prepend: tuple[str, ...] = ()
    append: tuple[str, ...] = ()


class Anchor(Record, frozen=True, kw_only=True):
    """An active anchor."""

    path: Path
    """The root, without symbolic links."""
    cwd: Path | None = None
    """The working directory that the anchor declares."""
    lib: Path | None = None
    """The runtime's library."""
    env_paths: tuple[EnvPath, ...] = ()
    level: int = 0
    """The place in the chain of the element that declares ``cwd``; elements nearer to the tool
    override it."""
    declared_in: str = ""
    """The file that declares ``env_paths``."""
    markers: tuple[str, ...] = ()
    """The files in the tool's folder that made the anchor active."""
    names: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The values of ``{name}`` in ``env_paths``."""


def resolve_anchor(chain: Sequence[ChainElement], context: Context) -> Anchor | None:
    """The anchor of a chain, or ``None`` if none is declared or it is not active.

    Raises :class:`AnchorError` for a malformed declaration, a library that does not exist, and a
    marker, root or library outside of its folder.
    """
    spec = _merged(chain)
    tool = chain[0]
    if spec is None or tool.path is None or not spec.flag("enabled", default=True):
        return None
    mode = spec.choice("mode", MODES)
    root_name = spec.choice("root", ROOTS)
    markers = _markers(spec, tool.path.parent) if mode == "auto" else ()
    if mode == "never" or (mode == "auto" and not markers):
        return None
    names = place_names(chain, context)
    root = _root(root_name, tool, names, spec)
    lib = runtime_lib(chain)
    names = {**names, "anchor_path": str(root)}
    cwd = spec.text("cwd")
    return Anchor(
        path=root,
        cwd=None if cwd is None else _cwd(cwd, root, names, spec),
        lib=lib,
        env_paths=_env_paths(spec),
        level=spec.level("cwd"),
        declared_in=spec.file("env_paths"),
        markers=markers,
        names=names,
    )


def apply_anchor(env: Mapping[str, str], anchor: Anchor | None) -> dict[str, str]:
    """A copy of ``env`` with the anchor's folders prepended and appended.

    There is never an empty entry, which would mean the current directory. Raises
    :class:`AnchorError` for a folder whose path contains the separator, or that a symbolic link
    leads out of the anchor or the library.
    """
    result = dict(env)
    if anchor is None:
        return result
    for entry in anchor.env_paths:
        before = [_folder(text, entry.name, anchor, env) for text in entry.prepend]
        after = [_folder(text, entry.name, anchor, env) for text in entry.append]
        present = [result[entry.name]] if result.get(entry.name) else []
        result[entry.name] = os.pathsep.join([*before, *present, *after])
    return result


def runtime_lib(chain: Sequence[ChainElement]) -> Path | None:
    """The library that the chain's anchor declares, even if the anchor is not active.

    It is relative to the folder of the element that declares it. Raises :class:`AnchorError` if it
    is not a folder in the space of that element.
    """
    for element in chain:
        declared = (element.metadata.anchor or {}).get("lib")
        if declared is None or element.path is None:
            continue
        spec = Declaration.of([element], "anchor", _KEYS)
        text = _plain_relative(spec.text("lib") or "", "lib", spec)
        path = real_folder(element.path.parent / text)
        if path is None:
            spec.refuse("lib", f"{element.path.parent / text} is not a folder", "create it")
        declared_tools = element.resolution.space.tools
        tools = real_folder(declared_tools)
        if tools is None or not is_below(path, tools):
            spec.refuse("lib", f"{text} leads out of {declared_tools}", "keep it inside")
        return Path(path)
    return None


def real_folder(path: Path) -> str | None:
    """The path of a folder without symbolic links; ``None`` if it is not a folder.

    One system call instead of one for each part, since every call does this.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - a text is wanted
    except OSError:
        return os.path.realpath(path)
    finally:
        os.close(descriptor)


def place_names(chain: Sequence[ChainElement], context: Context) -> dict[str, str]:
    """The paths that templates may name."""
    names = {
        "project_path": str(context.project_path),
        "user_space": str(context.user_space),
        "system_space": str(context.system_space),
    }
    if chain[0].path is not None:
        tool = str(chain[0].path)
        folder = os.path.dirname(tool)  # noqa: PTH120 - texts, in every call
        names |= {
            "tool_path": tool,
            "tool_dir": folder,
            "tool_parent": os.path.dirname(folder),  # noqa: PTH120 - as above
            "source_dir": folder,
            "anchor_path": folder,
        }
    lib = runtime_lib(chain)
    if lib is not None:
        names["runtime_lib"] = str(lib)
    return names


def _merged(chain: Sequence[ChainElement]) -> Declaration | None:
    if all(element.metadata.anchor is None for element in chain):
        return None
    return Declaration.of(chain, "anchor", _KEYS)


def _markers(spec: Declaration, folder: Path) -> tuple[str, ...]:
    markers = spec.texts("markers_any")
    if not markers:
        spec.refuse(
            "markers_any", "mode auto needs a marker to look for", "name one, or write mode: always"
        )
    names = [_plain_relative(name, "markers_any", spec) for name in markers]
    return tuple([name for name in names if _is_marker(name, folder, spec)])


def _is_marker(name: str, folder: Path, spec: Declaration) -> bool:
    marker = folder / name
    if not os.path.lexists(marker):
        return False
    if not is_below(os.path.realpath(marker), os.path.realpath(folder)):
        spec.refuse(
            "markers_any",
            f"a symbolic link leads {marker} out of its folder",
            "put the file itself there",
        )
    return marker.exists()


def _root(root_name: str, tool: ChainElement, names: Mapping[str, str], spec: Declaration) -> Path:
    root = os.path.realpath(names[root_name])
    if root_name != "project_path":
        tools = os.path.realpath(tool.resolution.space.tools)
        if root != tools and not is_below(root, tools):
            spec.refuse(
                "root",
                f"the {root_name} of '{tool.item_id}' is {root}, outside of {tools}",
                "move the tool to a separate folder",
            )
    return Path(root)


def _cwd(template: str, root: Path, names: Mapping[str, str], spec: Declaration) -> Path:
    path = os.path.normpath(root / _fill(template, names, None, spec.refuse_at("cwd")))
    if is_below(path, str(root)) and not is_below(os.path.realpath(path), str(root)):
        spec.refuse("cwd", f"a symbolic link leads {path} out of {root}", "name another folder")
    return Path(path)


def _env_paths(spec: Declaration) -> tuple[EnvPath, ...]:
    entries = []
    for name in spec.mapping("env_paths"):
        if not name or "=" in name or "\0" in name:
            spec.refuse("env_paths", f"{name!r} cannot be the name of a variable", "rename it")
        part = spec.inner("env_paths", name, ("prepend", "append"))
        entries.append(
            EnvPath(name=name, prepend=part.texts("prepend"), append=part.texts("append"))
        )
    return tuple(entries)


def _folder(template: str, variable: str, anchor: Anchor, env: Mapping[str, str]) -> str:
    def refuse(what: str, todo: str) -> NoReturn:
        place = f"{anchor.declared_in}: " if anchor.declared_in else ""
        raise AnchorError(f"{place}anchor.env_paths.{variable}: {what}", hint=todo)

    path = os.path.normpath(anchor.path / _fill(template, anchor.names, env, refuse))
    # A value of the environment may be a secret.
    shown = template if "${" in template else path
    if os.pathsep in path or "\0" in path:
        refuse(
            f"the path {shown!r} contains {os.pathsep!r}, which separates paths",
            "move the folder to a path without it",
        )
    for root in filter(None, (anchor.path, anchor.lib)):
        if is_below(path, str(root)) and not is_below(os.path.realpath(path), str(root)):
            refuse(f"a symbolic link leads {shown} out of {root}", "put the folder itself there")
    return path


def _fill(
    template: str,
    names: Mapping[str, str],
    env: Mapping[str, str] | None,
    refuse: Callable[[str, str], Any],
) -> str:
    def fill(placeholder: Placeholder) -> str | None:
        if placeholder.kind == "env" and env is not None:
            return env_value(placeholder, env)
        if placeholder.kind == "param" and placeholder.name in names:
            return names[placeholder.name]
        refuse(f"unknown name {placeholder.name!r}", f"use one of {', '.join(sorted(names))}")
        return None

    text = substitute(template, fill)
    if not text:
        refuse("a path is empty", "name a folder")
    return text


def _plain_relative(text: str, key: str, spec: Declaration) -> str:
    parts = Path(text).parts
    if not parts or Path(text).is_absolute() or ".." in parts or "\0" in text:
        spec.refuse(key, f"{text!r} is not a path inside the folder", "write a plain relative path")
    return text
