"""The schema and the description of a Python tool, from ``def main(…)`` and the docstrings.

``main`` is called with the parameters by name, so its signature says what they are. The syntax tree
is read; nothing is evaluated.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from typing import Any

from rye.items.annotations import Annotations, either
from rye.items.declarations import RefusedError
from rye.items.docstrings import Docstring, read_docstring

CALLS_MAIN = "python_runtime"
"""The runtime that calls ``main(**params)``, by the last part of its id."""

_MAX_DEFAULT_DEPTH = 8
_MISSING: Any = object()
Function = ast.FunctionDef | ast.AsyncFunctionDef


def description_from(tree: ast.Module) -> str:
    """The first paragraph of the docstring of the function that is called, or of the module."""
    called = [main_function(tree), *_executes(tree)]
    texts = [ast.get_docstring(one, clean=False) for one in called if one is not None]
    texts.append(ast.get_docstring(tree, clean=False))
    return next(filter(None, [read_docstring(text).summary for text in texts]), "")


def schema_from(tree: ast.Module) -> dict[str, Any] | None:
    """The schema of the parameters of ``main``; ``None`` if there is no such function.

    Raises :class:`RefusedError` for a parameter that cannot be passed by name.
    """
    function = main_function(tree)
    if function is None:
        return None
    annotations = Annotations(aliases_of(tree))
    documented = read_docstring(ast.get_docstring(function, clean=False))
    properties: dict[str, Any] = {}
    required = []
    for argument, default in _arguments(function):
        properties[argument.arg] = _property(argument, default, annotations, documented)
        if default is None:
            required.append(argument.arg)
    open_ended = function.args.kwarg is not None
    if open_ended and not properties:
        return None
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if not open_ended:
        schema["additionalProperties"] = False
    return schema


def main_function(tree: ast.Module) -> Function | None:
    """The function ``main`` at the top level, if its signature can be trusted to be its own.

    A decorator, or a second binding of the name, may have replaced it.
    """
    found: Function | None = None
    for statement in tree.body:
        if isinstance(statement, Function) and statement.name == "main":
            found = None if statement.decorator_list else statement
        elif found is not None and _binds_main(statement):
            return None
    return found


def _executes(tree: ast.Module) -> list[Function]:
    found = [one for one in tree.body if isinstance(one, Function)]
    return [one for one in found if one.name == "execute"]


def aliases_of(tree: ast.Module) -> Mapping[str, ast.expr]:
    """The plain assignments at the top level: ``Units = Literal["c", "f"]``."""
    found = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    found[target.id] = statement.value
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            if statement.value is not None:
                found[statement.target.id] = statement.value
        elif type(statement).__name__ == "TypeAlias":  # Python 3.12: type Units = …
            found[statement.name.id] = statement.value  # type: ignore[attr-defined]  # see above
    return found


def literal_or(node: ast.expr | None, missing: Any, depth: int = 0) -> Any:
    """The value of a literal that JSON can express, or ``missing``."""
    if isinstance(node, ast.Constant):
        value = node.value
        fits = value is None or isinstance(value, str | bool | int)
        return value if fits or (isinstance(value, float) and math.isfinite(value)) else missing
    if depth > _MAX_DEFAULT_DEPTH:
        return missing
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = literal_or(node.operand, missing, depth + 1)
        return -number if type(number) in (int, float) else missing
    values: list[Any]
    if isinstance(node, ast.List | ast.Tuple):
        values = [literal_or(each, _MISSING, depth + 1) for each in node.elts]
        return missing if any(one is _MISSING for one in values) else values
    if isinstance(node, ast.Dict):
        keys = [literal_or(each, _MISSING, depth + 1) for each in node.keys]
        values = [literal_or(each, _MISSING, depth + 1) for each in node.values]
        usable = all(isinstance(key, str) for key in keys)
        if usable and not any(one is _MISSING for one in values):
            return dict(zip(keys, values, strict=True))
    return missing


def _arguments(function: Function) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    missing = len(positional) - len(given.defaults)
    defaults = [None] * missing + list(given.defaults)
    for index, (argument, default) in enumerate(zip(positional, defaults, strict=True)):
        if index >= len(given.posonlyargs):
            yield argument, default
        elif default is None:
            raise RefusedError(
                f"main takes '{argument.arg}' only by position, but parameters have names; "
                "remove the '/'",
                argument.lineno,
            )
    yield from zip(given.kwonlyargs, given.kw_defaults, strict=True)


def _property(
    argument: ast.arg, default: ast.expr | None, annotations: Annotations, documented: Docstring
) -> dict[str, Any]:
    schema = annotations.schema(argument.annotation)
    described = schema.pop("description", "") or documented.parameters.get(argument.arg, "")
    value = literal_or(default, _MISSING) if default is not None else _MISSING
    if value is None and schema:
        schema = _nullable(schema)  # `days: int = None` means an optional number
    if described:
        schema["description"] = described
    if value is not _MISSING:
        schema["default"] = value
    return schema


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    kinds = schema.get("type")
    if kinds == "null" or (isinstance(kinds, list) and "null" in kinds):
        return schema
    if "enum" in schema and None in schema["enum"]:
        return schema
    if {"type": "null"} in schema.get("anyOf", ()):
        return schema
    return either([schema, {"type": "null"}])


def _binds_main(statement: ast.stmt) -> bool:
    """True if the statement, at the top level, may give ``main`` another value."""
    if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return statement.name == "main"
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and node.id == "main" and not isinstance(node.ctx, ast.Load):
            return True
        names = node.names if isinstance(node, ast.Import | ast.ImportFrom) else []
        if any((one.asname or one.name) == "main" for one in names):
            return True
    return False
