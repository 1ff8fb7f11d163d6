"""Temporary projects with tools in all three spaces, signed by a key that is thrown away.

::

    project = Project(tmp_path)
    project.tool("hello.sh", "echo hi", executor="rye/core/primitives/subprocess")
    result = project.run("hello")

The system space is empty but for what a test puts there, unless ``shipped_system`` asks for the
one that ships with Rye.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import rye.errors
from lilux.primitives.signing import generate_keypair, save_keypair
from rye.context import Context
from rye.executor.run.execute import PrimitiveExecutor
from rye.executor.run.result import ExecutionResult
from rye.spaces.model import SpaceName
from rye.trust.operations import sign_item

SUBPROCESS = "rye/core/primitives/subprocess"
HTTP_CLIENT = "rye/core/primitives/http_client"

DEFAULT_ENVIRON = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


@cache
def _throw_away_key() -> tuple[bytes, bytes]:
    return generate_keypair()


class Project:
    """A project, a user space and a system space below ``root``."""

    def __init__(
        self,
        root: Path,
        *,
        shipped_system: bool = False,
        environ: dict[str, str] | None = None,
    ) -> None:
        self.path = root / "project"
        self.user = root / "user"
        self.system = root / "system"
        for folder in (self.path, self.user, self.system):
            (folder / ".ai" / "tools").mkdir(parents=True, exist_ok=True)
        if shipped_system:
            self.system = Path(rye.errors.__file__).parent
        self.environ = {**DEFAULT_ENVIRON, "HOME": str(self.user), **(environ or {})}
        if not (self.user / ".ai" / "keys").exists():
            save_keypair(*_throw_away_key(), self.user / ".ai" / "keys")

    @property
    def context(self) -> Context:
        """What an executor of this project may know of the machine."""
        return Context(
            project_path=self.path.resolve(),
            user_space=self.user.resolve(),
            system_space=self.system.resolve(),
            environ=MappingProxyType(dict(self.environ)),
        )

    def folder(self, space: SpaceName) -> Path:
        """The ``.ai`` of a space."""
        return {"project": self.path, "user": self.user, "system": self.system}[space] / ".ai"

    def tool(
        self, name: str, text: str, *, space: SpaceName = "project", signed: bool = True
    ) -> Path:
        """Write an item, ``name`` being its id with an extension; gives its path."""
        path = self.folder(space) / "tools" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if signed:
            self.sign(path)
        return path

    def yaml(self, item_id: str, *, space: SpaceName = "project", **fields: Any) -> Path:
        """A signed YAML item with these fields, for example ``executor_id`` and ``config``."""
        # JSON is YAML, and says what is a text and what a number.
        text = json.dumps({"version": "1.0.0", **fields}, indent=2) + "\n"
        return self.tool(f"{item_id}.yaml", text, space=space)

    def command(self, item_id: str, *argv: str, **fields: Any) -> Path:
        """A signed YAML tool that runs ``argv`` straight on the subprocess primitive."""
        config = {"command": argv[0], "args": list(argv[1:])}
        return self.yaml(item_id, executor_id=SUBPROCESS, config=config, **fields)

    def sign(self, path: Path) -> Path:
        """Sign a file with the throw-away key of this project's user."""
        sign_item(path, self.context)
        return path

    def lockfile(self, item_id: str, version: str = "1.0.0") -> Path:
        """Where the project keeps the lockfile of a tool."""
        return self.path / ".ai" / "lockfiles" / f"{item_id}@{version}.lock.json"

    @contextlib.asynccontextmanager
    async def executor(self) -> AsyncIterator[PrimitiveExecutor]:
        """An executor of this project, closed at the end."""
        async with PrimitiveExecutor(context=self.context) as executor:
            yield executor

    def run(
        self, item_id: str, parameters: dict[str, Any] | None = None, **options: Any
    ) -> ExecutionResult:
        """One call by a new executor in a new event loop."""

        async def call() -> ExecutionResult:
            async with self.executor() as executor:
                return await executor.execute(item_id, parameters, **options)

        return asyncio.run(call())
