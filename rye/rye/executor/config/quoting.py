"""Insert values into a shell script, so that each arrives unchanged as part of one word.

The script is written by the author of the tool. A placeholder is accepted in one kind of place
only: in an argument of a simple command whose name is written out, and which takes its arguments as
data. There

- a value outside of quotes is put in single quotes;
- a value inside quotes is put in single quotes as well: the surrounding quotes are closed before
  it and opened again after it.

Every other place is refused: text that a shell evaluates although it is quoted (assignments,
subscripts, arithmetic, tests, names of variables), text that is parsed twice, redirections, and
everything after a construct whose end this parser cannot determine with certainty. There is always
another way: pass the value as an argument, and write ``"$1"``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from lilux.record import Record
from lilux.templating import Placeholder, substitute

from rye.errors import ConfigTemplateError
from rye.executor.config.shells import takes_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, NoReturn

    Quotes = Literal["none", "single", "double"]

HINT = 'pass it as an argument after the script and a name for $0, and write "$1" in its place'

_CLOSING = {"none": "", "single": "'", "double": '"'}

# Expansions of the shell without quotes and without nesting.
_PLAIN_EXPANSION = r"\$\{[^{}()'\"`$\\\n]*\}"
_PLAIN_ARITHMETIC = r"\$\(\((?:[^{}()'\"`$\\]|\$\w+)*\)\)"
_SUBSCRIPT = r"\$\w*\["
_BLANKS = " \t"
_SEPARATORS = frozenset("\n;&|")
# A name up to the end of the word, so that nothing can make it another name.
_COMMAND = r"(?a)([A-Za-z_./][\w./+-]*)(?=[ \t\n;&|)]|$)"
_ASSIGNMENT = r"(?a)[A-Za-z_]\w*=[\w./:,@%+-]*(?=[ \t\n;&|)]|$)"
_REDIRECTION = r"[<>]+[&|!]*"
_OPENS = r"(?:if|then|else|elif|while|until|do|!|\{)(?=[ \t\n]|$)"
_CLOSES = r"(?:fi|done|\})(?=[ \t\n;&|)]|$)"
_HARMLESS_SET = r"set(?:[ \t]+(?:[-+][euxf]+|[-+][eux]*o[ \t]+pipefail))+[ \t]*(?=[\n;&|]|$)"
# Only %s: ksh and zsh evaluate the argument of a numeric conversion.
_PRINTF = (
    r"""printf[ \t]+(?P<quote>['"])"""
    r"""(?!-)(?:[^%'"`$\\]|\\[abfnrtv0]|%%|%-?\d*(?:\.\d+)?s)*(?P=quote)[ \t]"""
    r"""|printf[ \t]+(?:%s)+(?:\\\\n)?[ \t]"""
)
# These may change the meaning of command names or of the shell's syntax.
_CHANGES_PARSING = frozenset((
    "alias", "unalias", "autoload", "emulate", "enable", "function", "set", "setopt", "shopt",
    "unsetopt", "zmodload", "case", "coproc", "foreach", "repeat", "select", "time",
))  # fmt: skip


def _match(expression: str, text: str, at: int) -> re.Match[str] | None:
    return re.compile(expression).match(text, at)


def quote(value: str) -> str:
    """Put ``value`` in single quotes, always.

    ``shlex.quote`` does not quote plain words, but a plain word can have a meaning: ``2`` before
    ``>``, ``A=b`` before a command, ``if``, ``=ls`` in zsh.
    """
    import shlex

    quoted = shlex.quote(value)
    return quoted if quoted.startswith("'") else f"'{quoted}'"


def fill_script(script: str, fill: Callable[[Placeholder], str | None], where: str) -> str:
    """Replace each placeholder in ``script`` by the quoted result of ``fill``.

    If ``fill`` returns ``None``, the placeholder stays part of the script. Raises
    :class:`ConfigTemplateError`, which begins with ``where``, if no quoting is safe.
    """
    values: dict[int, str] = {}
    spans: dict[int, _Span] = {}

    def collect(placeholder: Placeholder) -> None:
        value = fill(placeholder)
        if value is not None:
            values[placeholder.start] = value
            spans[placeholder.start] = _Span(placeholder)

    substitute(script, collect)
    if not values:
        return script
    quotes = _Parser(script, spans, where).parse()

    def replace(placeholder: Placeholder) -> str | None:
        if placeholder.start not in values:
            return None
        closing = _CLOSING[quotes[placeholder.start]]
        return f"{closing}{quote(values[placeholder.start])}{closing}"

    return substitute(script, replace)


class _Span:
    """The end of a placeholder, and its name in messages."""

    def __init__(self, placeholder: Placeholder) -> None:
        name, default = placeholder.name, placeholder.default
        if placeholder.kind == "param":
            self.label = f"{{{name}}}"
            length = len(self.label)
        else:
            self.label = f"${{{name}}}"
            length = len(self.label) + (0 if default is None else len(default) + 2)
        self.end = placeholder.start + length


class _Frame(Record):
    """A list of commands, or a text in double quotes; frames nest."""

    double: bool = False
    closes: bool = False
    """True if a parenthesis ends it."""
    subshell: bool = False
    command: bool = False
    """True if the current command has begun."""
    refused: str = ""
    """Why a value is not allowed in the current command; empty if it is."""
    data_from: int = 0
    word: int = 0
    """The start of the current word."""


class _Parser:
    """Parses a script once."""

    def __init__(self, text: str, spans: dict[int, _Span], where: str) -> None:
        self._text = text
        self._spans = spans
        self._where = where
        self._frames = [_Frame()]
        self._quotes: dict[int, Quotes] = {}

    def parse(self) -> dict[int, Quotes]:
        """Return the quotes around each placeholder."""
        at = 0
        while at < len(self._text) and len(self._quotes) < len(self._spans):
            frame = self._frames[-1]
            if at in self._spans:
                at = self._note(at, "double" if frame.double else "none")
            elif frame.double:
                at = self._in_quotes(at)
            elif frame.command:
                at = self._in_arguments(at, frame)
            else:
                at = self._before_command(at, frame)
        return self._quotes

    def _note(self, at: int, quotes: Quotes) -> int:
        for frame, inner in pairwise([*self._frames, None]):
            if frame is None or frame.double or (inner is not None and inner.subshell):
                continue
            if not frame.command:
                self._refuse(at, "is where a command begins")
            if frame.refused:
                self._refuse(at, frame.refused)
            if at < frame.data_from:
                self._refuse(at, "is in a format")
            before = self._text[: frame.word].rstrip(_BLANKS + "\\\n")
            if before.endswith(("<", ">", "<&", ">&", ">|")):
                self._refuse(at, "is in a redirection")
        self._quotes[at] = quotes
        return self._spans[at].end

    def _in_quotes(self, at: int) -> int:
        if self._text[at] == '"':
            self._frames.pop()
            return at + 1
        return self._anywhere(at)

    def _before_command(self, at: int, frame: _Frame) -> int:  # noqa: PLR0911 - one per sign
        char = self._text[at]
        if char in _BLANKS:
            return at + 1
        if char in _SEPARATORS or char == ")":
            return self._separator(at)
        if self._text.startswith("((", at):
            self._doubt(at, "is in or after arithmetic")
        if char == "(":
            self._frames.append(_Frame(closes=True, subshell=True))
            return at + 1
        if char == "#":
            return self._comment(at)
        if self._text.startswith("\\\n", at):
            return self._escape(at)
        if self._text.startswith("[[", at):
            self._doubt(at, "is in or after a test")
        for skipped in (_OPENS, _ASSIGNMENT, _HARMLESS_SET):
            if match := _match(skipped, self._text, at):
                return match.end()
        frame.command, frame.word = True, at
        if closing := _match(_CLOSES, self._text, at):
            frame.refused = f"follows '{closing.group()}'"
            return closing.end()
        return self._command(at, frame)

    def _command(self, at: int, frame: _Frame) -> int:
        match = _match(_COMMAND, self._text, at)
        if match is None or match.end() in self._spans:
            frame.refused = "is in an assignment, or after a command that is not a plain name"
            return at
        name, end = match.group(), match.end()
        frame.refused = ""
        frame.data_from = end
        if name in _CHANGES_PARSING:
            self._doubt(end, f"is in or after '{name}'")
        if name == "printf":
            form = _match(_PRINTF, self._text, at)
            frame.data_from = form.end() if form else len(self._text)
        elif takes_code(name):
            frame.refused = f"is an argument of '{name}', which may evaluate it"
        return end

    def _in_arguments(self, at: int, frame: _Frame) -> int:  # noqa: PLR0911 - one per sign
        char = self._text[at]
        if char in _SEPARATORS or char == ")":
            return self._separator(at)
        if char in _BLANKS:
            frame.word = at + 1
            return at + 1
        if char == "(":
            self._doubt(at, "is in or after parentheses that are not a subshell")
        if redirection := _match(_REDIRECTION, self._text, at):
            return self._redirection(redirection, frame)
        if char == "#" and at == frame.word:
            return self._comment(at)
        if at == frame.word and self._text.startswith("[[", at):
            self._doubt(at, "is in or after a test")
        if char == "{" and at == frame.word and self._text[at + 1 : at + 2] in (" ", "\t", "\n"):
            self._doubt(at, "follows a brace that may begin a block")
        if char == "'":
            return self._single(at)
        if char == '"':
            self._frames.append(_Frame(double=True))
            return at + 1
        return self._anywhere(at)

    def _anywhere(self, at: int) -> int:
        """Parse a character that has the same meaning inside and outside of double quotes."""
        match self._text[at]:
            case "\\":
                return self._escape(at)
            case "$":
                return self._dollar(at)
            case "`":
                self._doubt(at, "is in or after backquotes")
        return at + 1

    def _redirection(self, match: re.Match[str], frame: _Frame) -> int:
        at, end = match.span()
        if match.group().startswith("<<") and match.group() != "<<<":
            self._doubt(at, "is in or after a here-document")
        frame.word = end
        return end

    def _separator(self, at: int) -> int:
        frame = self._frames[-1]
        if self._text.startswith("&>", at):
            self._doubt(at, "follows '&>', which not every shell supports")
        if self._text[at] == ")":
            if not frame.closes:
                self._doubt(at, "follows an unmatched closing parenthesis")
            self._frames.pop()
            if frame.subshell:
                outer = self._frames[-1]
                outer.command, outer.refused = True, "follows a subshell"
                outer.word = at + 1
        else:
            frame.command, frame.refused = False, ""
        return at + 1

    def _single(self, at: int) -> int:
        at += 1
        while at < len(self._text) and (at in self._spans or self._text[at] != "'"):
            at = self._note(at, "single") if at in self._spans else at + 1
        return at + 1

    def _escape(self, at: int) -> int:
        if at + 1 in self._spans:
            self._refuse(at + 1, "follows a backslash")
        if self._text.startswith("\\\n#", at):
            self._doubt(at, "follows a '#' that may or may not begin a comment")
        return at + 2

    def _dollar(self, at: int) -> int:
        if at + 1 in self._spans:
            self._refuse(at + 1, "follows a dollar sign")
        following = self._text[at + 1 : at + 2]
        if _match(_SUBSCRIPT, self._text, at):
            self._doubt(at, "is in or after a subscript")
        if plain := _match(_PLAIN_EXPANSION, self._text, at) or _match(
            _PLAIN_ARITHMETIC, self._text, at
        ):
            return plain.end()
        if following == "{":
            self._doubt(at, "is in or after an expansion that contains quotes or other expansions")
        if self._text.startswith("$((", at):
            self._doubt(at, "is in or after arithmetic")
        if following == "'" and not self._frames[-1].double:
            self._doubt(at, "is in or after $'…', which not every shell supports")
        if following == "(":
            self._frames.append(_Frame(closes=True))
            return at + 2
        # `$#` does not begin a comment, and `$$` not a second expansion.
        return at + (2 if following and following in "#$?!*@-" else 1)

    def _comment(self, at: int) -> int:
        newline = self._text.find("\n", at)
        end = newline if newline >= 0 else len(self._text)
        for start in self._spans:
            if at < start < end:
                self._refuse(start, "is in a comment")
        return end

    def _doubt(self, at: int, why: str) -> None:
        """Refuse every placeholder from here on, since parsing is no longer certain."""
        for start in sorted(self._spans):
            if start >= at:
                self._refuse(start, why)

    def _refuse(self, start: int, why: str) -> NoReturn:
        raise ConfigTemplateError(
            f"{self._where}: {self._spans[start].label} {why}, where no quoting is safe", hint=HINT
        )
