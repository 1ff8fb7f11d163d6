"""The options of a Python script that uses argparse, click or typer, read from its syntax tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rye.authoring.adopt.proposal import Findings, Parameter
from rye.items.annotations import Annotations, description_in, last_name
from rye.items.docstrings import read_docstring
from rye.items.python_signature import Function, aliases_of, literal_or

_MISSING: Any = object()
_TYPES = {"int": "integer", "float": "number", "str": "string", "bool": "boolean"}
_CLICK_TYPES = {"INT": "integer", "FLOAT": "number", "STRING": "string", "BOOL": "boolean"}
_FLAGS = ("store_true", "store_false", "store_const", "count")


def argparse_findings(tree: ast.Module) -> Findings | None:
    """The options of ``add_argument`` calls; ``None`` if there are none."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    found = [_argparse(call) for call in calls if _takes_a_value(call)]
    if not any(_method(call) in ("ArgumentParser", "add_argument") for call in calls):
        return None
    if any(_method(call) == "add_subparsers" for call in calls):
        note = "it has subcommands, which are passed as args"
        return Findings(has_options=True, open_ended=True, notes=(note,))
    described = [_text(_keyword(call, "description")) for call in calls]
    return Findings(
        description=next(filter(None, described), ""),
        parameters=tuple([one for one in found if one is not None]),
        has_options=True,
        open_ended=None in found,
    )


def click_findings(tree: ast.Module) -> Findings | None:
    """The options of the only function with ``@click.command``; ``None`` if there is none."""
    commands = [node for node in tree.body if isinstance(node, Function) and _is_click(node)]
    if not commands:
        return None
    if len(commands) > 1 or any("group" in _decorators(one) for one in commands):
        note = "it has subcommands, which are passed as args"
        return Findings(has_options=True, open_ended=True, notes=(note,))
    (function,) = commands
    calls = [one for one in function.decorator_list if isinstance(one, ast.Call)]
    found = [_click(one) for one in calls if last_name(one.func) in ("option", "argument")]
    return Findings(
        description=read_docstring(ast.get_docstring(function, clean=False)).summary,
        parameters=tuple([one for one in found if one is not None]),
        has_options=True,
        open_ended=None in found,
    )


def typer_findings(tree: ast.Module) -> Findings | None:
    """The signature of the function that typer runs; ``None`` without typer."""
    functions = {node.name: node for node in tree.body if isinstance(node, Function)}
    called = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if not _imports(tree, "typer"):
        return None
    names = [
        one.args[0].id
        for one in called
        if _method(one) == "run" and one.args and isinstance(one.args[0], ast.Name)
    ]
    names += [name for name, one in functions.items() if "command" in _decorators(one)]
    known = [functions[name] for name in dict.fromkeys(names) if name in functions]
    if len(known) != 1:
        note = "it has subcommands, which are passed as args"
        return Findings(has_options=True, open_ended=True, notes=(note,) if known else ())
    (function,) = known
    documented = read_docstring(ast.get_docstring(function, clean=False))
    return Findings(
        description=documented.summary,
        parameters=tuple(_typer(function, documented.parameters, Annotations(aliases_of(tree)))),
        has_options=True,
    )


def _takes_a_value(call: ast.Call) -> bool:
    other = _text(_keyword(call, "action")) in ("help", "version")
    return _method(call) == "add_argument" and not other


def _argparse(call: ast.Call) -> Parameter | None:
    names = _texts(call)
    if not names or len(names) != len(call.args):
        return None
    option = next((name for name in names if name.startswith("--")), "")
    option = option or next((name for name in names if name.startswith("-")), "")
    name = _text(_keyword(call, "dest")) or _plain_name(option or names[0])
    action = _text(_keyword(call, "action"))
    flag = action in _FLAGS
    many = literal_or(_keyword(call, "nargs"), None) in ("*", "+") or action == "append"
    schema = {"type": "boolean"} if flag else _value(call, _TYPES)
    if many:
        schema = {"type": "array", "items": schema}
    schema |= _described(call)
    optional = literal_or(_keyword(call, "nargs"), None) in ("?", "*")
    required = not option and not optional
    required = required or literal_or(_keyword(call, "required"), False) is True
    return Parameter(name, schema, required, option, flag, each=action == "append")


