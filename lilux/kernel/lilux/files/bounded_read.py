"""Bounded reads of untrusted files: they never block, and never read more than a limit."""

import errno
import os
import stat
from collections.abc import Callable

_CHUNK_BYTES = 64 * 1024
# Non-blocking, so that opening a FIFO does not wait for a writer.
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class NotRegularFileError(OSError):
    """The path is a folder, FIFO, socket or device."""


class FileTooLargeError(ValueError):
    """The file has more bytes than the limit."""


def read_bounded(
    path: str | os.PathLike[str],
    limit: int,
    *,
    follow_links: bool = True,
    check: Callable[[os.stat_result], None] | None = None,
) -> bytes:
    """Return the bytes of the regular file at ``path``, at most ``limit`` of them.

    ``check`` may refuse the opened file by raising, before its first byte is read. Raises
    :class:`NotRegularFileError`, :class:`FileTooLargeError` or the system's ``OSError``, which is
    ``ELOOP`` for a symbolic link without ``follow_links``.
    """
    fd = os.open(path, _OPEN if follow_links else _OPEN | os.O_NOFOLLOW)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise NotRegularFileError(errno.EINVAL, "Not a regular file", os.fspath(path))
        if check is not None:
            check(found)
        size = found.st_size
        if size > limit:
            raise _too_large(limit)
        data = os.read(fd, size + 1)
        # Exactly `size` bytes, though one more was requested, is the end of the file. Files in
        # /proc and similar file systems report a size of 0.
        if len(data) != size or not size:
            data += _read_rest(fd, limit - len(data))
    finally:
        os.close(fd)
    if len(data) > limit:
        raise _too_large(limit)
    return data


def read_text_if_usable(path: str | os.PathLike[str], limit: int = 64 * 1024) -> str | None:
    """Return the text of a UTF-8 file; ``None`` if it is missing, unreadable or too large."""
    try:
        return read_bounded(path, limit).decode("utf-8-sig")
    except (OSError, ValueError):
        return None


def _read_rest(fd: int, room: int) -> bytes:
    """Read to the end of a file that has grown, or a little more than ``room`` bytes."""
    parts = []
    while room >= 0 and (part := os.read(fd, _CHUNK_BYTES)):
        parts.append(part)
        room -= len(part)
    return b"".join(parts)


def _too_large(limit: int) -> FileTooLargeError:
    return FileTooLargeError(f"more than {limit} bytes")
