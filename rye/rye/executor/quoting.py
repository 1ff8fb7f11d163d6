"""Values in the text of a shell script, so that each arrives unchanged as part of one word.

The script is the author's. It is read from left to right as a POSIX shell would, only as far as
is needed to know in which quotes a placeholder stands:

- outside of quotes, the value is put in single quotes;
- inside quotes, these are closed before the value and opened again behind it.

Where a quoted value would not be safe (a comment, a here-document, backquotes, arithmetic, text
that is parsed a second time), or where the reading is not certain any more, the placeholder is
refused. There is always another way: pass the value as an argument, and write ``"$1"``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NoReturn

from lilux.primitives.templating import Placeholder, substitute

from rye.errors import ConfigTemplateError

HINT = 'pass it as an argument after the script and a name for $0, and write "$1" in its place'

Quotes = Literal["none", "single", "double"]
_CLOSING = {"none": "", "single": "'", "double": '"'}

# The shell's own expansions that hold no quotes and nothing nested.
_PLAIN_EXPANSION = re.compile(r"\$\{[^{}()'\"`$\\\n]*\}")
_PLAIN_ARITHMETIC = re.compile(r"\$\(\((?:[^{}()'\"`$\\]|\$\w+)*\)\)")
_WORD = re.compile(r"[^\s;&|()<>'\"`$\\{}#]+")
_BREAKS = frozenset(" \t\n;&|()<>")
_SEPARATORS = frozenset("\n;&|()")
_PARSES_AGAIN = frozenset(("eval", "trap", "alias", "let", "declare", "typeset"))
_SHELL = re.compile(r"(?:.*/)?(?:r?bash|sh|dash|ash|r?ksh|mksh|yash|r?zsh|fish|t?csh|su|runuser)")
_HAS_SCRIPT = re.compile(r"(?:\\\n|[^;&|\n])*?\s-\w*c(?!\w)")
_NUMBER_TEST = re.compile(r"\s-(?:eq|ne|lt|le|gt|ge)\s")
_SUBSCRIPT = re.compile(r"\w\[[^\]\s]*$")


def quote(value: str) -> str:
    """``value`` in single quotes, always.

    ``shlex.quote`` leaves plain words bare, and bare words can mean something: ``2`` before ``>``,
    ``A=b`` before a command, ``if``, ``=ls`` in zsh.
    """
    quoted = shlex.quote(value)
    return quoted if quoted.startswith("'") else f"'{quoted}'"


def fill_script(script: str, fill: Callable[[Placeholder], str | None], where: str) -> str:
    """``script`` with each placeholder replaced by the quoted answer of ``fill``.

    ``None`` leaves a placeholder as it is, as a part of the script. Raises
    :class:`ConfigTemplateError`, which begins with ``where``, for one that cannot be made safe.
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
    quotes = _Reader(script, spans, where).read()

    def replace(placeholder: Placeholder) -> str | None:
        if placeholder.start not in values:
            return None
        closing = _CLOSING[quotes[placeholder.start]]
        return f"{closing}{quote(values[placeholder.start])}{closing}"

    return substitute(script, replace)


class _Span:
    """How far a placeholder reaches, and how to call it in a message."""

    def __init__(self, placeholder: Placeholder) -> None:
        name, default = placeholder.name, placeholder.default
        if placeholder.kind == "param":
            self.label = f"{{{name}}}"
            length = len(self.label)
        else:
            self.label = f"${{{name}}}"
            length = len(self.label) + (0 if default is None else len(default) + 2)
        self.end = placeholder.start + length


@dataclass(slots=True)
class _Frame:
    """A stretch of commands or of text in double quotes; frames nest."""

    double: bool = False
    closes: bool = False
    """Whether a parenthesis ends it: ``$(…)``."""
    depth: int = 0
    again: str = ""
    """Who parses the words of this command a second time."""
    outer_again: str = ""


