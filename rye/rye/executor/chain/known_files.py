"""Check that files that were read before are still the same bytes in the same place.

The place is that of the opened file. A symbolic link in the place of the file, or of a folder
above it, is therefore a change, even if it leads to the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Hashable
from pathlib import Path

from lilux.record import Record, replaced
from lilux.sha256 import sha256

from rye.executor.caches import BoundedDict
from rye.items.element import ItemFile
from rye.items.reader import actual_path

# Without O_NONBLOCK a FIFO would make the call wait for a writer.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_VERIFIED = 16_384


class KnownFile(Record, frozen=True):
    """A file as it was read, and the SHA-256 of its bytes."""

    file: ItemFile
    digest: str
    name: str
    size: int

    @classmethod
    def of(cls, file: ItemFile) -> KnownFile:
        """Remember a file that was just read."""
        digest = sha256(file.content).hexdigest()
        return cls(file, digest, os.fspath(file.path), len(file.content))

    def is_unchanged(self) -> bool:
        """Read the file again and compare it; ``False`` if it cannot be read."""
        try:
            descriptor = os.open(self.name, _FLAGS)
        except OSError:
            return False
        try:
            content = os.read(descriptor, self.size + 1)
            if len(content) != self.size or actual_path(descriptor, self.name) != self.file.place:
                return False
        except OSError:
            return False
        finally:
            os.close(descriptor)
        # Most files of a chain are kept, and comparing bytes is faster than hashing them.
        return content == self.file.content or sha256(content).hexdigest() == self.digest


class _Verified(Record, frozen=True):
    file: KnownFile
    root: Path
    trust_stamp: Hashable
    content_hash: str


class VerifiedFiles:
    """The content hashes of dependencies whose signatures were verified.

    Such a file is read again on each call, but its signature is checked again only if the bytes
    or the trust store changed.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Verified] = BoundedDict(_MAX_VERIFIED)

    def recall(self, path: str, root: Path, trust_stamp: Hashable) -> str | None:
        """The content hash, if the file has the same bytes that were verified below ``root``."""
        known = self._known.get(path)
        if known is None or known.trust_stamp != trust_stamp or known.root != root:
            return None
        return known.content_hash if known.file.is_unchanged() else None

    def digest(self, path: str) -> str | None:
        """The SHA-256 of all bytes of a verified file, when it was read last."""
        known = self._known.get(path)
        return None if known is None else known.file.digest

    def keep(self, file: ItemFile, root: Path, trust_stamp: Hashable, content_hash: str) -> None:
        """Remember a verified file, without its content: there may be thousands of them."""
        read = KnownFile.of(file)
        known = replaced(read, file=replaced(file, content=b""))
        self._known[known.name] = _Verified(known, root, trust_stamp, content_hash)
