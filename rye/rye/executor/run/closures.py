"""The closures of an executor, which calls the same chains again and again."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from lilux.runtime.env_resolver.interpreters import which
from lilux.sha256 import sha256

from rye.cache.disk import DiskCache
from rye.closure.compiled import CompiledFiles, CompileJob
from rye.closure.manifest import Closure, Manifest, close
from rye.closure.store import Copy, store_of
from rye.context import Context
from rye.executor.caches import BoundedDict
from rye.executor.chain.anchor import Anchor
from rye.executor.config.merge import interpreter_variables, merged_templates
from rye.executor.config.placement import Placement, loads_compiled, placed, reads_files
from rye.executor.run.layout import Layout
from rye.items.element import ChainElement
from rye.items.permissions import permissions_to_json
from rye.items.reader import read_item
from rye.permissions.chain import chain_permissions
from rye.spaces.containment import real_path


class Closures:
    """Closes verified chains.

    A closure is kept while chain, anchor, dependencies and markers are the same. The modes of its
    files are those that they had when it was made.
    """

    def __init__(self, context: Context, disk_cache: DiskCache) -> None:
        self.store = store_of(context)
        self.compiled = CompiledFiles(self.store.folder, disk_cache)
        self._project = str(context.project_path)
        self._known: dict[str, tuple[Sequence[ChainElement], object, Closure]] = BoundedDict()

    def close(
        self,
        chain: Sequence[ChainElement],
        anchor: Anchor | None,
        dependencies: Mapping[str, str],
        files: Mapping[str, tuple[str, str]],
        data: Collection[str] = (),
    ) -> Closure:
        """The closure of a chain whose dependencies were verified.

        ``dependencies`` has their content hashes, and ``files`` the paths of all but the pinned
        ones, both by name; ``data`` are the names that are data. Raises the errors of reading a
        marker.
        """
        markers = _markers(chain[0], anchor, files)
        state = (anchor, dependencies, markers, tuple(data))
        known = self._known.get(chain[0].item_id)
        if known is not None and known[0] is chain and known[1] == state:
            return known[2]
        layout = Layout(chain, anchor, files, self._project)
        placed = layout.placed(dependencies, markers, data)
        manifest = Manifest(
            files=tuple([one for one, _ in placed]),
            primitive=chain[-1].item_id,
            config=merged_templates(chain, anchor),
            permissions=permissions_to_json(chain_permissions(chain)),
        )
        closure = close(manifest, tuple([source for _, source in placed]), layout.folders)
        self._known[chain[0].item_id] = (chain, state, closure)
        return closure

    def copy(self, closure: Closure, anchor: Anchor | None, read: Mapping[str, str]) -> Copy | None:
        """A checked copy of the closure; ``None`` if nothing in it is read by the call.

        ``read`` has the SHA-256 of signed files as this call read them, by path. Raises
        :class:`ClosureError` for a file that changed since it was verified.
        """
        if not reads_files(closure, anchor):
            self.store.keep(closure)
            return None
        by_index = {
            index: read[path] for index, (path, _) in enumerate(closure.sources) if path in read
        }
        return self.store.copy(closure, by_index)

    def place(
        self,
        closure: Closure,
        anchor: Anchor | None,
        copy: Copy | None,
        chain: Sequence[ChainElement],
        env: Mapping[str, str],
    ) -> tuple[Placement, CompileJob | None]:
        """Where the call finds its files, and what should be compiled for the next call."""
        if copy is None:
            return Placement(anchor=anchor), None
        found: str | CompileJob | None = None
        if loads_compiled(closure):
            interpreter = next((env.get(name, "") for name in interpreter_variables(chain)), "")
            if interpreter and os.sep not in interpreter:
                interpreter = str(which(interpreter, env) or "")
            found = self.compiled.find(closure, copy.root, interpreter)
        if isinstance(found, str):
            return placed(closure, anchor, copy.root, found), None
        # A tool that is being written changes with every call: compile what is called again.
        return placed(closure, anchor, copy.root), None if copy.is_new else found


def _markers(
    tool: ChainElement, anchor: Anchor | None, files: Mapping[str, tuple[str, str]]
) -> dict[str, str]:
    """The SHA-256 of the files that mark the tool's folder and are not verified, by path.

    An interpreter may read them: node takes the type of a module from ``package.json``.
    """
    if anchor is None or not anchor.markers or tool.path is None:
        return {}
    folder = real_path(str(tool.path.parent))
    verified = {path for path, _ in files.values()}
    paths = [path for name in anchor.markers if (path := f"{folder}/{name}") not in verified]
    return {path: sha256(read_item(Path(path), Path(folder)).content).hexdigest() for path in paths}
