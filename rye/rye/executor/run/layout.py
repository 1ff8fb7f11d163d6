"""Gives each verified file of a chain its role and its place in the closure."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rye.closure.check import MAX_FILE_BYTES
from rye.closure.manifest import (
    ANCHOR,
    DATA,
    FOLDERS,
    LIBRARY,
    MARKER,
    PROJECT,
    RUNTIME,
    RUNTIME_DATA,
    RUNTIME_LIBRARY,
    TOOL,
    ClosureFile,
)
from rye.executor.chain import dependencies as prefixes
from rye.executor.chain.anchor import Anchor, runtime_lib
from rye.items.element import ChainElement
from rye.spaces.containment import is_below, real_path

_EXECUTABLE = 0o100

Source = tuple[str, str]
"""The path of a file, and the folder that contains it."""
Placed = tuple[ClosureFile, Source]


class Layout:
    """Where the files of one chain are, and where they are in its closure.

    Files below one folder keep their places relative to each other, so that a tool finds its
    modules and data in the copy as in the original.
    """

    def __init__(
        self,
        chain: Sequence[ChainElement],
        anchor: Anchor | None,
        files: Mapping[str, Source],
        project: str,
    ) -> None:
        """``files`` are the dependencies other than pinned files, by name."""
        self._chain = chain
        self._files = files
        self._project = project
        tool = chain[0].path
        self.tool_dir = "" if tool is None else real_path(str(tool.parent))
        anchor_path = "" if anchor is None else str(anchor.path)
        apart = bool(anchor_path) and not _is_in(self.tool_dir, anchor_path)
        self.anchor = anchor_path if apart else ""
        """The folder of an anchor that does not contain the tool; else empty."""
        beside = [
            os.path.dirname(path)  # noqa: PTH120 - texts
            for name, (path, _) in files.items()
            if not name.startswith(prefixes.LIBRARY) and not _is_in(path, self.anchor)
        ]
        folders = {self.tool_dir, *beside, *([] if apart else filter(None, [anchor_path]))}
        self.root = os.path.commonpath(folders) if self.tool_dir else ""
        """The folder of the tool and of everything that it loads."""

    @property
    def folders(self) -> dict[str, str]:
        """The folders of a copy, and what they are copies of."""
        lib = runtime_lib(self._chain)
        found = {
            FOLDERS[TOOL]: self.root,
            FOLDERS[ANCHOR]: self.anchor,
            FOLDERS[RUNTIME_LIBRARY]: "" if lib is None else str(lib),
        }
        return {folder: source for folder, source in found.items() if source}

    def placed(
        self, dependencies: Mapping[str, str], markers: Mapping[str, str], data: Iterable[str] = ()
    ) -> list[Placed]:
        """All files, sorted by role and path.

        The mappings have content hashes: of the dependencies by name, and of markers by path.
        """
        found: dict[str, Placed] = {}
        for one, source in (
            *self._elements(),
            *self._dependencies(dependencies, frozenset(data)),
            *self._markers(markers),
        ):
            # A file may be found twice; the tool is often among the files of its anchor.
            found.setdefault(one.place or f"{PROJECT}/{one.path}", (one, source))
        return sorted(found.values(), key=lambda each: (each[0].role, each[0].path))

    def _elements(self) -> Iterator[Placed]:
        for level, element in enumerate(self._chain):
            if element.path is None:
                continue
            path, space = str(element.path), str(element.resolution.space.root)
            if level:
                name = f"{element.item_id}{element.path.suffix}"
            else:
                name = _below(f"{self.tool_dir}/{element.path.name}", self.root)
            role = RUNTIME if level else TOOL
            yield _file(role, name, element.integrity, path), (path, space)

    def _dependencies(self, hashes: Mapping[str, str], data: frozenset[str]) -> Iterator[Placed]:
        for name, digest in hashes.items():
            if name.startswith(prefixes.PROJECT):
                yield from self._pinned(name.removeprefix(prefixes.PROJECT), digest)
                continue
            path, root = self._files[name]
            if name.startswith(prefixes.LIBRARY):
                role = RUNTIME_DATA if name in data else RUNTIME_LIBRARY
                place = name.removeprefix(prefixes.LIBRARY)
            elif _is_in(path, self.anchor):
                role, place = ANCHOR, _below(path, self.anchor)
            else:
                role, place = DATA if name in data else LIBRARY, _below(path, self.root)
            yield _file(role, place, digest, path), (path, root)

    def _pinned(self, name: str, digest: str) -> Iterator[Placed]:
        path = f"{self._project}/{name}"
        yield _file(PROJECT, name, digest, path), (path, self._project)
        if self.root and is_below(path, self.root) and _fits(path):
            # Beside the tool, where a program looks for it: uv reads tool.py.lock.
            yield _file(DATA, _below(path, self.root), digest, path), (path, self._project)

    def _markers(self, hashes: Mapping[str, str]) -> Iterator[Placed]:
        for path, digest in hashes.items():
            yield _file(MARKER, _below(path, self.root), digest, path), (path, self.root)


def _file(role: str, path: str, digest: str, source: str) -> ClosureFile:
    try:
        executable = bool(os.stat(source).st_mode & _EXECUTABLE)  # noqa: PTH116 - a text
    except OSError:
        executable = False  # it is gone, which making the copy reports
    return ClosureFile(role=role, path=path, sha256=digest, executable=executable)


def _fits(path: str) -> bool:
    """False for a file that is too large to be copied; it runs where it is."""
    try:
        return os.stat(path).st_size <= MAX_FILE_BYTES  # noqa: PTH116 - a text
    except OSError:
        return False


def _is_in(path: str, folder: str) -> bool:
    return bool(folder) and (path == folder or is_below(path, folder))


def _below(path: str, folder: str) -> str:
    return path[len(folder.rstrip("/")) + 1 :]
