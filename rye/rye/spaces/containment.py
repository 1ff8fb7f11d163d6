"""Checks that a path stays inside its space, and the errors for paths that cannot be items."""

from __future__ import annotations

import os
from pathlib import Path

from rye.errors import UnsafePathError

_PATH_ONLY = getattr(os, "O_PATH", 0)
LOCATE = _PATH_ONLY | os.O_DIRECTORY | os.O_CLOEXEC


def is_below(path: str, folder: str) -> bool:
    """True if ``path`` is inside ``folder``; both are absolute, and links are not resolved."""
    return path.startswith(folder if folder.endswith(os.sep) else folder + os.sep)


def is_in_space(real_path: str, space_root: str) -> bool:
    """True if a path without links is inside the space, whose root may itself be a link."""
    return is_below(real_path, space_root) or is_below(real_path, os.path.realpath(space_root))


def real_path(path: str) -> str:
    """Return the path with all links resolved, with fewer system calls than ``realpath``."""
    if not _PATH_ONLY:
        return os.path.realpath(path)
    try:
        descriptor = os.open(path, _PATH_ONLY | os.O_CLOEXEC)
        try:
            return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - for every item
        finally:
            os.close(descriptor)
    except OSError:
        return os.path.realpath(path)


def outside_space_error(path: Path, space_root: Path) -> UnsafePathError:
    """Return the error for a link to a file outside the space."""
    return UnsafePathError(
        f"{path}: a symbolic link points outside {space_root}",
        hint="put the file itself into the space",
    )


def not_a_regular_file_error(path: Path) -> UnsafePathError:
    """Return the error for a folder, a FIFO, a socket, a device or a dangling link."""
    return UnsafePathError(
        f"{path}: is not a regular file", hint="remove it, or replace it with a regular file"
    )
