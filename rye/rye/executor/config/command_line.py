"""Render the command line and stdin of a job from templates."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from lilux.record import Record, field
from lilux.templating import whole_placeholder

from rye.errors import ArgumentTooLongError, ConfigTemplateError
from rye.executor.config.shells import ShellText, shell_texts
from rye.executor.config.templates import Names, as_text, embedded, render_script, render_value

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
    no argument if it is ``None``. A value inside a text that a shell will parse is quoted; a lone
    placeholder is not. Raises :class:`ConfigTemplateError`, which names the place.
    """
    words = [_command(config.get("command"), names)]
    words += _arguments(config.get("args"), names)
    argv = [text for _, text, _ in words]
    script_on_stdin: ShellText | None = None
    for shell in shell_texts(argv):
        if shell.place == "stdin":
            script_on_stdin = shell
        else:
            template, text, where = words[shell.index]
            argv[shell.index] = _script(template, text, shell, names, where)
    return CommandLine(
        command=argv[0],
        args=argv[1:],
        input_data=_input(config.get("input_data"), names, script_on_stdin),
    )


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


# An argument with the template that it was made from and its place.
_Word = tuple["Any", str, str]


def _command(template: Any, names: Names) -> _Word:
    where = names.place("command")
    command = render_value(template, names, where)
    if command is not None and not isinstance(command, str):
        raise ConfigTemplateError(
            f"{where}: expected a text, got {type(command).__name__}", hint="name the program"
        )
    return template, as_text(command or "", where), where


def _arguments(template: Any, names: Names) -> list[_Word]:
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
    words: list[_Word] = []
    for index, element in enumerate(template):
        words += _words(element, names, f"{where}[{index}]")
    return words


def _words(template: Any, names: Names, where: str) -> list[_Word]:
    if isinstance(template, list | tuple):
        # An element that referred to a list in the config.
        return [word for one in template for word in _words(one, names, where)]
    value = render_value(template, names, where)
    if isinstance(template, str) and isinstance(value, list | tuple):
        return [(None, as_text(one, where), where) for one in value if one is not None]
    return [] if value is None else [(template, as_text(value, where), where)]


def _script(template: Any, text: str, shell: ShellText, names: Names, where: str) -> str:
    part = embedded(template, names)
    if part is None:
        return text
    if not shell.quotable:
        from rye.executor.config.quoting import HINT

        label = f"{{{part.name}}}" if part.kind == "param" else f"${{{part.name}}}"
        raise ConfigTemplateError(
            f"{where}: {label} is inside text that {shell.shell} parses by other rules than sh",
            hint="use sh -c or bash -c, or " + HINT,
        )
    return as_text(render_script(template, names, where), where)


def _input(template: Any, names: Names, script: ShellText | None) -> str | None:
    where = names.place("input_data")
    value = render_value(template, names, where)
    if value is None:
        return None
    if script is not None and isinstance(value, str):
        value = _script(template, value, script, names, where)
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
