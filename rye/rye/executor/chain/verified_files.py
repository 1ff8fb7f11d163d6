"""Dependencies that were verified before: read again on each call, but not judged again."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

from lilux.record import Record, replaced

from rye.executor.caches import BoundedDict
from rye.executor.chain.known_file import KnownFile
from rye.items.element import ItemFile

_MAX_FILES = 16_384


class _Verified(Record, frozen=True):
    file: KnownFile
    root: Path
    trust_stamp: Hashable
    content_hash: str


class VerifiedFiles:
    """The content hash of each file that a judge let pass, for one state of the trust store."""

    def __init__(self) -> None:
        self._known: dict[str, _Verified] = BoundedDict(_MAX_FILES)

    def recall(self, path: str, root: Path, trust_stamp: Hashable) -> str | None:
        """The content hash, if the same bytes are there that passed below the same root."""
        known = self._known.get(path)
        if known is None or known.trust_stamp != trust_stamp or known.root != root:
            return None
        return known.content_hash if known.file.is_unchanged() else None

    def keep(self, file: ItemFile, root: Path, trust_stamp: Hashable, content_hash: str) -> None:
        """Remember a file that passed, by its hash alone: there may be thousands of them."""
        read = KnownFile.of(file)
        known = replaced(read, file=replaced(file, content=b""))
        self._known[known.name] = _Verified(known, root, trust_stamp, content_hash)
