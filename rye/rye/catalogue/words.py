"""The texts that a search looks through: lower-case words, each with a space on both sides."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rye.catalogue.entry import Summary

_SEPARATORS = r"[\W_]+"
_CAMEL_CASE_BOUNDARY = r"(?<=[a-z0-9])(?=[A-Z])"
_MAX_DEPTH = 8
_MAX_FIELD = 8192


class Texts(NamedTuple):
    """The texts of one item by field. A field has the word "read" if it contains ``" read "``."""

    stem: str
    """The last part of the id."""
    folders: str
    """The rest of the id, and the category."""
    description: str
    parameters: str
    """The names of its parameters."""
    details: str
    """The descriptions and choices of its parameters."""


NO_TEXTS = Texts("", "", "", "", "")


def words_in(text: str) -> list[str]:
    """Return the words of a text in lower case; ``readFile`` and ``read_file`` are two words."""
    if not text.islower():
        text = re.sub(_CAMEL_CASE_BOUNDARY, " ", text)
    return re.sub(_SEPARATORS, " ", text.casefold()).split()


def texts_of(summary: Summary, schema: Mapping[str, Any] | None) -> Texts:
    """Return the texts of an item, for :func:`rye.catalogue.search.search`."""
    folders, _, stem = summary.item_id.rpartition("/")
    names, details = [], []
    for name, part in _parameters(schema, 0):
        names.append(name)
        details += [value for key in ("title", "description") if (value := part.get(key))]
        choices = part.get("enum")
        details += choices if isinstance(choices, list) else ()
    return Texts(
        stem=_text(stem),
        folders=_text(f"{folders} {summary.category}"),
        description=_text(summary.description),
        parameters=_text(" ".join(names)),
        details=_text(" ".join(each for each in details if isinstance(each, str))),
    )


def _parameters(schema: Any, depth: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the parameters, including those inside objects and lists."""
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for name, part in properties.items():
            if isinstance(part, Mapping):
                yield str(name), part
                yield from _parameters(part, depth + 1)
    yield from _parameters(schema.get("items"), depth + 1)
    for key in ("allOf", "anyOf", "oneOf"):
        variants = schema.get(key)
        for variant in variants if isinstance(variants, list) else ():
            yield from _parameters(variant, depth + 1)


def _text(text: str) -> str:
    return spaced(words_in(text[:_MAX_FIELD]))


def spaced(words: Sequence[str]) -> str:
    """Join words as they appear in :class:`Texts`."""
    return f" {' '.join(words)} " if words else ""
