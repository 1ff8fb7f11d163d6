"""Temporary projects with tools in all three spaces, signed by a temporary key.

::

    project = Project(tmp_path)
    project.tool("hello.sh", "echo hi", executor="rye/core/primitives/subprocess")
    result = project.run("hello")

The system space is empty; with ``shipped_system``, it is the one that ships with Rye. The user has
approved the unsigned parts of the project whenever a ``context`` is made, unless the project is a
``fresh_clone``.
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
from approved_project import approved
from confined_machine import accept_missing_parts
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
def _temporary_key() -> tuple[bytes, bytes]:
    return generate_keypair()


class Project:
    """A project, a user space and a system space below ``root``."""

    def __init__(
        self,
        root: Path,
        *,
        shipped_system: bool = False,
        fresh_clone: bool = False,
        environ: dict[str, str] | None = None,
    ) -> None:
        self.fresh_clone = fresh_clone
        self.path = root / "project"
        self.user = root / "user"
        self.system = root / "system"
        for folder in (self.path, self.user, self.system):
            (folder / ".ai" / "tools").mkdir(parents=True, exist_ok=True)
        if shipped_system:
            self.system = Path(rye.errors.__file__).parent
        self.environ = {**DEFAULT_ENVIRON, "HOME": str(self.user), **(environ or {})}
        if not (self.user / ".ai" / "config.yaml").exists():
            accept_missing_parts(self.user)
        if not (self.user / ".ai" / "keys").exists():
            save_keypair(*_temporary_key(), self.user / ".ai" / "keys")

    @property
    def context(self) -> Context:
        """The context for executors of this project."""
        context = Context(
            project_path=self.path.resolve(),
            user_space=self.user.resolve(),
            system_space=self.system.resolve(),
            environ=MappingProxyType(dict(self.environ)),
        )
        return context if self.fresh_clone else approved(context)

    def folder(self, space: SpaceName) -> Path:
        """Return the ``.ai`` folder of a space."""
        return {"project": self.path, "user": self.user, "system": self.system}[space] / ".ai"

    def tool(
        self, name: str, text: str, *, space: SpaceName = "project", signed: bool = True
    ) -> Path:
        """Write an item; ``name`` is its id with an extension. Returns its path."""
        path = self.folder(space) / "tools" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if signed:
            self.sign(path)
        return path

    def yaml(self, item_id: str, *, space: SpaceName = "project", **fields: Any) -> Path:
        """Write a signed YAML item with these fields, such as ``executor_id`` and ``config``."""
        # JSON is valid YAML, and keeps strings and numbers apart.
        text = json.dumps({"version": "1.0.0", **fields}, indent=2) + "\n"
        return self.tool(f"{item_id}.yaml", text, space=space)

    def command(self, item_id: str, *argv: str, **fields: Any) -> Path:
        """Write a signed YAML tool that runs ``argv`` directly on the subprocess primitive."""
        config = {"command": argv[0], "args": list(argv[1:])}
        return self.yaml(item_id, executor_id=SUBPROCESS, config=config, **fields)

    def sign(self, path: Path) -> Path:
        """Sign a file with the temporary key of this project's user."""
        sign_item(path, self.context)
        return path

    def settings(self, **settings: Any) -> None:
        """Write the user's own ``config.yaml``."""
        (self.user / ".ai" / "config.yaml").write_text(json.dumps(settings))

    def grant(self, *grants: dict[str, Any]) -> None:
        """Let the user grant tools more than their permissions."""
        self.settings(grants=list(grants))

    def lockfile(self, item_id: str, version: str = "1.0.0") -> Path:
        """Return the path of a tool's lockfile."""
        return self.path / ".ai" / "lockfiles" / f"{item_id}@{version}.lock.json"

    @contextlib.asynccontextmanager
    async def executor(self) -> AsyncIterator[PrimitiveExecutor]:
        """An executor of this project, closed after the ``with`` block."""
        async with PrimitiveExecutor(context=self.context) as executor:
            yield executor

    def run(
        self, item_id: str, parameters: dict[str, Any] | None = None, **options: Any
    ) -> ExecutionResult:
        """Run one call with a new executor in a new event loop."""

        async def call() -> ExecutionResult:
            async with self.executor() as executor:
                return await executor.execute(item_id, parameters, **options)

        return asyncio.run(call())


def says(project: Project, script: str, name: str = "tools/says", **fields: Any) -> str:
    """Add a signed tool that runs a shell script; return its id."""
    project.command(name, "/bin/sh", "-c", script, **fields)
    return name


def refused(result: ExecutionResult, error_type: str) -> str:
    """Return the message of a call that was refused with this error."""
    assert not result.success
    assert result.metadata["error_type"] == error_type, result.error
    assert result.error is not None
    return result.error
