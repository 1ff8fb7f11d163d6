"""One way to read a file that somebody else may have put there: never blocked, never too much."""

import errno
import os
import stat
from collections.abc import Callable

_CHUNK_BYTES = 64 * 1024
# Non-blocking, so that a FIFO in the place of the file cannot hold the caller up.
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class NotRegularFileError(OSError):
    """A folder, FIFO, socket or device is in the place of the file."""


class FileTooLargeError(ValueError):
    """The file has more bytes than the reader is ready to take."""


def read_bounded(
    path: str | os.PathLike[str],
    limit: int,
    *,
    follow_links: bool = True,
    check: Callable[[os.stat_result], None] | None = None,
) -> bytes:
    """The bytes of the regular file at ``path``, which may have ``limit`` of them.

    ``check`` may refuse the opened file by raising, before its first byte is read. Raises
    :class:`NotRegularFileError`, :class:`FileTooLargeError` and the system's ``OSError``; without
    ``follow_links`` that is ``ELOOP`` for a symbolic link.
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
        # Where as much came as the file has, though more was asked for, the end need not be
        # looked for. The files of some file systems, such as /proc, claim to have nothing.
        if len(data) != size or not size:
            data += _rest(fd, limit - len(data))
    finally:
        os.close(fd)
    if len(data) > limit:
        raise _too_large(limit)
    return data


def _rest(fd: int, room: int) -> bytes:
    """What is left of a file that has grown meanwhile, or a little more than ``room``."""
    parts = []
    while room >= 0 and (part := os.read(fd, _CHUNK_BYTES)):
        parts.append(part)
        room -= len(part)
    return b"".join(parts)


def _too_large(limit: int) -> FileTooLargeError:
    return FileTooLargeError(f"more than {limit} bytes")
