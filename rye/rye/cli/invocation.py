"""Where the command was called: the project, and the context of the machine."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from stat import S_ISDIR

from rye.context import Context
from rye.errors import RyeError


class Invocation:
    """What every command receives. Nothing is read from the machine before it is needed."""

    def __init__(self, project_option: str | None = None) -> None:
        self.project_option = project_option
        """The directory given by ``--project``; it may not exist."""

    @cached_property
    def context(self) -> Context:
        """The context, read once. Raises ``RyeError`` if ``--project`` is not a directory."""
        if self.project_option is None:
            return Context.from_machine(find_project(Path.cwd()))
        folder = Path(self.project_option)
        if (fault := _fault_of_directory(folder)) is not None:
            raise RyeError(f"{folder} {fault}", hint="pass the directory of a project")
        return Context.from_machine(folder)


def find_project(start: Path) -> Path:
    """Return the nearest directory upwards that contains ``.ai``, or else ``start``.

    The ``.ai`` of the home directory is the user space and does not make the home a project. Above
    ``start``, an ``.ai`` that belongs to another user is ignored: otherwise one that is planted in
    a shared directory such as ``/tmp`` would become the project of everyone who works below.
    """
    home = Path(os.environ.get("USER_SPACE") or Path.home()).resolve()
    for folder in (start, *start.parents):
        if folder == home:
            break
        owner = _owner_of_directory(folder / ".ai")
        if owner is not None and (folder == start or owner == os.getuid()):
            return folder
    return start


def _fault_of_directory(path: Path) -> str | None:
    """Say why a path is not a usable directory; ``None`` if it is one."""
    try:
        return None if S_ISDIR(path.stat().st_mode) else "is not a directory"
    except (FileNotFoundError, NotADirectoryError):
        return "is not a directory"
    except OSError as error:
        return f"is not accessible ({(error.strerror or 'unknown reason').lower()})"


def _owner_of_directory(path: Path) -> int | None:
    """The id of the user who owns a directory; ``None`` if it is missing or inaccessible."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_uid if S_ISDIR(found.st_mode) else None
