"""Who else could have put a file or folder where it is: nobody, for what Rye is to believe."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def guard(path: Path, status: os.stat_result) -> str:
    """Say why others could have changed ``path``, and what to do; empty if they could not."""
    if status.st_uid not in (os.geteuid(), 0):
        return (
            f"{path} belongs to another user (uid {status.st_uid}); "
            "make it yours, or use a user space that is"
        )
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o022:
        import shlex

        return (
            f"{path} may be changed by others (mode {mode:04o}); "
            f"close it with: chmod go-w {shlex.quote(str(path))}"
        )
    return ""


def guard_above(path: Path) -> str:
    """The same for the folder that ``path`` is in: whoever may write there may exchange ``path``,
    if only for a link to another folder of the user's, such as one of a checkout."""
    folder = path.parent
    status = folder.stat()
    # A group of the user's own, as many systems make one for each, is nobody else.
    if status.st_gid == status.st_uid and not status.st_mode & stat.S_IWOTH:
        return "" if status.st_uid in (os.geteuid(), 0) else guard(folder, status)
    return guard(folder, status)


def is_private(folder: str) -> bool:
    """Whether it is a folder of this user's and closed to everyone else, in a place that others
    cannot change: who may write to the folder above, to the one above that or to ``.ai`` may put
    another there, if only one of the user's that came with a checkout."""
    path = Path(folder)
    try:
        status = os.lstat(folder)
        if not stat.S_ISDIR(status.st_mode) or not is_closed(status):
            return False
        return not any(one.is_symlink() or guard_above(one) for one in (path, *path.parents[:2]))
    except OSError:
        return False


def is_closed(status: os.stat_result) -> bool:
    """Whether it is this user's, and nobody else may read, write or enter it."""
    return status.st_uid == os.geteuid() and not status.st_mode & 0o077
