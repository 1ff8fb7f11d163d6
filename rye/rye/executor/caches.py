"""What an executor remembers between calls; a content hash decides whether it still holds."""

from __future__ import annotations

from collections.abc import Hashable

from lilux.record import Record

from rye.executor.chain.known_file import KnownFile
from rye.spaces.watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Generic, TypeVar

    Data = TypeVar("Data")
    Key = TypeVar("Key")
    Value = TypeVar("Value")
else:
    # What is generic here is so for type checkers alone.
    Key = Value = object
    Generic = {None: object}
    Data = None

MAX_ENTRIES = 4096


class CacheEntry(Record, Generic[Data], frozen=True):
    """Something made from files, and the SHA-256 of what it was made from.

    ``trust_stamp`` is the state of the trust store that it depends on; ``None`` for what does not
    depend on trust. ``files`` are what it was made from, and ``watch`` all that decides where its
    ids lead; ``None`` if that was just changing, or if it has none.
    """

    data: Data
    content_hash: str
    trust_stamp: Hashable = None
    files: tuple[KnownFile, ...] = ()
    watch: Watch | None = None


class BoundedDict(dict[Key, Value]):
    """A dict that forgets its oldest entry when it would outgrow ``max_entries``."""

    def __init__(self, max_entries: int = MAX_ENTRIES) -> None:
        super().__init__()
        self._max_entries = max_entries

    def __setitem__(self, key: Key, value: Value) -> None:
        if len(self) >= self._max_entries and key not in self:
            del self[next(iter(self))]
        super().__setitem__(key, value)
