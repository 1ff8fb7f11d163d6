"""The command line of a job: templates in, arguments and stdin out."""

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

# One argument or variable of a Linux process, its final NUL included.
MAX_ARGUMENT = 128 * 1024
STDIN_RUNTIME = "rye/core/runtimes/python_runtime"
_TOO_LONG_HINT = (
    f"send the parameters by stdin: by the executor {STDIN_RUNTIME}, "
    'or with input_data: "{params_json}" in the config of the runtime'
)


class CommandLine(Record, frozen=True, kw_only=True):
    """What is run, final to the letter; it may hold secrets."""

    command: str
    args: list[str] = field(repr=False)
    input_data: str | None = field(repr=False)


def render_command_line(config: Mapping[str, Any], names: Names) -> CommandLine:
    """Fill ``command``, ``args`` and ``input_data``.

    A lone ``{name}`` in ``args`` whose value is a list becomes that many arguments, one that is
    ``None`` no argument at all. Values inside a text that a shell will parse are quoted, a lone
    placeholder never. Raises :class:`ConfigTemplateError`, which names the place.
    """
    where = f"'{names.tool}': config"
    words = [_Word(config.get("command"), _command(config.get("command"), names, where), "command")]
    words += _arguments(config.get("args"), names, where)
    argv = [word.text for word in words]
    script_on_stdin: ShellText | None = None
    for text in shell_texts(argv):
        if text.place == "stdin":
            script_on_stdin = text
        else:
            word = words[text.index]
            argv[text.index] = _script(word.template, word.text, text, names, word.where)
    return CommandLine(
        command=argv[0],
        args=argv[1:],
        input_data=_input(config.get("input_data"), names, f"{where}.input_data", script_on_stdin),
    )


def check_lengths(argv: Sequence[str], env: Mapping[str, str], tool: str) -> None:
    """Raises :class:`ArgumentTooLongError` for what the system would refuse to start."""
    total = sum(map(len, argv)) + sum(map(len, env)) + sum(map(len, env.values()))
    if total * 4 < MAX_ARGUMENT:  # no character takes more than four bytes
        return
    if sys.platform.startswith("linux"):
        _check_each(argv, tool)
        _check_variables(env, tool)
    limit = os.sysconf("SC_ARG_MAX")
    # Each has its NUL and its pointer; a variable its '=' as well.
    size = sum(_size(word) + 9 for word in argv)
    size += sum(_size(name) + _size(value) + 10 for name, value in env.items())
    if size >= limit:
        raise ArgumentTooLongError(
            f"'{tool}': arguments and environment take {size} bytes, and this system allows "
            f"{limit}",
            hint=_TOO_LONG_HINT,
        )


class _Word(Record, frozen=True):
    template: Any
    text: str
    where: str


def _command(template: Any, names: Names, where: str) -> str:
    command = render_value(template, names, f"{where}.command")
    if command is None:
        return ""
    if not isinstance(command, str):
        raise ConfigTemplateError(
            f"{where}.command: expected a text, got {type(command).__name__}",
            hint="name the program",
        )
    return as_text(command, f"{where}.command")


def _arguments(template: Any, names: Names, where: str) -> list[_Word]:
    if isinstance(template, str):
        # The whole list is one placeholder: as if it were the only element.
        template = [template] if whole_placeholder(template) else template
    if template is None:
        return []
    if not isinstance(template, list | tuple):
        raise ConfigTemplateError(
            f"{where}.args: expected a list, got {type(template).__name__}",
            hint="write each argument as an element of its own",
        )
    words: list[_Word] = []
    for index, element in enumerate(template):
        words += _words(element, names, f"{where}.args[{index}]")
    return words


def _words(template: Any, names: Names, where: str) -> list[_Word]:
    if isinstance(template, list | tuple):
        # What an author's own list became, to which an element referred.
        return [word for one in template for word in _words(one, names, where)]
    value = render_value(template, names, where)
    if isinstance(template, str) and isinstance(value, list | tuple):
        return [_Word(None, as_text(one, where), where) for one in value if one is not None]
    return [] if value is None else [_Word(template, as_text(value, where), where)]


def _script(template: Any, text: str, shell: ShellText, names: Names, where: str) -> str:
    part = embedded(template, names)
    if part is None:
        return text
    if not shell.quotable:
        from rye.executor.config.quoting import HINT

        label = f"{{{part.name}}}" if part.kind == "param" else f"${{{part.name}}}"
        raise ConfigTemplateError(
            f"{where}: {label} stands in a text that {shell.shell} takes apart by rules of its own",
            hint="use sh -c or bash -c, or " + HINT,
        )
    return as_text(render_script(template, names, where), where)


def _input(template: Any, names: Names, where: str, script: ShellText | None) -> str | None:
    value = render_value(template, names, where)
    if value is None:
        return None
    if script is not None and isinstance(value, str):
        value = _script(template, value, script, names, where)
    # A NUL is nothing special on stdin.
    without_nul = value.replace("\0", "") if isinstance(value, str) else value
    text = as_text(without_nul, where)
    return value if isinstance(value, str) else text


def _check_each(argv: Sequence[str], tool: str) -> None:
    for index, word in enumerate(argv):
        if _size(word) >= MAX_ARGUMENT:
            raise ArgumentTooLongError(
                f"'{tool}': argument {index} takes {_size(word)} bytes, and this system allows "
                f"{MAX_ARGUMENT - 1}",
                hint=_TOO_LONG_HINT,
            )


def _check_variables(env: Mapping[str, str], tool: str) -> None:
    for name, value in env.items():
        if _size(name) + _size(value) + 1 >= MAX_ARGUMENT:
            raise ArgumentTooLongError(
                f"'{tool}': the variable {name} takes {_size(value)} bytes, and this system "
                f"allows {MAX_ARGUMENT - 2 - _size(name)}",
                hint="put the value into a file, or send it by stdin",
            )


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))
