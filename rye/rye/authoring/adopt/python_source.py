"""What a Python file is: a function for ``python_runtime``, or a script with its options."""

from __future__ import annotations

import ast
import re
import warnings
from pathlib import Path
from typing import NamedTuple

from rye.authoring.adopt.comments import first_comment
from rye.authoring.adopt.proposal import Findings, Parameter
from rye.authoring.adopt.python_options import (
    argparse_findings,
    click_findings,
    typer_findings,
)
from rye.errors import ItemFormatError
from rye.items.python_signature import Function, description_from, main_function

_PEP_723 = r"(?m)^# /// script\s*$"


class PythonFile(NamedTuple):
    """The kind of a Python file."""

    is_function: bool
    """True if ``main`` can be called with the parameters; its signature is then the schema."""
    has_dependencies: bool
    """True for a PEP 723 block, which uv reads."""
    findings: Findings


def read_python(text: str, path: Path) -> PythonFile:
    """Read the file. Raises :class:`ItemFormatError` if it is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        reason = error.msg if isinstance(error, SyntaxError) else "it cannot be parsed"
        raise ItemFormatError(
            path, f"is not Python ({reason})", line=line, hint="correct it first"
        ) from None
    has_dependencies = re.search(_PEP_723, text) is not None
    options = typer_findings(tree) or click_findings(tree) or argparse_findings(tree)
    about = description_from(tree) or first_comment(text, "#")
    if options is not None:
        found = options._replace(description=options.description or about)
        return PythonFile(False, has_dependencies, found)
    positions = _positions(tree)
    function = main_function(tree)
    if function is not None and not has_dependencies and not positions and _is_called(function):
        return PythonFile(True, False, Findings(about))
    return PythonFile(False, has_dependencies, Findings(about, positions))


def _is_called(function: Function) -> bool:
    """True if the function takes parameters or returns a result; otherwise it is a script."""
    given = function.args
    if given.args or given.kwonlyargs or given.kwarg:
        return True
    returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
    values = [one.value for one in returns if one.value is not None]
    return any(not (isinstance(one, ast.Constant) and type(one.value) is int) for one in values)


def _positions(tree: ast.Module) -> tuple[Parameter, ...]:
    """``sys.argv[1]`` as ``arg1``; all arguments if the list is used in another way."""
    used: list[int] = []
    whole = False
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Attribute) and node.attr == "argv"):
            continue
        parent = parents.get(node)
        index = parent.slice if isinstance(parent, ast.Subscript) else None
        if isinstance(index, ast.Constant) and isinstance(index.value, int):
            used += [index.value] if 0 < index.value < 20 else []
        elif isinstance(index, ast.Slice):
            whole = True
    if used and not whole:
        numbers = range(1, max(used) + 1)
        return tuple([Parameter(f"arg{one}", {"type": "string"}, one == 1) for one in numbers])
    if not whole:
        return ()
    schema = {"type": "array", "items": {"type": "string"}, "default": []}
    return (Parameter("args", schema | {"description": "The arguments"}),)
