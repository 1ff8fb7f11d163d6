"""Bounded reads of text files that somebody else wrote."""

import os
import stat
from pathlib import Path


class FileTooLargeError(ValueError):
    """The file has more bytes than the reader is ready to take."""


def read_text(path: Path, limit: int) -> str | None:
    """The text of a regular file of at most ``limit`` bytes, or ``None`` if there is no such file.

    Never blocks on a FIFO. Raises ``OSError``, ``UnicodeDecodeError`` or
    :class:`FileTooLargeError` for a file that is there and cannot be used.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            data = stream.read(limit + 1)
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise FileTooLargeError(f"more than {limit} bytes")
    return data.decode("utf-8-sig")


def read_text_if_usable(path: Path, limit: int = 64 * 1024) -> str | None:
    """Like :func:`read_text`, and ``None`` for whatever cannot be used."""
    try:
        return read_text(path, limit)
    except (OSError, ValueError):
        return None
