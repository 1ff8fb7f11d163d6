"""Checks that only the user, or root, could have written a file or folder that Rye relies on."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def guard(path: Path, status: os.stat_result) -> str:
    """Return why other users could have changed ``path``, and what to do; empty if they cannot."""
    if status.st_uid not in (os.geteuid(), 0):
        return (
            f"{path} belongs to another user (uid {status.st_uid}); "
            "change its owner, or use a user space that belongs to you"
        )
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o022:
        import shlex

        return (
            f"{path} is writable by other users (mode {mode:04o}); "
            f"fix it with: chmod go-w {shlex.quote(str(path))}"
        )
    return ""


def guard_above(path: Path) -> str:
    """Check the parent folder: users who can write to it could replace ``path``.

    They could even replace it with a link to another folder of the user, such as a checkout.
    """
    folder = path.parent
    status = folder.stat()
    # Many systems give each user a private group with the same number.
    if status.st_gid == status.st_uid and not status.st_mode & stat.S_IWOTH:
        return "" if status.st_uid in (os.geteuid(), 0) else guard(folder, status)
    return guard(folder, status)


def is_private(folder: str) -> bool:
    """True if only this user can access the folder, and no other user could have replaced it.

    So neither the folder nor the two above it may be a link, and no other user may write to the
    three folders above it.
    """
    path = Path(folder)
    try:
        status = os.lstat(folder)
        if not stat.S_ISDIR(status.st_mode) or not is_closed(status):
            return False
        return not any(one.is_symlink() or guard_above(one) for one in (path, *path.parents[:2]))
    except OSError:
        return False


def is_closed(status: os.stat_result) -> bool:
    """True if the file belongs to this user, and no other user can read, write or enter it."""
    return status.st_uid == os.geteuid() and not status.st_mode & 0o077
