"""Whether a path stays in its space, and the two errors for what may not be an item."""

from __future__ import annotations

import os
from pathlib import Path

from rye.errors import UnsafePathError

LOCATE = getattr(os, "O_PATH", 0) | os.O_DIRECTORY | os.O_CLOEXEC


def is_below(path: str, folder: str) -> bool:
    """Whether the one is inside the other, both being absolute and without links."""
    return path.startswith(folder if folder.endswith(os.sep) else folder + os.sep)


def lies_within(real_path: str, space_root: str) -> bool:
    """Whether a path without links is in the space, whose own root may be a link."""
    return is_below(real_path, space_root) or is_below(real_path, os.path.realpath(space_root))


def real_folder(folder: str) -> str:
    """The path of a folder without links."""
    try:
        descriptor = os.open(folder, LOCATE)
        try:
            return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - for every item
        finally:
            os.close(descriptor)
    except OSError:
        return os.path.realpath(folder)


def leaves_the_space(path: Path, space_root: Path) -> UnsafePathError:
    """The error for a link that leads out."""
    return UnsafePathError(
        f"{path}: a symbolic link leads out of {space_root}",
        hint="put the file itself into the space",
    )


def not_a_plain_file(path: Path) -> UnsafePathError:
    """The error for a folder, a FIFO, a socket, a device or a link to nothing."""
    return UnsafePathError(
        f"{path}: is not a plain file", hint="remove it or put a plain file in its place"
    )