class _Reader:
    """One reading of a script."""

    def __init__(self, text: str, spans: dict[int, _Span], where: str) -> None:
        self._text = text
        self._spans = spans
        self._where = where
        self._frames = [_Frame()]
        self._quotes: dict[int, Quotes] = {}
        self._glued = -1
        """Where no word begins, since what stands before is escaped."""

    def read(self) -> dict[int, Quotes]:
        """In which quotes each placeholder stands."""
        at = 0
        while at < len(self._text) and len(self._quotes) < len(self._spans):
            frame = self._frames[-1]
            if at in self._spans:
                at = self._note(at, "double" if frame.double else "none")
            elif frame.double:
                at = self._in_quotes(at)
            else:
                at = self._in_commands(at, frame)
        return self._quotes

    def _note(self, at: int, quotes: Quotes) -> int:
        frame = next(frame for frame in reversed(self._frames) if not frame.double)
        if frame.again:
            self._refuse(at, f"is parsed a second time by {frame.again}")
        if quotes == "none" and _SUBSCRIPT.search(self._text, 0, at):
            self._refuse(at, "stands in a subscript, which a shell may evaluate")
        self._quotes[at] = quotes
        return self._spans[at].end

    def _in_quotes(self, at: int) -> int:
        if self._text[at] == '"':
            self._frames.pop()
            return at + 1
        return self._anywhere(at)

    def _in_commands(self, at: int, frame: _Frame) -> int:
        char = self._text[at]
        starts_word = at == 0 or (at != self._glued and self._text[at - 1] in _BREAKS)
        if char in _SEPARATORS:
            at = self._separator(at, frame)
        elif self._text.startswith("<<", at):
            at = self._less_less(at)
        elif char == "#" and (starts_word or self._text[at - 1] in ")\n"):
            at = self._comment(at)
        elif word := _WORD.match(self._text, at):
            at = self._word(word, frame)
        elif char == "'":
            at = self._single(at)
        elif char == '"':
            self._frames.append(_Frame(double=True))
            at += 1
        else:
            at = self._anywhere(at)
        return at

    def _anywhere(self, at: int) -> int:
        """What means the same inside and outside of double quotes."""
        match self._text[at]:
            case "\\":
                return self._escape(at)
            case "$":
                return self._dollar(at)
            case "`":
                return self._backquotes(at)
        return at + 1

    def _less_less(self, at: int) -> int:
        if not self._text.startswith("<<<", at):
            self._doubt(at, "stands in or behind a here-document")
        return at + 3

    def _separator(self, at: int, frame: _Frame) -> int:
        frame.again = frame.outer_again
        if self._text.startswith("((", at):
            self._doubt(at, "stands in or behind arithmetic")
        if self._text[at] == "(":
            frame.depth += 1
        elif self._text[at] == ")":
            if frame.closes and frame.depth == 0:
                self._frames.pop()
            frame.depth -= 1
        return at + 1

    def _word(self, match: re.Match[str], frame: _Frame) -> int:
        word, end = match.group(), match.end()
        # Wherever it stands: what is the command of a line is hard to know, and rarely matters.
        inner_shell = _SHELL.fullmatch(word) and _HAS_SCRIPT.match(self._text, end)
        if inner_shell or word in _PARSES_AGAIN:
            frame.again = word
        elif word == "case" and frame.closes:
            # Its patterns end in parentheses that nobody opened.
            self._doubt(end, "stands behind a 'case' inside $(…)")
        elif word == "[[":
            closing = self._text.find("]]", end)
            if _NUMBER_TEST.search(self._text, end, closing if closing >= 0 else len(self._text)):
                self._doubt(end, "stands in or behind arithmetic")
        return end

    def _single(self, at: int) -> int:
        at += 1
        while at < len(self._text) and (at in self._spans or self._text[at] != "'"):
            at = self._note(at, "single") if at in self._spans else at + 1
        return at + 1

    def _escape(self, at: int) -> int:
        if at + 1 in self._spans:
            self._refuse(at + 1, "stands behind a backslash")
        # A letter is the same letter behind a backslash, and `\eval` is eval.
        self._glued = at + (1 if self._text[at + 1 : at + 2].isalpha() else 2)
        return self._glued

    def _dollar(self, at: int) -> int:
        if at + 1 in self._spans:
            self._refuse(at + 1, "stands behind a dollar sign")
        following = self._text[at + 1 : at + 2]
        if plain := _PLAIN_EXPANSION.match(self._text, at) or _PLAIN_ARITHMETIC.match(
            self._text, at
        ):
            return plain.end()
        if following == "{":
            self._doubt(at, "stands in or behind an expansion that holds quotes or others")
        if following == "[" or self._text.startswith("$((", at):
            self._doubt(at, "stands in or behind arithmetic")
        if following == "'" and not self._frames[-1].double:
            self._doubt(at, "stands in or behind $'…', which not every shell knows")
        if following == "(":
            again = next(frame.again for frame in reversed(self._frames) if not frame.double)
            self._frames.append(_Frame(closes=True, again=again, outer_again=again))
            return at + 2
        # `$#` begins no comment, `$$` no second expansion.
        return at + (2 if following and following in "#$?!*@-" else 1)

    def _backquotes(self, at: int) -> int:
        at += 1
        while at < len(self._text) and self._text[at] != "`":
            if at in self._spans:
                self._refuse(at, "stands in backquotes")
            at = self._escape(at) if self._text[at] == "\\" else at + 1
        return at + 1

    def _comment(self, at: int) -> int:
        if at and (self._text[at - 1] == ")" or at == self._glued):
            # A word may go on after `$(…)` and after the end of an escaped line.
            self._doubt(at, "stands behind a '#' that may be a comment or not")
        newline = self._text.find("\n", at)
        end = newline if newline >= 0 else len(self._text)
        for start in self._spans:
            if at < start < end:
                self._refuse(start, "stands in a comment")
        return end

    def _doubt(self, at: int, why: str) -> None:
        """From here on the reading is not certain; :meth:`read` ends if nothing follows."""
        for start in sorted(self._spans):
            if start >= at:
                self._refuse(start, why)

    def _refuse(self, start: int, why: str) -> NoReturn:
        raise ConfigTemplateError(
            f"{self._where}: {self._spans[start].label} {why}, where no quoting is safe", hint=HINT
        )
