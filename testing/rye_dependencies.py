"""A signed tool with supporting files beside it, for tests of dependencies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lilux.primitives.signing import generate_keypair, save_keypair
from rye.executor.chain.anchor import resolve_anchor
from rye.executor.chain.dependencies import verify_dependencies
from rye.executor.chain.snapshot import Library
from rye.items.element import ChainElement
from rye.trust.operations import sign_item
from rye_elements import Workshop

TREE = ["helper.py", "lib/code.js", "lib/deep/util.py", "tool.py"]
"""The signed files below the folder of the tool."""


class DependencyWorkshop(Workshop):
    """A workshop whose user has a key, and files beside the tool ``pkg/tool.py``."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        save_keypair(*generate_keypair(), self.root / "user/.ai/keys")
        self.file("pkg/helper.py")
        self.file("pkg/lib/deep/util.py")
        self.file("pkg/lib/code.js")
        self.file("pkg/notes.txt", signed=False)
        self.file("pkg/__pycache__/junk.py", signed=False)
        self.file("other/thing.py", signed=False)

    def file(self, name: str, text: str = "x = 1\n", *, signed: bool = True) -> Path:
        """Write a file below the project's tools; return its path."""
        path = self.tools("project") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if signed:
            sign_item(path, self.context)
        return path

    def chain(self, verify: Any, anchor: Any = None, /, **tool: Any) -> list[ChainElement]:
        """A chain of the signed ``pkg/tool.py`` and a runtime with these declarations."""
        element = self.element("pkg/tool.py", text="print()\n", **tool)
        assert element.path is not None
        sign_item(element.path, self.context)
        runtime = self.element("run.yaml", space="system", verify_deps=verify, anchor=anchor)
        return [element, runtime, self.primitive()]

    def verified(self, verify: Any, anchor: Any = None, /, **tool: Any) -> dict[str, str]:
        """Return the hashes of the verified dependencies of that chain."""
        chain = self.chain(verify, anchor, **tool)
        verify_file = Library(self.context).snapshot().verify_file
        return verify_dependencies(chain, resolve_anchor(chain, self.context), verify_file)
