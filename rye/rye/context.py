"""What a call knows about the machine: read once at the start, and immutable."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from lilux.record import Record

CONFIG_NAME = "config.yaml"
"""The config of a project or of the user, in its ``.ai`` folder."""


class Context(Record, frozen=True, kw_only=True):
    """The roots of the spaces, and the environment. Nothing else in Rye reads these.

    Paths are absolute and resolved. ``project_path``, ``user_space`` and ``system_space`` are the
    folders that *contain* the ``.ai`` of the project, of the user and of Rye.
    """

    project_path: Path
    user_space: Path
    system_space: Path
    environ: Mapping[str, str]

    @property
    def config_path(self) -> Path:
        """The config of the project, which need not exist."""
        return self.project_path / ".ai" / CONFIG_NAME

    @classmethod
    def from_machine(
        cls,
        project_path: Path | str | None = None,
        user_space: Path | str | None = None,
        system_space: Path | str | None = None,
    ) -> Context:
        """Take defaults from the working directory, ``$USER_SPACE`` or the home, and Rye."""
        environ = dict(os.environ)
        user = user_space or environ.get("USER_SPACE") or Path.home()
        return cls(
            project_path=Path(project_path or Path.cwd()).resolve(),
            user_space=Path(user).expanduser().resolve(),
            system_space=Path(system_space or Path(__file__).parent).resolve(),
            environ=MappingProxyType(environ),
        )
