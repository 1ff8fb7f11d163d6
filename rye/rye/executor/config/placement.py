"""Where a call finds the files of its chain: in the copy of its closure.

The names that refer to code and data point there: ``{tool_path}``, ``{tool_dir}``,
``{tool_parent}``, ``{anchor_path}`` and ``{runtime_lib}``. ``{source_dir}`` is the original folder
of the tool. The working directory is a place to work, not code, and stays where it was.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from lilux.record import Record, field, replaced

from rye.closure.manifest import FOLDERS, RUNTIME_LIBRARY, TOOL, Closure
from rye.executor.chain.anchor import Anchor
from rye.executor.config.templates import COMPILED

_COPIED = (b"{tool_path}", b"{tool_dir}", b"{tool_parent}", b"{anchor_path}", b"{runtime_lib}")


class Placement(Record, frozen=True, kw_only=True):
    """The places of a call that are not those of the original files."""

    root: str = ""
    """The copy; empty if the call reads nothing from it."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Values of ``{name}`` in templates."""
    anchor: Anchor | None = None
    """The anchor, with its paths in the copy."""
    compiled: str = ""
    """The folder with compiled modules; empty if there is none."""

    @property
    def folders(self) -> tuple[str, ...]:
        """What the process has to read."""
        return tuple([one for one in (self.root, self.compiled) if one])


def reads_files(closure: Closure, anchor: Anchor | None) -> bool:
    """True if the config or the anchor of a chain names a file of its closure."""
    return anchor is not None or any(name in closure.encoded for name in _COPIED)


def loads_compiled(closure: Closure) -> bool:
    """True if the runtime of a chain can load compiled Python."""
    return f"{{{COMPILED}}}".encode() in closure.encoded


def placed(closure: Closure, anchor: Anchor | None, root: str, compiled: str = "") -> Placement:
    """The placement of a call that runs the copy in ``root``."""
    names: dict[str, str] = {COMPILED: compiled}
    if closure.manifest.tool is not None:
        tool = f"{root}/{closure.manifest.tool.place}"
        folder = os.path.dirname(tool)  # noqa: PTH120 - texts, in every call
        names |= {
            "tool_path": tool,
            "tool_dir": folder,
            "tool_parent": os.path.dirname(folder),  # noqa: PTH120 - as above
            "anchor_path": folder,
        }
    lib = f"{root}/{FOLDERS[RUNTIME_LIBRARY]}"
    if FOLDERS[RUNTIME_LIBRARY] in closure.folders:
        names["runtime_lib"] = lib
    if anchor is None:
        return Placement(root=root, names=names, compiled=compiled)
    names["anchor_path"] = _copied(str(anchor.path), closure, root)
    moved = replaced(
        anchor,
        path=type(anchor.path)(names["anchor_path"]),
        lib=None if anchor.lib is None else type(anchor.path)(lib),
        names={**anchor.names, **names},
    )
    return Placement(root=root, names=names, anchor=moved, compiled=compiled)


def _copied(path: str, closure: Closure, root: str) -> str:
    """The place in the copy of a folder of the chain."""
    for folder, source in closure.folders.items():
        if folder != FOLDERS[TOOL] and path == source:
            return f"{root}/{folder}"
    source = closure.folders[FOLDERS[TOOL]]
    return f"{root}/{FOLDERS[TOOL]}{path[len(source.rstrip('/')) :]}"
