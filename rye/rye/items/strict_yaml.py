"""Parse unambiguous YAML: no duplicate keys, anchors, aliases, tags or second documents.

Plain scalars get the same types as with PyYAML's safe loader. Building values from the events of
libyaml takes a third of the time of PyYAML's constructor, and every error has a line.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from rye.errors import ItemFormatError
from rye.items.declarations import MAX_DEPTH, RefusedError

_HINT = "correct it and sign again"
_TRUTHS = SafeConstructor.bool_values
_RESOLVERS: dict[str | None, list[tuple[str, Any]]] = Resolver.yaml_implicit_resolvers
_PREFIX = "tag:yaml.org,2002:"
_convert = SafeConstructor()
# More than any number needs; a long number in base 60 takes minutes to convert.
_MAX_NUMBER = 100


def load_mapping(
    text: str, path: Path, *, hint: str = _HINT
) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the top-level mapping of a file, and the line of each key.

    Raises :class:`ItemFormatError` with the line.
    """
    builder = _Builder(_event_source(text))
    try:
        return builder.document()
    except RefusedError as fault:
        raise ItemFormatError(path, fault.reason, line=fault.line, hint=hint) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = mark.line + 1 if mark is not None else None
        reason = f"is not YAML ({error.problem or error.context})"
        raise ItemFormatError(path, reason, line=line, hint=hint) from None
    except (yaml.YAMLError, ValueError) as error:
        reason = f"is not YAML ({str(error).splitlines()[0] if str(error) else 'malformed'})"
        raise ItemFormatError(path, reason, hint=hint) from None


def _event_source(text: str) -> Callable[[], Any]:
    # Without libyaml, PyYAML produces the same events more slowly.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    next_event: Callable[[], Any] = loader(text).get_event
    return next_event


class _Builder:
    def __init__(self, next_event: Callable[[], Any]) -> None:
        self._next = next_event

    def document(self) -> tuple[dict[str, Any], dict[str, int]]:
        self._next()  # the start of the stream
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            raise RefusedError("is empty", 1)
        event = self._next()
        if not isinstance(event, yaml.MappingStartEvent):
            raise RefusedError("expected a mapping at the top", event.start_mark.line + 1)
        lines: dict[str, int] = {}
        value = self._mapping(event, 1, lines)
        self._next()  # the end of the document
        event = self._next()
        if not isinstance(event, yaml.StreamEndEvent):
            raise RefusedError("has a second document", event.start_mark.line + 1)
        return value, lines

    def _value(self, event: Any, depth: int) -> Any:
        kind = type(event)
        if kind is yaml.AliasEvent:
            raise RefusedError(f"has an alias '*{event.anchor}'", event.start_mark.line + 1)
        if kind is yaml.ScalarEvent:
            return self._scalar(event)
        if depth > MAX_DEPTH:
            raise RefusedError(f"has more than {MAX_DEPTH} levels", event.start_mark.line + 1)
        if kind is yaml.MappingStartEvent:
            return self._mapping(event, depth, None)
        self._refuse_extras(event)
        values = []
        while type(entry := self._next()) is not yaml.SequenceEndEvent:
            values.append(self._value(entry, depth + 1))
        return values

    def _mapping(self, start: Any, depth: int, lines: dict[str, int] | None) -> dict[str, Any]:
        self._refuse_extras(start)
        values: dict[str, Any] = {}
        while type(event := self._next()) is not yaml.MappingEndEvent:
            line = event.start_mark.line + 1
            key = self._value(event, depth + 1) if type(event) is yaml.ScalarEvent else None
            if type(event) is yaml.AliasEvent:
                raise RefusedError(f"has an alias '*{event.anchor}'", line)
            if not isinstance(key, str):
                raise RefusedError("has a key that is not text; put it in quotes", line)
            if key in values:
                raise RefusedError(f"has the key '{key}' twice", line)
            values[key] = self._value(self._next(), depth + 1)
            if lines is not None:
                lines[key] = line
        return values

    def _scalar(self, event: Any) -> Any:
        self._refuse_extras(event)
        text: str = event.value
        if not event.implicit[0]:
            return text
        resolvers = _RESOLVERS.get(text[:1])
        if resolvers:
            for tag, pattern in resolvers:
                if pattern.match(text):
                    return self._typed(tag.removeprefix(_PREFIX), event)
        return text

    def _typed(self, tag: str, event: Any) -> Any:
        text: str = event.value
        if tag == "null":
            return None
        if tag == "bool":
            return _TRUTHS[text.lower()]
        if tag in ("int", "float") and len(text) > _MAX_NUMBER:
            raise RefusedError(
                f"has a number of more than {_MAX_NUMBER} characters; put it in quotes",
                event.start_mark.line + 1,
            )
        if tag == "int":
            # Most numbers need none of the eight notations of YAML 1.1.
            if text.isdecimal() and text[0] != "0":
                return int(text)
            return _convert.construct_yaml_int(yaml.ScalarNode(tag, text))
        if tag == "float":
            return _convert.construct_yaml_float(yaml.ScalarNode(tag, text))
        what = {"timestamp": "a date", "merge": "a merge key"}.get(tag, f"a '{tag}'")
        raise RefusedError(f"has {what}; put it in quotes", event.start_mark.line + 1)

    def _refuse_extras(self, event: Any) -> None:
        if event.anchor is not None:
            raise RefusedError(f"has an anchor '&{event.anchor}'", event.start_mark.line + 1)
        if event.tag is not None:
            raise RefusedError(f"has a tag '{event.tag}'", event.start_mark.line + 1)
