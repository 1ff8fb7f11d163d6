"""Write metadata into a script: assignments in Python, a comment block in everything else."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

_PYTHON = {
    "executor_id": "__executor_id__",
    "description": "__tool_description__",
    "config": "CONFIG",
    "config_schema": "CONFIG_SCHEMA",
    "env_config": "ENV_CONFIG",
}
_WIDTH = 98
_LINE = 76


def with_python_header(text: str, metadata: Mapping[str, Any]) -> str:
    """Insert the assignments after the shebang, the docstring and ``__future__`` imports."""
    lines = text.splitlines(keepends=True)
    at = _end_of_start(text)
    header = "".join([f"{line}\n" for line in _assignments(metadata)])
    before = "" if at == 0 or not lines[at - 1].strip() else "\n"
    after = "" if at >= len(lines) or not lines[at].strip() else "\n"
    return "".join([*lines[:at], before, header, after, *lines[at:]])


def with_block(text: str, comment: str, metadata: Mapping[str, Any]) -> str:
    """Insert a comment block after the shebang."""
    lines = text.splitlines(keepends=True)
    at = 1 if lines and lines[0].startswith("#!") else 0
    body = [f"{comment} {line}".rstrip() for line in _toml(metadata)]
    block = [f"{comment} /// rye", *body, f"{comment} ///"]
    return "".join([*lines[:at], *[f"{line}\n" for line in block], *lines[at:]])


def as_yaml(metadata: Mapping[str, Any]) -> str:
    """The metadata as a YAML file."""
    import yaml

    return yaml.safe_dump(dict(metadata), sort_keys=False, allow_unicode=True, width=_WIDTH)


def with_shebang(text: str, line: str) -> str:
    """Add a first line for the interpreter, unless there is one."""
    return text if text.startswith("#!") else f"{line}\n{text}"


def _end_of_start(text: str) -> int:
    """The number of lines before the first statement that is neither a docstring nor a future."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    end = 0
    for index, statement in enumerate(tree.body):
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not ((index == 0 and is_text) or future):
            break
        end = statement.end_lineno or end
    if end:
        return end
    # Comments at the start belong together: a shebang, a coding line, a PEP 723 block.
    lines = text.splitlines()
    while end < len(lines) and (lines[end].startswith("#") or not lines[end].strip()):
        end += 1
    return end


def _assignments(metadata: Mapping[str, Any]) -> Iterator[str]:
    for key, value in metadata.items():
        text = f"{_PYTHON[key]} = {_python(value)}"
        yield from text.splitlines()


def _python(value: Any, indent: str = "") -> str:
    """A literal with one entry per line where it does not fit on one."""
    if not isinstance(value, Mapping | list):
        return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
    inner = f"{indent}    "
    if isinstance(value, Mapping):
        parts = [f"{json.dumps(key)}: {_python(one, inner)}" for key, one in value.items()]
        opening, closing = "{}"
    else:
        parts = [_python(one, inner) for one in value]
        opening, closing = "[]"
    flat = f"{opening}{', '.join(parts)}{closing}"
    if "\n" not in flat and len(indent) + len(flat) <= _LINE:
        return flat
    lines = "".join([f"{inner}{part},\n" for part in parts])
    return f"{opening}\n{lines}{indent}{closing}"


def _toml(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Plain keys first, then a table for each mapping, with its inner values on one line each."""
    tables = {key: value for key, value in metadata.items() if isinstance(value, Mapping)}
    for key, value in metadata.items():
        if key not in tables:
            yield f"{_key(key)} = {_value(value)}"
    for key, value in tables.items():
        yield ""
        inner = {name: one for name, one in value.items() if name == "properties"}
        yield f"[{_key(key)}]"
        for name, one in value.items():
            if name not in inner:
                yield f"{_key(name)} = {_value(one)}"
        for name, one in inner.items():
            yield ""
            yield f"[{_key(key)}.{_key(name)}]"
            for each, schema in one.items():
                yield f"{_key(each)} = {_value(schema)}"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        entries = [f"{_key(key)} = {_value(one)}" for key, one in value.items() if one is not None]
        return f"{{ {', '.join(entries)} }}" if entries else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join([_value(one) for one in value if one is not None])}]"
    return json.dumps(value, ensure_ascii=False)
