"""The repository of a project: what git trusts in it, and where it is.

Git runs the hooks of a repository and obeys its settings. So both stay read-only for tools that may
write the project, unless a tool names them.
"""

from __future__ import annotations

import os
import stat

from rye.permissions.base import real
from rye.permissions.locations import is_inside

_MAX_BYTES = 64 * 1024


NONE, FOLDER, FILE = range(3)
"""What ``.git`` of a project can be."""


def kind_of_git(project: str) -> int:
    """What ``.git`` is, or what a link there leads to."""
    try:
        mode = os.stat(f"{project}/.git").st_mode  # noqa: PTH116 - on the way of each call
    except OSError:
        return NONE
    return FILE if stat.S_ISREG(mode) else FOLDER


def repository_outside(project: str) -> str | None:
    """The folder outside of a worktree or a submodule that contains its repository.

    The file ``.git``, which the project has, came with the checkout and can name any folder, so the
    named folder must name the project in turn, as git writes it.
    """
    link = f"{project}/.git"
    text = _read(link)
    if not text.startswith("gitdir:"):
        return None
    git = real(os.path.join(project, text.removeprefix("gitdir:").strip()))  # noqa: PTH118 - texts
    common = real(os.path.join(git, _read(f"{git}/commondir").strip() or "."))  # noqa: PTH118 - texts
    if is_inside(common, project) or not is_inside(git, common):
        return None
    back = _read(f"{git}/gitdir").strip()
    if back and real(os.path.join(git, back)) == link:  # noqa: PTH118 - texts
        return common
    return git if project in _worktrees(git) else None


def trusted_by_git(project: str, kind: int, outside: str | None) -> list[str]:
    """The files of the repository that only the user may change.

    A folder of hooks that does not exist is created, as git does, since a tool could create it.
    """
    git = outside or f"{project}/.git"
    found = []
    if os.path.isfile(f"{git}/HEAD"):  # noqa: PTH113 - on the way of each call
        hooks = f"{git}/hooks"
        if not os.path.lexists(hooks):
            _create(hooks)
        found = [hooks, f"{git}/config"]
    return [*found, f"{project}/.git"] if kind == FILE else found


def _worktrees(git: str) -> list[str]:
    """The folders that the settings of a submodule's repository name as its worktree."""
    lines = [line.strip() for line in _read(f"{git}/config").splitlines()]
    named = [line.partition("=")[2].strip() for line in lines if line.startswith("worktree")]
    return [real(os.path.join(git, one)) for one in named if one]  # noqa: PTH118 - texts


def _create(folder: str) -> None:
    try:
        os.mkdir(folder)  # noqa: PTH102 - a text
    except OSError:
        return  # then it is reported as a path that cannot be protected


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123 - a text
            return file.read(_MAX_BYTES)
    except OSError:
        return ""