def _click(call: ast.Call) -> Parameter | None:
    names = [name.partition("/")[0] for name in _texts(call)]
    if not names:
        return None
    is_option = last_name(call.func) == "option"
    option = next((name for name in names if name.startswith("--")), "")
    option = option or next((name for name in names if name.startswith("-")), "")
    plain = [name for name in names if not name.startswith("-")]
    name = plain[0] if plain else _plain_name(option)
    flag = literal_or(_keyword(call, "is_flag"), False) is True
    flag = flag or isinstance(literal_or(_keyword(call, "default"), None), bool)
    schema = {"type": "boolean"} if flag else _value(call, _TYPES | _CLICK_TYPES)
    each = literal_or(_keyword(call, "multiple"), False) is True
    many = each or literal_or(_keyword(call, "nargs"), 1) == -1
    if many:
        schema = {"type": "array", "items": schema}
    schema |= _described(call)
    needed = literal_or(_keyword(call, "required"), not is_option) is True and not many
    return Parameter(name.lower(), schema, needed, option if is_option else "", flag, each=each)


def _typer(
    function: Function, documented: Mapping[str, str], annotations: Annotations
) -> Iterator[Parameter]:
    given = function.args
    defaults: list[ast.expr | None] = [None] * (len(given.args) - len(given.defaults))
    defaults += given.defaults
    pairs = [*zip(given.args, defaults, strict=True)]
    pairs += zip(given.kwonlyargs, given.kw_defaults, strict=True)
    for argument, given_default in pairs:
        default = given_default
        marks = [one for one in _metadata(argument.annotation) if isinstance(one, ast.Call)]
        marks += [default] if isinstance(default, ast.Call) else []
        kinds = {last_name(one.func) for one in marks}
        if isinstance(default, ast.Call):
            inner = default.args[0] if default.args else _keyword(default, "default")
            is_open = isinstance(inner, ast.Constant) and inner.value is Ellipsis
            default = None if inner is None or is_open else inner
        schema = annotations.schema(argument.annotation) or {"type": "string"}
        schema.pop("description", None)
        described = description_in(marks) or documented.get(argument.arg, "")
        value = literal_or(default, _MISSING) if default is not None else _MISSING
        positional = "Argument" in kinds or (default is None and "Option" not in kinds)
        flag = schema.get("type") == "boolean"
        if described:
            schema["description"] = described
        if value is not _MISSING and value is not None:
            schema["default"] = value
        option = "" if positional and not flag else f"--{argument.arg.replace('_', '-')}"
        required = default is None and not flag
        yield Parameter(argument.arg, schema, required, option, flag, schema.get("type") == "array")


def _metadata(annotation: ast.expr | None) -> list[ast.expr]:
    """The further parts of ``Annotated[type, …]``."""
    if not isinstance(annotation, ast.Subscript) or last_name(annotation.value) != "Annotated":
        return []
    return annotation.slice.elts[1:] if isinstance(annotation.slice, ast.Tuple) else []


def _value(call: ast.Call, types: Mapping[str, str]) -> dict[str, Any]:
    kind = _keyword(call, "type")
    choices = _keyword(call, "choices")
    if isinstance(kind, ast.Call) and last_name(kind.func) == "Choice" and kind.args:
        choices = kind.args[0]
    listed = literal_or(choices, None)
    if isinstance(listed, list) and listed:
        return {"enum": listed}
    name = last_name(kind) if kind is not None and not isinstance(kind, ast.Call) else ""
    default = literal_or(_keyword(call, "default"), None)
    if not name and type(default) in (int, float):
        name = type(default).__name__
    return {"type": types.get(name, "string")}


def _described(call: ast.Call) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if text := _text(_keyword(call, "help")):
        found["description"] = " ".join(text.split())
    default = literal_or(_keyword(call, "default"), None)
    if default is not None:
        found["default"] = default
    return found


def _decorators(function: Function) -> set[str]:
    calls = [one.func if isinstance(one, ast.Call) else one for one in function.decorator_list]
    return {last_name(one) for one in calls}


def _is_click(function: Function) -> bool:
    for one in function.decorator_list:
        node = one.func if isinstance(one, ast.Call) else one
        if isinstance(node, ast.Attribute) and last_name(node.value) == "click":
            return True
    return False


def _imports(tree: ast.Module, name: str) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(one.name == name for one in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and node.module == name:
            return True
    return False


def _method(call: ast.Call) -> str:
    return last_name(call.func)


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((one.value for one in call.keywords if one.arg == name), None)


def _texts(call: ast.Call) -> list[str]:
    return [text for one in call.args if (text := _text(one))]


def _text(node: ast.expr | None) -> str:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) else ""


def _plain_name(option: str) -> str:
    return re.sub(r"\W", "_", option.lstrip("-")) or "value"
