"""Read the metadata of a Python file from its syntax tree; the file is never imported."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rye.errors import ItemFormatError
from rye.items.declarations import MAX_DEPTH, Declared, RefusedError, place_below
from rye.items.python_signature import CALLS_MAIN, description_from, schema_from
from rye.suggestions import fold, one_typo_away

NAMES: Mapping[str, str] = {
    "__version__": "version",
    "__tool_type__": "tool_type",
    "__executor_id__": "executor_id",
    "__category__": "category",
    "__tool_description__": "description",
    # Not STDIN, which scripts use for other things.
    "__stdin__": "stdin",
    "__needs_user__": "needs_user",
    "CONFIG_SCHEMA": "config_schema",
    "ENV_CONFIG": "env_config",
    "CONFIG": "config",
    "ANCHOR": "anchor",
    "VERIFY_DEPS": "verify_deps",
    "INPUTS": "inputs",
    "OUTPUTS": "outputs",
    "CHILD_CONSTRAINTS": "child_constraints",
    "PINS": "pins",
    "FILES": "files",
    "EXAMPLES": "examples",
    "ANNOTATIONS": "annotations",
    "PERMISSIONS": "permissions",
    "WARM": "warm",
}
# Constants of one word, such as OUTPUT, are too common in scripts to be treated as typos.
_GUARDED = tuple(name for name in NAMES if "_" in name)

_HINT = "correct it and sign again"
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def declarations_of(text: str, path: Path) -> dict[str, Declared]:
    """Return the top-level declarations of the module by their lower-case names.

    A tool without a description gets that of its docstring. A tool without a schema whose ``main``
    is called with the parameters gets that of the signature.

    Raises :class:`ItemFormatError` if the file is not Python, or if a metadata name is not assigned
    exactly once, at the top level, to a literal.
    """
    try:
        tree = _parse(text)
    except SyntaxError as error:
        raise ItemFormatError(
            path, f"is not Python ({error.msg})", line=error.lineno, hint=_HINT
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:
        reason = str(error).splitlines()[0] if str(error) else "nested too deeply"
        raise ItemFormatError(path, f"is not Python ({reason})", hint=_HINT) from None
    try:
        return _completed(_collect(tree.body), tree)
    except RefusedError as fault:
        raise ItemFormatError(path, fault.reason, line=fault.line, hint=_HINT) from None


def _completed(found: dict[str, Declared], tree: ast.Module) -> dict[str, Declared]:
    executor = found.get("executor_id")
    if executor is None or not isinstance(executor.value, str):
        return found
    if "description" not in found and (text := description_from(tree)):
        found["description"] = Declared(value=text, line=None, name="docstring")
    if "config_schema" not in found and executor.value.rpartition("/")[2] == CALLS_MAIN:
        schema = schema_from(tree)
        if schema is not None:
            found["config_schema"] = Declared(value=schema, line=None, name="def main")
    return found


def _parse(text: str) -> ast.Module:
    # Python prints these warnings when the file runs. Here they would appear between the lines of
    # `rye list`, or be raised where the caller turns warnings into errors.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _collect(body: Sequence[ast.stmt]) -> dict[str, Declared]:
    found: dict[str, Declared] = {}
    for statement in body:
        names = _names_declared(statement)
        if names is None:
            for name, line in _names_bound(statement):
                if name in NAMES:
                    raise RefusedError(f"{name} is not a plain assignment at the top level", line)
            continue
        for name in names:
            field = NAMES.get(name)
            if field is None:
                _refuse_typo(name, statement.lineno)
                continue
            if field in found:
                raise RefusedError(
                    f"{name} is assigned twice, first at line {found[field].line}",
                    statement.lineno,
                )
            value = _literal(statement.value, name, 0)  # type: ignore[attr-defined]  # see names
            found[field] = Declared(value=value, line=statement.lineno, name=name)
    return found


def _names_declared(statement: ast.stmt) -> list[str] | None:
    """The names that a plain assignment binds; ``None`` for any other statement."""
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    else:
        return None
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return names if len(names) == len(targets) else None


def _names_bound(statement: ast.stmt) -> Iterator[tuple[str, int]]:
    """Every module-level name that the statement binds, deletes or changes by index."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.AnnAssign) and node.value is None:
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                yield alias.asname or alias.name, node.lineno
        elif isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                yield node.id, node.lineno
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            if isinstance(node.value, ast.Name):
                yield node.value.id, node.lineno
        elif isinstance(node, _SCOPES):
            yield node.name, node.lineno
            continue
        elif isinstance(node, ast.Lambda):
            continue
        pending.extend(ast.iter_child_nodes(node))


def _refuse_typo(name: str, line: int) -> None:
    if "_" not in name or not (name.isupper() or (name[:2] == "__" and name[-2:] == "__")):
        return
    meant = one_typo_away(name, _GUARDED)
    if fold(name) == "description":
        meant = "__tool_description__"
    if meant is not None:
        raise RefusedError(f"unknown name '{name}' (did you mean '{meant}'?)", line)


def _literal(node: ast.expr, where: str, depth: int) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if depth >= MAX_DEPTH:
        raise RefusedError(f"more than {MAX_DEPTH} levels in '{where[:80]}'", node.lineno)
    if isinstance(node, (ast.List, ast.Tuple)):
        return [
            _literal(entry, place_below(where, f"[{index}]"), depth + 1)
            for index, entry in enumerate(node.elts)
        ]
    if isinstance(node, ast.Dict):
        return _mapping(node, where, depth)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = node.operand.value if isinstance(node.operand, ast.Constant) else None
        if isinstance(number, (int, float)) and not isinstance(number, bool):
            return -number
    raise RefusedError(f"expected a literal in '{where}'", node.lineno)


def _mapping(node: ast.Dict, where: str, depth: int) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            line = value.lineno if key is None else key.lineno
            raise RefusedError(f"expected text as a key in '{where}'", line)
        if key.value in values:
            raise RefusedError(f"has the key '{key.value}' twice in '{where}'", key.lineno)
        values[key.value] = _literal(value, place_below(where, f".{key.value}"), depth + 1)
    return values
