"""The file that stores the index between runs. It only saves time.

The file is below the user space, is read only if no other user can write it, and is valid for one
version of Rye and of Python. An invalid file is ignored and written again.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
import zlib
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from lilux.files.atomic import atomic_write

from rye import __version__
from rye.ownership import is_private
from rye.spaces.model import Space

MAX_BYTES = 256 * 1024 * 1024
MAX_FILES = 64

_FORMAT = 6
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class CacheFile:
    """The index file for one set of spaces."""

    def __init__(self, user_space: Path, spaces: Sequence[Space], reserved: Sequence[str]) -> None:
        self._user_space = user_space
        self.folder = user_space / ".ai" / "cache" / "catalogue"
        header = [
            _FORMAT,
            __version__,
            sys.hexversion,
            [[space.name, os.fspath(space.root), space.bundle] for space in spaces],
            list(reserved),
        ]
        self._header = json.dumps(header).encode()
        roots = "\0".join([os.fspath(space.root) for space in spaces])
        self.path = self.folder / f"{sha256(os.fsencode(roots)).hexdigest()[:32]}.index"

    def read(self) -> bytes | None:
        """Return what this version wrote for these spaces; ``None`` if there is no valid file."""
        try:
            if not is_private(os.fspath(self.folder)):
                return None
            descriptor = os.open(self.path, _FLAGS)
            with open(descriptor, "rb") as file:  # noqa: PTH123 - opens a descriptor
                status = os.fstat(descriptor)
                if not _is_own_file(status) or status.st_size > MAX_BYTES:
                    return None
                data = file.read(MAX_BYTES)
        except OSError:
            return None
        header, _, rest = data.partition(b"\n")
        checksum, _, content = rest.partition(b"\n")
        if header != self._header or checksum != _checksum(content):
            return None
        return content

    def write(self, content: bytes) -> None:
        """Store the index for the next run; a failure to write is ignored."""
        with contextlib.suppress(OSError):
            if self._make_folder():
                data = b"\n".join([self._header, _checksum(content), content])
                atomic_write(self.path, data, mode=0o600)
                self._remove_oldest()

    def _make_folder(self) -> bool:
        if not self._user_space.is_dir():
            return False
        for folder in (self.folder.parent.parent, self.folder.parent, self.folder):
            folder.mkdir(mode=0o700, exist_ok=True)
        return is_private(os.fspath(self.folder))

    def _remove_oldest(self) -> None:
        """Limit the number of files: indexes of deleted projects are never removed otherwise."""
        files = [(entry.stat().st_mtime_ns, entry.path) for entry in os.scandir(self.folder)]
        for _, path in sorted(files)[:-MAX_FILES]:
            os.unlink(path)  # noqa: PTH108 - a string


def _is_own_file(status: os.stat_result) -> bool:
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_uid == os.geteuid()
        and not status.st_mode & 0o022
    )


def _checksum(content: bytes) -> bytes:
    """Detects damage; owner and mode of the file protect against tampering."""
    return b"%08x" % zlib.crc32(content)
