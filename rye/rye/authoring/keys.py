"""Names in the metadata of a tool that nothing reads, and what was probably meant."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rye.executor.config.merge import MergedConfig
from rye.executor.config.templates import texts_in
from rye.formats import format_of
from rye.items.declarations import NAMES
from rye.items.element import ChainElement, ItemFile
from rye.items.python_literals import NAMES as PYTHON_NAMES
from rye.suggestions import closest, one_typo_away

FIX = "correct it and sign again"

_ANNOTATIONS = ("read_only", "destructive", "idempotent", "open_world")
_EXTENSION = ("x-", "x_")
"""The beginning of keys for other programs."""
_SCHEMA_WORDS = (
    *("type", "properties", "required", "additionalProperties", "description", "title", "default"),
    *("enum", "const", "items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern"),
    *("minLength", "maxLength", "format", "anyOf", "oneOf", "allOf", "not", "if", "then", "else"),
    *("patternProperties", "propertyNames", "minProperties", "maxProperties", "examples"),
    *("dependentRequired", "dependentSchemas", "$ref", "$defs", "definitions", "$schema", "$id"),
    *("$comment", "$anchor", "deprecated", "readOnly", "writeOnly", "contentMediaType"),
    *("contentEncoding", "minContains", "maxContains", "unevaluatedProperties"),
    *("unevaluatedItems", "additionalItems", "$dynamicRef", "$dynamicAnchor", "$vocabulary"),
)
_NAMED_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_SCHEMA_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SCHEMAS = ("items", "additionalProperties", "not", "if", "then", "else", "contains")
_MAX_DEPTH = 16


def unknown_names(file: ItemFile) -> Iterator[str]:
    """Top-level keys, or dunder names in Python, that Rye does not know.

    The file must have metadata that can be read.
    """
    kind = format_of(file.path)
    text = file.content.decode()
    if kind.kind == "python":
        yield from _unknown_dunders(text, file.path)
        return
    if kind.kind == "yaml":
        from rye.items.strict_yaml import load_mapping

        values, lines = load_mapping(text, file.path)
    else:
        from rye.items.comment_block import load_block

        values, lines = load_block(text, kind.comment, file.path)
    for key in values:
        if key not in NAMES and not key.startswith(_EXTENSION):
            yield _unknown(f"{file.path}:{lines.get(key, 1)}", "key", key, NAMES)


def unknown_annotations(element: ChainElement) -> Iterator[str]:
    """Hints for agents that do not exist."""
    for key in element.metadata.annotations:
        if key not in _ANNOTATIONS:
            yield _unknown(str(element.path), "key", f"annotations.{key}", _ANNOTATIONS)


def unknown_schema_words(element: ChainElement) -> Iterator[str]:
    """Words of the schema that are one letter away from one that exists.

    Others may be for another program.
    """
    for place, word in _words(element.metadata.config_schema, "config_schema", 0):
        meant = one_typo_away(word, _SCHEMA_WORDS)
        if word not in _SCHEMA_WORDS and meant is not None:
            yield f"{element.path}: unknown key '{place}' (did you mean '{meant}'?); {FIX}"


def unknown_settings(merged: MergedConfig, chain: Sequence[ChainElement]) -> Iterator[str]:
    """Keys of ``config`` that neither the primitive nor a template of the chain reads."""
    mentioned = set(re.findall(r"\{([A-Za-z_]\w*)\}", " ".join(texts_in(merged.templates))))
    schema = (chain[-1].metadata.config_schema or {}).get("properties")
    shapes = schema if isinstance(schema, Mapping) else {}
    for element in chain[:-1]:
        if element.space == "system":
            continue
        for key, value in element.metadata.config.items():
            if key not in merged.settings and key not in mentioned:
                yield _unknown(str(element.path), "setting", f"config.{key}", merged.settings)
            yield from _inner(element, f"config.{key}", value, shapes.get(key))


def _inner(element: ChainElement, place: str, value: Any, shape: Any) -> Iterator[str]:
    if not isinstance(value, Mapping) or not isinstance(shape, Mapping):
        return
    known = shape.get("properties")
    if isinstance(known, Mapping) and shape.get("additionalProperties") is False:
        for key in value:
            if key not in known:
                yield _unknown(str(element.path), "setting", f"{place}.{key}", known)


def _unknown(where: str, what: str, place: str, known: Iterable[str]) -> str:
    name = place.rpartition(".")[2]
    names = sorted(known)
    meant = one_typo_away(name, names) or next(iter(closest(name, names)), None)
    if meant is not None:
        return f"{where}: unknown {what} '{place}' (did you mean '{meant}'?); {FIX}"
    return f"{where}: unknown {what} '{place}', which nothing reads; remove it and sign again"


def _unknown_dunders(text: str, path: Path) -> Iterator[str]:
    known = [name for name in PYTHON_NAMES if name.startswith("__")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        for target in targets:
            name = target.id if isinstance(target, ast.Name) else ""
            if name not in known and name[:2] == "__" == name[-2:] and len(name) > 4:
                meant = next(iter(closest(name, known, cutoff=0.75)), None)
                if meant is not None:
                    yield (
                        f"{path}:{statement.lineno}: unknown name '{name}' "
                        f"(did you mean '{meant}'?); {FIX}"
                    )


def _words(schema: Any, place: str, depth: int) -> Iterator[tuple[str, str]]:
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return
    for word, value in schema.items():
        inside = f"{place}.{word}"
        yield inside, word
        if word in _NAMED_SCHEMAS and isinstance(value, Mapping):
            for name, part in value.items():
                yield from _words(part, f"{inside}.{name}", depth + 1)
        elif word in _SCHEMAS:
            yield from _words(value, inside, depth + 1)
        elif word in _SCHEMA_LISTS and isinstance(value, list):
            for at, part in enumerate(value):
                yield from _words(part, f"{inside}[{at}]", depth + 1)
