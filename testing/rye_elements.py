"""Chain elements with real files, for tests of the steps after a chain is built."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import MappingProxyType
from typing import Any

from approved_project import approve
from lilux.primitives.errors import ConfigurationError
from rye.context import Context
from rye.errors import RyeError
from rye.items.element import ChainElement, Metadata
from rye.spaces.model import Resolution, Space, SpaceName

SUBPROCESS = "rye/core/primitives/subprocess"
HTTP_CLIENT = "rye/core/primitives/http_client"


class Workshop:
    """A project, a user and a system space below ``root``, and elements in them."""

    def __init__(self, root: Path, environ: dict[str, str] | None = None) -> None:
        self.root = root.resolve()
        self.environ = {"PATH": "/usr/bin:/bin"} if environ is None else environ
        for name in ("project", "user", "system"):
            self.tools(name).mkdir(parents=True, exist_ok=True)

    @property
    def project(self) -> Path:
        """The folder of the project."""
        return self.root / "project"

    @property
    def context(self) -> Context:
        """The context of the three spaces; the user has approved the project as it is now."""
        context = self.unapproved_context
        with contextlib.suppress(RyeError, ConfigurationError):
            approve(context)
        return context

    @property
    def unapproved_context(self) -> Context:
        """The same context, if the user has not seen the project yet."""
        return Context(
            project_path=self.project,
            user_space=self.root / "user",
            system_space=self.root / "system",
            environ=MappingProxyType(self.environ),
        )

    def tools(self, space: str) -> Path:
        """Return the ``tools`` folder of a space."""
        return self.root / space / ".ai" / "tools"

    def element(
        self, name: str, *, space: SpaceName = "project", text: str = "", **metadata: Any
    ) -> ChainElement:
        """Make an element with a file; ``name`` is its path below ``tools``, with the extension."""
        path = self.tools(space) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return _element(name.rpartition(".")[0], path, space, self.tools(space).parent, metadata)

    def primitive(self, item_id: str = SUBPROCESS, **metadata: Any) -> ChainElement:
        """Make a primitive without a file."""
        return _element(item_id, None, "system", self.tools("system").parent, metadata)


def _element(
    item_id: str, path: Path | None, space: SpaceName, root: Path, metadata: dict[str, Any]
) -> ChainElement:
    where = Space(name=space, root=root)
    return ChainElement(
        item_id=item_id,
        path=path,
        space=space,
        metadata=Metadata(**metadata),
        resolution=Resolution(item_id=item_id, path=path, space=where),
    )
