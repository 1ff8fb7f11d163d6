"""A path of a declaration becomes a real path of this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence

from lilux.record import Record

from rye.errors import PermissionsError
from rye.items.permissions import FOLDER, HOME, PROJECT
from rye.permissions.base import real

_MAX_LINKS = 40
"""As many as the kernel follows."""


class Places(Record, frozen=True, kw_only=True):
    """What the beginnings of declared paths mean. All are real paths."""

    project: str
    home: str

    def resolve(self, entry: str, tool: str) -> str:
        """The real path of an entry of ``read``, ``write`` or ``run``.

        Nobody has signed the links in a project: one that leads out of it would widen what the
        signed file grants. Raises :class:`PermissionsError` for such a link.
        """
        path = entry.removesuffix(FOLDER)
        if path == PROJECT:
            return self.project  # which is real already
        if path.startswith(PROJECT):
            found = real(self.project + path[len(PROJECT) :])
            if not is_inside(found, self.project):
                raise PermissionsError(
                    f"{tool!r} may use {entry}, but a link there leads out of the project, to "
                    f"{found}",
                    hint="replace the link by a folder",
                )
            return found
        if path == HOME or path.startswith(f"{HOME}/"):
            return real(self.home + path[len(HOME) :])
        return real(path)

    def granted(self, entries: Sequence[str], tool: str) -> list[str]:
        """The real paths of the entries.

        A command that is called in the home folder, or above it, has that folder as its project.
        The author of a tool means a project by ``{project_path}``, not everything that the user
        has, so such a project as a whole is not granted.
        """
        found = [self.resolve(one, tool) for one in entries]
        if not is_inside(self.home, self.project):
            return found
        return [
            path
            for path, entry in zip(found, entries, strict=True)
            if path != self.project or not entry.startswith(PROJECT)
        ]


def is_inside(path: str, folder: str) -> bool:
    """True if the path is the folder, or below it. Both are real paths."""
    return path == folder or path.startswith(folder if folder.endswith("/") else f"{folder}/")


def steps_to(path: str, base: str = "") -> list[str]:
    """The links on the way to a path, and the real path. Up to ``base`` it is known to be real."""
    links: list[str] = []
    at = base if is_inside(path, base) else ""
    rest = path[len(at) :].split("/")[::-1]
    while rest:
        name = rest.pop()
        here = os.path.dirname(at) if name == ".." else f"{at}/{name}"  # noqa: PTH120 - a text
        if name in ("", ".") or here == "/":
            continue
        if not os.path.islink(here) or len(links) == _MAX_LINKS:  # noqa: PTH114 - as above
            at = here
            continue
        links.append(here)
        target = os.readlink(here)  # noqa: PTH115 - as above
        at = "" if target.startswith("/") else at
        rest += target.split("/")[::-1]
    return [*links, at or "/"]


def create_folder(path: str, tool: str) -> None:
    """Create a folder that a tool may write, as far as it does not exist.

    Raises :class:`PermissionsError` if that fails.
    """
    try:
        os.makedirs(path, exist_ok=True)  # noqa: PTH103 - a text
    except FileExistsError:
        return  # a file, which may be declared too
    except OSError as error:
        raise PermissionsError(
            f"{tool!r} may write {path}, which cannot be created: {(error.strerror or '').lower()}",
            hint="create the folder",
        ) from None
