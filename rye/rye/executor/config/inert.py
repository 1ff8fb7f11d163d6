"""Where a value from outside may stand in a command line.

No list of shells and interpreters is complete, so the rule says what is allowed, whatever program
gets the text. In an element of ``args``, a caller's value is

1. the whole element, ``{x}``: any value;
2. the end of a long option, ``--name={x}``: any value;
3. part of a path in a folder that Rye fills in, ``{project_path}/{file}``: names of letters, digits
   and ``_ - . :``, with ``/`` between them, and none of them ``..``;
4. part of a name, ``out/{name}.txt``: one such name. The element begins with two letters or ``./``,
   does not follow an option (whose argument may be code), and around the value are no letters or
   digits;
5. an integer that is not negative, in any inert text: ``{n}p``, ``-j{n}``.

In 3 to 5, the author's text is inert: letters, digits and ``_ - . / :``. The rest is refused.
The command is 1 only, and so is a text in ``input_data``, which a program may run as a script.
A variable of ``env`` is like an element: programs run what ``GIT_SSH_COMMAND`` or ``BASH_ENV`` say.
A folder may begin an element or the value of a long option; where an option may take code, and
anywhere after ``-c``, its path has only letters, digits, blanks and ``_ - . / : + , @ ~ =``.
``${VAR}`` may begin one too if it is a path of letters, digits and ``_ - . / :``. Elsewhere
``${VAR}`` is like a caller's value. In the script of a POSIX shell, ``${VAR}`` may be a word, and
is quoted. A setting that is a path, such as ``cwd``, is never code: a value in it only may not lead
out of the folder that the author wrote.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from lilux.record import Record
from lilux.templating import Placeholder, env_value, substitute, whole_placeholder

from rye.errors import ConfigTemplateError, ParameterError
from rye.executor.config.templates import Names, filler, render_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, NoReturn

    from rye.executor.config.templates import Kind

    Place = Literal["command", "argument", "option", "script", "behind", "stdin", "variable"]

_INERT = r"[A-Za-z0-9_./:-]*"
_LONG_OPTION = r"--[A-Za-z][A-Za-z0-9-]*="
_BEGINS_A_NAME = r"[A-Za-z]{2}|\.{1,2}/"
_NAME = r"\.?\w[\w.:-]*"
_PATH = rf"{_NAME}(?:/{_NAME})*/?"
_SIGNS = "letters, digits and _ - . :"
_CHECKS = {
    "name": (_NAME, f"a name of {_SIGNS} that does not begin with -"),
    "path": (_PATH, f"a relative path of {_SIGNS} /, where no name is .. or begins with -"),
    "plain": (r"[\w./:-]*", "only letters, digits and _ - . / :"),
    "folder": (r"/[\w./:-]*", "the path of a folder, of letters, digits and _ - . / :"),
    # After an option that may take code: nothing that a shell or an interpreter acts on.
    "place": (r"[\w ./:+,@~=-]*", "a path of letters, digits, blanks and _ - . / : + , @ ~ ="),
}
_FROM_OUTSIDE = frozenset(("value", "integer", "folder", "variable", "structure"))
_FROM_CALLERS = frozenset(("value", "integer", "structure"))
_SHELL = r"(?:.*/)?(?:ba|da|a|k|mk|z)?sh"
_SCRIPT_OPTION = r"-[A-Za-z]*c"
# Between it and the script may be other options, and `+c` means the same: -c -o errexit TEXT.
_BEFORE_A_SCRIPT = r"[-+][A-Za-z]*c"
# Complete words and quoted texts of a script, and nothing that makes the shell parse a text again:
# no arithmetic, no tests, no here-documents, no comments, no quotes within quotes.
_BEFORE_A_WORD = (
    r"""(?:[^'"\\`#<$(\[]|\$(?![({\['"])|\$\{\w+\}|\$?\((?!\()|\[(?!\[)|<(?!<)"""
    r"""|'[^']*'|"(?:[^"\\`$]|\$(?![({]))*")*(?<![^ \t\n;|&(])"""
)
_AFTER_A_WORD = r"[ \t\n;|&)]|$"

# With `{x}`, `{X}` or `NAME` for the name of the placeholder.
_ALONE = "pass it as an argument of its own"
_HINTS = {
    "value": _ALONE + """, for example sh -c 'echo "$1"' sh {x}, or write a shell script that """
    "reads RYE_PARAM_{X} (rye new --runtime bash)",
    "folder": _ALONE + """, for example sh -c 'cd "$1"' sh {x}""",
    "variable": "in a shell script, write $NAME without braces, and the shell expands it (if it is "
    "from a .env, also add it to permissions.env); "
    'elsewhere give the whole text a name in env_config.env, as in TEXT: "…${NAME}…", '
    "and write ${TEXT}",
    "structure": _ALONE + ", or refer to its parts",
}
_STDIN_HINT = "make it the whole text, or a value of a mapping, which becomes JSON"
_BELOW_HINT = _ALONE + ", or write / after the folder"
_VARIABLE_HINT = "set the variable to {x} alone"


class Shape(Record, frozen=True):
    """An author's element, split at its placeholders."""

    option: str
    """``--name=`` if the element begins with it; otherwise empty."""
    parts: tuple[str | Placeholder, ...]


@lru_cache(maxsize=4096)
def shape_of(template: str) -> Shape | None:
    """Split an author's text, once for all calls; ``None`` if it has no placeholder."""
    found: list[Placeholder] = []
    substitute(template, found.append)
    if not found:
        return None
    option = re.match(_LONG_OPTION, template)
    start = option.end() if option is not None and option.end() <= found[0].start else 0
    parts: list[str | Placeholder] = []
    at = start
    for one in found:
        parts += [template[at : one.start], one]
        at = one.end
    parts.append(template[at:])
    return Shape(template[:start], tuple([part for part in parts if part != ""]))


def is_shell(command: str) -> bool:
    """True if a program, given by name or path, is a POSIX shell."""
    return re.fullmatch(_SHELL, command) is not None


def place_after(before: Sequence[Any], command: str) -> Place:
    """The place of the argument after ``before``, which are rendered."""
    last = before[-1] if before and isinstance(before[-1], str) else ""
    if not last.startswith("-") or last == "--" or re.match(_LONG_OPTION, last):
        texts = [one for one in before if isinstance(one, str) and one[:1] in ("-", "+")]
        return "behind" if any(re.fullmatch(_BEFORE_A_SCRIPT, one) for one in texts) else "argument"
    is_script = is_shell(command) and re.fullmatch(_SCRIPT_OPTION, last) is not None
    return "script" if is_script else "option"


def fill(template: str, names: Names, place: Place, where: str) -> Any:
    """Fill in an element; a placeholder that is the whole element keeps its type.

    Raises :class:`ConfigTemplateError` if a value may not stand there, and
    :class:`ParameterError` if this value may not. No message contains a value.
    """
    shape = shape_of(template)
    if shape is None:
        return template
    first = shape.parts[0]
    if len(shape.parts) == 1 and not shape.option and isinstance(first, Placeholder):
        if place == "script" and names.kind(first) == "folder":
            _Element(shape, ["folder"], place, where).refuse_script()
        if first.kind == "env":
            return env_value(first, names.env)
        return names.value(first.name, where) if names.knows(first) else template
    kinds = [_kind(part, names) for part in shape.parts]
    checks = _Element(shape, kinds, place, where).checks()
    text = filler(names, where)
    filled = [shape.option]
    for part, check in zip(shape.parts, checks, strict=True):
        if isinstance(part, str):
            filled.append(part)
        else:
            value = text(part)
            filled.append(
                _label(part) if value is None else _checked(value, part, check, names, where)
            )
    return "".join(filled)


def fill_path(template: str, names: Names, where: str) -> Any:
    """Fill in a setting that is a path; a placeholder that is the whole text keeps its type.

    Raises :class:`ParameterError` if a value in a longer text leads out of the author's folder.
    """
    path = render_value(template, names, where)
    shape = shape_of(template)
    if shape is None or whole_placeholder(template) is not None:
        return path
    text = filler(names, where)
    placeholders = [one for one in shape.parts if isinstance(one, Placeholder)]
    given = [one for one in placeholders if names.kind(one) in _FROM_CALLERS]
    usual = "".join(
        [
            one if isinstance(one, str) else "x" if one in given else text(one) or ""
            for one in shape.parts
        ]
    )
    if _leads(path) != _leads(shape.option + usual):
        expected = "expected a relative path without .., because it is part of a longer text"
        issues = [f"parameters.{one.name}: {expected}" for one in given]
        raise ParameterError(f"invalid parameters for '{names.tool}'", issues)
    return path


def _leads(path: str) -> tuple[bool, int]:
    """Whether a path starts at the root, and how often it leads to a parent folder."""
    return path.startswith("/"), path.split("/").count("..")


def has_callers_value(template: str, names: Names) -> bool:
    """True if a text contains a caller's value or a structure, which may contain one."""
    shape = shape_of(template)
    return shape is not None and not _FROM_CALLERS.isdisjoint(
        _kind(one, names) for one in shape.parts
    )


def _kind(part: str | Placeholder, names: Names) -> Kind | None:
    return None if isinstance(part, str) else names.kind(part)


def _label(placeholder: Placeholder) -> str:
    return f"{{{placeholder.name}}}" if placeholder.kind == "param" else f"${{{placeholder.name}}}"


class _Element:
    """One element with the kinds of its placeholders."""

    def __init__(self, shape: Shape, kinds: list[Kind | None], place: Place, where: str) -> None:
        self._shape = shape
        self._kinds = kinds
        self._place = place
        self._where = where

    def checks(self) -> list[str]:
        """For each part, what is checked or done: a key of ``_CHECKS``, or nothing."""
        kinds = self._kinds
        values = [index for index, kind in enumerate(kinds) if kind in _FROM_OUTSIDE]
        alone = bool(self._shape.option) and len(kinds) == 1 and kinds[0] != "structure"
        if not values or (alone and self._place != "script"):
            return [""] * len(kinds)
        if self._place == "stdin":
            self._refuse(
                values[0], "is part of a text on stdin, which a program may run", _STDIN_HINT
            )
        if self._place == "script" or not self._is_inert():
            return self._words(values)
        if kinds[0] in ("folder", "variable"):
            return self._path()
        if self._place == "command":
            self._refuse(values[0], "is part of the command")
        return self._name([index for index in values if kinds[index] != "integer"])

    def refuse_script(self) -> NoReturn:
        """Refuse a folder that is a whole script: a checkout chooses its own folder's name."""
        self._refuse(0, "is text that a program may run")

    def _is_inert(self) -> bool:
        return not {"unknown", "structure"}.intersection(self._kinds) and all(
            re.fullmatch(_INERT, part) for part in self._shape.parts if isinstance(part, str)
        )

    def _words(self, values: list[int]) -> list[str]:
        """``${VAR}`` in a shell script, each a word outside of quotes."""
        kinds, parts = self._kinds, self._shape.parts
        others = [index for index in values if kinds[index] != "variable"]
        if others or self._place != "script":
            self._refuse([*others, *values][0], "is part of text that a program may run")
        texts = [part if isinstance(part, str) else "x" for part in parts]
        for index in values:
            before, after = "".join(texts[:index]), "".join(texts[index + 1 :])
            if not re.fullmatch(_BEFORE_A_WORD, before) or not re.match(_AFTER_A_WORD, after):
                self._refuse(index, "is not a word of its own, outside of quotes, in a script")
        return ["quote" if kind == "variable" else "" for kind in kinds]

    def _path(self) -> list[str]:
        kinds, parts = self._kinds, self._shape.parts
        values = [index for index, kind in enumerate(kinds) if kind in ("value", "integer")]
        if values and self._place == "command":
            self._refuse(values[0], "is part of the command")
        if values and not (isinstance(parts[1], str) and parts[1].startswith("/")):
            self._refuse(values[0], "is not below the folder that begins the argument", _BELOW_HINT)
        plain = "" if self._place == "command" else "plain"
        place = "place" if self._place in ("option", "behind") or self._shape.option else ""
        by_kind = {"value": "path", "variable": plain, "folder": place}
        checks = [by_kind.get(kind or "", "") for kind in kinds]
        if values and kinds[0] == "variable":
            checks[0] = "folder"
        return checks

    def _name(self, values: list[int]) -> list[str]:
        parts = self._shape.parts
        for index in values:
            before = parts[index - 1] if index else ""
            after = parts[index + 1] if index + 1 < len(parts) else ""
            if self._kinds[index] == "folder":
                self._refuse(index, "does not begin the argument")
            if self._shape.option or self._place not in ("argument", "behind", "variable"):
                why = "is part of an argument that follows an option and may be code"
                self._refuse(index, why, self._name_hint(index))
            if not (isinstance(parts[0], str) and re.match(_BEGINS_A_NAME, parts[0])):
                why = "is part of text that does not begin with two letters or ./"
                self._refuse(index, why, self._name_hint(index))
            if not (isinstance(before, str) and isinstance(after, str)) or (
                before[-1:].isalnum() or after[:1].isalnum()
            ):
                self._refuse(
                    index, "touches a letter, a digit or another value", self._name_hint(index)
                )
        return ["name" if index in values else "" for index in range(len(parts))]

    def _name_hint(self, index: int) -> str:
        if self._kinds[index] == "variable":
            return ""
        parts = [part if isinstance(part, str) else _label(part) for part in self._shape.parts]
        text, option = "".join(parts).removeprefix("./"), self._shape.option
        path = f"write {option}{{project_path}}/{text} if it is a path, or "
        if text.startswith("/"):
            path = f"write {option}${{FOLDER}}/… with FOLDER: /… in env_config.env, or "
        elif not text[0].isalnum() and text[0] != "{":
            path = ""
        alone = f"{_ALONE} or as --option={_label(self._placeholder(index))}"
        return f"{alone}, or {path}declare it as an integer"

    def _placeholder(self, index: int) -> Placeholder:
        part = self._shape.parts[index]
        assert isinstance(part, Placeholder)  # noqa: S101 - a text has no kind
        return part

    def _refuse(self, index: int, why: str, hint: str = "") -> NoReturn:
        one = self._placeholder(index)
        if not hint or self._place == "variable":
            hint = _HINTS.get(self._kinds[index] or "", _HINTS["value"])
            hint = _VARIABLE_HINT if self._place == "variable" else hint.replace("NAME", one.name)
            hint = hint.replace("{x}", f"{{{one.name}}}").replace("{X}", one.name.upper())
        raise ConfigTemplateError(f"{self._where}: {_label(one)} {why}", hint=hint)


def _checked(value: str, one: Placeholder, check: str, names: Names, where: str) -> str:
    if not check or (names.masked and one.kind == "env"):
        return value
    if check == "quote":
        # Always: a plain word can have a meaning too, such as `A=b` before a command.
        return "'" + value.replace("'", "'\"'\"'") + "'"
    form, expected = _CHECKS[check]
    if re.fullmatch(form, value):
        return value
    expected = f"expected {expected}, because it is part of a longer text"
    if check == "place":
        hint = "move the project, or pass the folder as an argument of its own"
        raise ConfigTemplateError(f"{where}: {_label(one)}: {expected}", hint=hint)
    if one.kind == "env":
        raise ConfigTemplateError(f"{where}: {_label(one)}: {expected}", hint="change its value")
    raise ParameterError(
        f"invalid parameters for '{names.tool}'", [f"parameters.{one.name}: {expected}"]
    )
