"""The command ``rye`` in this process, with its output captured.

::

    console = Console(tmp_path)
    done = console("sign", "team/hello")
    assert done.code == 0, done.stderr

The system space is the one that ships with Rye.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from rye.cli.entry import run_command
from rye_command import Completed, environment
from rye_project import Project


class Console:
    """A project and a user space in ``root``. Commands run in the project's directory."""

    def __init__(self, root: Path, *, env: Mapping[str, str] | None = None) -> None:
        self.project = Project(root, shipped_system=True)
        self.path = self.project.path
        self.user = self.project.user
        self.env = dict(env or {})

    def __call__(self, *args: str | Path, cwd: Path | None = None) -> Completed:
        """Run a command."""
        stdout, stderr = _stream(), _stream()
        with (
            patch.dict(os.environ, environment(self.user, self.env), clear=True),
            contextlib.chdir(cwd or self.path),
            contextlib.redirect_stdout(stdout),
            contextlib.redirect_stderr(stderr),
        ):
            code = run_command([str(each) for each in args])
        return Completed(code, _text(stdout), _text(stderr))

    def json(self, *args: str | Path) -> Any:
        """Run a command with ``--json`` and return what it prints."""
        return json.loads(self(*args, "--json").stdout)


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
