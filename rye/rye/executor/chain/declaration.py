"""A mapping in the metadata of items, read key by key with errors that name file and key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from lilux.record import Record

from rye.errors import AnchorError
from rye.items.element import ChainElement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


class Declaration(Record, frozen=True, kw_only=True):
    """The keys of ``anchor`` or ``verify_deps``, each with the element that it comes from.

    Reading a key raises :class:`AnchorError` if its value has the wrong type.
    """

    what: str
    values: Mapping[str, Any]
    owners: Mapping[str, tuple[int, ChainElement]]

    @classmethod
    def of(cls, chain: Sequence[ChainElement], what: str, known: Sequence[str]) -> Declaration:
        """Merge the declarations of the elements; those nearer to the tool take precedence."""
        values: dict[str, Any] = {}
        owners: dict[str, tuple[int, ChainElement]] = {}
        for level, element in reversed(list(enumerate(chain))):
            declared = getattr(element.metadata, what)
            if declared is None:
                continue
            for key, value in declared.items():
                values[key] = value
                owners[key] = (level, element)
        merged = cls(what=what, values=values, owners=owners)
        merged._only(known)
        return merged

    def inner(self, key: str, name: str, known: Sequence[str]) -> Declaration:
        """The mapping ``name`` inside the mapping ``key``."""
        value = self.mapping(key)[name]
        if not isinstance(value, Mapping):
            self.refuse(f"{key}.{name}", f"expected a mapping, got {_kind(value)}", "correct it")
        owner = self.owners[key]
        part = Declaration(
            what=f"{self.what}.{key}.{name}", values=value, owners=dict.fromkeys(value, owner)
        )
        part._only(known)
        return part

    def level(self, key: str) -> int:
        """The place in the chain of the element that declares ``key``; 0 if none does."""
        return self.owners[key][0] if key in self.owners else 0

    def file(self, key: str) -> str:
        """The file that declares ``key``; empty if none does."""
        return str(self.owners[key][1].path) if key in self.owners else ""

    def flag(self, key: str, *, default: bool) -> bool:
        """A boolean."""
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            self.refuse(key, f"expected true or false, got {_kind(value)}", "correct it")
        return value

    def choice(self, key: str, choices: Sequence[str]) -> str:
        """One of ``choices``; the first is the default."""
        value = self.values.get(key, choices[0])
        if not isinstance(value, str) or value not in choices:
            self.refuse(key, f"expected one of {', '.join(choices)}", "choose one of them")
        return value

    def text(self, key: str) -> str | None:
        """A text that is not empty; ``None`` if the key is missing."""
        value = self.values.get(key)
        if value is not None and (not isinstance(value, str) or not value):
            self.refuse(key, f"expected a text, got {_kind(value)}", "correct it")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; empty if the key is missing."""
        value = self.values.get(key)
        if value is None:
            return ()
        if not isinstance(value, list | tuple) or not all(
            isinstance(entry, str) and entry for entry in value
        ):
            self.refuse(key, "expected a list of texts", "correct it")
        return tuple(value)

    def mapping(self, key: str) -> Mapping[str, Any]:
        """A mapping whose keys are texts; empty if the key is missing."""
        value = self.values.get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            self.refuse(key, "expected a mapping with names", "correct it")
        return value

    def refuse(self, key: str, problem: str, todo: str) -> NoReturn:
        """Raise the error about ``key``."""
        _, owner = self.owners.get(key.partition(".")[0]) or next(iter(self.owners.values()))
        raise AnchorError(f"{owner.path}: {self.what}.{key}: {problem}", hint=todo)

    def refuse_at(self, key: str) -> Callable[[str, str], NoReturn]:
        """:meth:`refuse` for one key."""
        return partial(self.refuse, key)

    def _only(self, known: Sequence[str]) -> None:
        for key in self.values:
            if key not in known:
                self.refuse(str(key), "unknown key", f"use one of {', '.join(known)}")


def _kind(value: object) -> str:
    return "an empty text" if value == "" else type(value).__name__
