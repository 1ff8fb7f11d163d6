"""A dict of bounded size, for everything that an executor remembers between calls."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    Key = TypeVar("Key")
    Value = TypeVar("Value")
else:
    # Only type checkers need the real ones, and importing typing is slow.
    Key = Value = object

MAX_ENTRIES = 4096


class BoundedDict(dict[Key, Value]):
    """A dict that drops its oldest entry when a new one would exceed ``max_entries``.

    For one thread, like the executor that owns it.
    """

    def __init__(self, max_entries: int = MAX_ENTRIES) -> None:
        super().__init__()
        self._max_entries = max_entries

    def __setitem__(self, key: Key, value: Value) -> None:
        if len(self) >= self._max_entries and key not in self:
            del self[next(iter(self))]
        super().__setitem__(key, value)
