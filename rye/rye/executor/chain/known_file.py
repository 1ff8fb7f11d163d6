"""A second look at a file that was read before: are these still the same bytes in the same place?

The place is asked of the file that was opened: neither a link where the file was nor one in the
place of a folder above it passes, though it may lead to the same bytes.
"""

from __future__ import annotations

import os

from lilux.record import Record
from lilux.sha256 import sha256

from rye.items.element import ItemFile
from rye.items.reader import actual_path

# Without O_NONBLOCK a FIFO would make the call wait for a writer.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class KnownFile(Record, frozen=True):
    """A file as it was read, and the SHA-256 of its bytes."""

    file: ItemFile
    digest: str
    name: str
    size: int

    @classmethod
    def of(cls, file: ItemFile) -> KnownFile:
        """Remember what was just read."""
        digest = sha256(file.content).hexdigest()
        return cls(file, digest, os.fspath(file.path), len(file.content))

    def is_unchanged(self) -> bool:
        """Read it again and compare the hashes; ``False`` also for whatever cannot be read."""
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
        return sha256(content).hexdigest() == self.digest
