"""Render the command line and stdin of a job from templates."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from lilux.record import Record, field
from lilux.templating import whole_placeholder

from rye.errors import ArgumentTooLongError, ConfigTemplateError
from rye.executor.config.inert import fill, fill_path, has_callers_value, place_after
from rye.executor.config.templates import Names, as_text, render_value, texts_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The limit of Linux for one argument or variable, including the final NUL.
MAX_ARGUMENT = 128 * 1024
STDIN_RUNTIME = "rye/core/runtimes/python_runtime"
_TOO_LONG_HINT = (
    f"send the parameters on stdin: use the executor {STDIN_RUNTIME}, "
    'or set input_data: "{params_json}" in the config of the runtime'
)


class CommandLine(Record, frozen=True, kw_only=True):
    """A rendered command line; it may contain secrets."""

    command: str
    args: list[str] = field(repr=False)
    input_data: str | None = field(repr=False)


def render_command_line(config: Mapping[str, Any], names: Names) -> CommandLine:
    """Render ``command``, ``args`` and ``input_data``.

    A lone ``{name}`` in ``args`` becomes one argument for each element if its value is a list, and
    no argument if it is ``None``. Raises :class:`ConfigTemplateError`, which names the place, and
    :class:`ParameterError`; see :mod:`rye.executor.config.inert` for the values that are refused.
    """
    command = _command(config.get("command"), names)
    return CommandLine(
        command=command,
        args=_arguments(config.get("args"), names, command),
        input_data=_input(config.get("input_data"), names),
    )


def render_env(template: Any, names: Names) -> Any:
    """Render ``env``; a caller's value stands in a variable as in an argument.

    Raises like :func:`render_command_line`.
    """
    where = names.place("env")
    if not isinstance(template, Mapping):
        return render_value(template, names, where)
    return {key: _variable(one, names, f"{where}.{key}") for key, one in template.items()}


def render_path(template: Any, names: Names, where: str) -> Any:
    """Render a setting that is a path. Raises like :func:`render_command_line`."""
    if isinstance(template, str):
        return fill_path(template, names, where)
    return render_value(template, names, where)


def _variable(template: Any, names: Names, where: str) -> Any:
    if any(has_callers_value(text, names) for text in texts_in(template)):
        # A mapping or a list becomes JSON, and its texts follow the rule too.
        is_text = isinstance(template, str)
        return (
            fill(template, names, "variable", where)
            if is_text
            else _structure(template, names, where)
        )
    return render_value(template, names, where)


def check_lengths(argv: Sequence[str], env: Mapping[str, str], where: str) -> None:
    """Raise :class:`ArgumentTooLongError` if the system would refuse to start the command.

    The message starts with ``where``.
    """
    total = sum(map(len, argv)) + sum(map(len, env)) + sum(map(len, env.values()))
    if total * 4 < MAX_ARGUMENT:  # a character takes at most four bytes
        return
    if sys.platform.startswith("linux"):
        _check_arguments(argv, where)
        _check_variables(env, where)
    limit = os.sysconf("SC_ARG_MAX")
    # Each takes a NUL and a pointer; a variable also takes an '='.
    size = sum(_size(word) + 9 for word in argv)
    size += sum(_size(name) + _size(value) + 10 for name, value in env.items())
    if size >= limit:
        raise ArgumentTooLongError(
            f"{where}: arguments and environment take {size} bytes; this system allows {limit}",
            hint=_TOO_LONG_HINT,
        )


def _command(template: Any, names: Names) -> str:
    where = names.place("command")
    command = fill(template, names, "command", where) if isinstance(template, str) else template
    if command is not None and not isinstance(command, str):
        raise ConfigTemplateError(
            f"{where}: expected a text, got {type(command).__name__}", hint="name the program"
        )
    return as_text(command or "", where)


def _arguments(template: Any, names: Names, command: str) -> list[str]:
    where = names.place("args")
    if isinstance(template, str):
        # A placeholder in place of the list is treated as its only element.
        template = [template] if whole_placeholder(template) else template
    if template is None:
        return []
    if not isinstance(template, list | tuple):
        raise ConfigTemplateError(
            f"{where}: expected a list, got {type(template).__name__}",
            hint="write each argument as one element",
        )
    arguments: list[str] = []
    for index, element in enumerate(template):
        _add(element, arguments, names, command, f"{where}[{index}]")
    return arguments


def _add(template: Any, arguments: list[str], names: Names, command: str, where: str) -> None:
    if isinstance(template, list | tuple):
        # An element that referred to a list in the config.
        for one in template:
            _add(one, arguments, names, command, where)
    elif not isinstance(template, str):
        value = _structure(template, names, where)
        arguments += [] if value is None else [as_text(value, where)]
    else:
        value = fill(template, names, place_after(arguments, command), where)
        values = value if isinstance(value, list | tuple) else [value]
        arguments += [as_text(one, where) for one in values if one is not None]


def _structure(template: Any, names: Names, where: str) -> Any:
    """Fill in a mapping or a list, which becomes JSON: its texts follow the rule of arguments.

    A program may take a list in it for a command line, as ``mcp_stdio_runtime`` does.
    """
    if isinstance(template, str):
        return fill(template, names, "argument", where)
    if isinstance(template, Mapping):
        return {key: _structure(one, names, f"{where}.{key}") for key, one in template.items()}
    if not isinstance(template, list | tuple):
        return template
    filled: list[Any] = []
    for index, one in enumerate(template):
        at = f"{where}[{index}]"
        is_text = isinstance(one, str)
        filled.append(
            fill(one, names, place_after(filled, ""), at) if is_text else _structure(one, names, at)
        )
    return filled


def _input(template: Any, names: Names) -> str | None:
    where = names.place("input_data")
    is_text = isinstance(template, str)
    value = fill(template, names, "stdin", where) if is_text else _structure(template, names, where)
    if value is None:
        return None
    # Unlike an argument, stdin may contain NUL.
    without_nul = value.replace("\0", "") if isinstance(value, str) else value
    text = as_text(without_nul, where)
    return value if isinstance(value, str) else text


def _check_arguments(argv: Sequence[str], where: str) -> None:
    for index, word in enumerate(argv):
        if _size(word) >= MAX_ARGUMENT:
            raise ArgumentTooLongError(
                f"{where}: argument {index} takes {_size(word)} bytes; this system allows "
                f"{MAX_ARGUMENT - 1}",
                hint=_TOO_LONG_HINT,
            )


def _check_variables(env: Mapping[str, str], where: str) -> None:
    for name, value in env.items():
        if _size(name) + _size(value) + 1 >= MAX_ARGUMENT:
            raise ArgumentTooLongError(
                f"{where}: the variable {name} takes {_size(value)} bytes; this system allows "
                f"{MAX_ARGUMENT - 2 - _size(name)}",
                hint="put the value into a file, or send it on stdin",
            )


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))
