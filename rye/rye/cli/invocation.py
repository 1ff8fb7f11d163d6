"""Where the command was called: the project, and the context of the machine."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

from rye.context import Context
from rye.errors import RyeError


class Surroundings:
    """What every command is handed. Nothing is looked at before it is asked for."""

    def __init__(self, project: str | None = None) -> None:
        self._project = project

    @property
    def asked(self) -> str | None:
        """The folder that ``--project`` named, which need not be there."""
        return self._project

    @cached_property
    def context(self) -> Context:
        """Read once. Raises ``RyeError`` if the project that was asked for is no folder."""
        if self._project is None:
            return Context.from_machine(find_project(Path.cwd()))
        folder = Path(self._project)
        if not folder.is_dir():
            raise RyeError(f"{folder} is no folder", hint="pass the folder of a project")
        return Context.from_machine(folder)


def find_project(start: Path) -> Path:
    """The nearest folder upwards that has an ``.ai`` folder, or ``start`` itself.

    The home folder's ``.ai`` is the user space and makes no project of what lies below it. A folder
    of somebody else is passed over: what is planted above a shared folder such as ``/tmp`` must not
    become the project of all who work there.
    """
    home = Path(os.environ.get("USER_SPACE") or Path.home()).resolve()
    for folder in (start, *start.parents):
        if folder == home:
            break
        if (folder / ".ai").is_dir() and (folder == start or _is_ours(folder)):
            return folder
    return start


def _is_ours(folder: Path) -> bool:
    return (folder / ".ai").stat().st_uid == os.getuid()
