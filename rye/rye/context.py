"""What a call may know of the machine, read once at the edge and never changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from lilux.record import Record


class Context(Record, frozen=True, kw_only=True):
    """The roots of the spaces and the environment. No station looks these up by itself.

    Paths are absolute and resolved. ``user_space`` is the folder that *contains* the user's
    ``.ai``, as ``project_path`` contains the project's; ``system_space`` contains the ``.ai`` that
    ships with Rye.
    """

    project_path: Path
    user_space: Path
    system_space: Path
    environ: Mapping[str, str]

    @classmethod
    def from_machine(
        cls,
        project_path: Path | str | None = None,
        user_space: Path | str | None = None,
        system_space: Path | str | None = None,
    ) -> Context:
        """Fills what is not given from the working directory, ``$USER_SPACE`` or home, and Rye."""
        environ = dict(os.environ)
        user = user_space or environ.get("USER_SPACE") or Path.home()
        return cls(
            project_path=Path(project_path or Path.cwd()).resolve(),
            user_space=Path(user).expanduser().resolve(),
            system_space=Path(system_space or Path(__file__).parent).resolve(),
            environ=MappingProxyType(environ),
        )
