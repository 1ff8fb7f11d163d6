"""The words after the tool in `rye run`: ``key=value``, ``key=@file``, ``key=-``, ``--key value``.

They become plain ``key=value`` pairs. Only a value after ``key=`` may name a file or stdin: what
follows ``--key`` is passed as it is, so that a script can pass a text that it did not write.
"""

from __future__ import annotations

import sys

from rye.catalogue.parameter_types import SchemaParameters
from rye.cli.run.parameters import MAX_BYTES, is_read_from, quoted_start, unknown_parameter
from rye.cli.run.request import OWN_OPTIONS
from rye.errors import ParameterError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_OWN = frozenset([option for option in OWN_OPTIONS if option.startswith("--")])


def plain_pairs(
    words: Sequence[str],
    schema: Mapping[str, Any] | None,
    *,
    item_id: str,
    stdin_is_used: bool = False,
) -> tuple[str, ...]:
    """Return the words as ``key=value``, with the content of files and of stdin in place.

    Raises :class:`ParameterError` that lists every issue. ``stdin_is_used`` is true if
    ``--params -`` has read it.
    """
    reading = _Reading(SchemaParameters(schema), stdin_is_used=stdin_is_used)
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        try:
            if word.startswith("--"):
                reading.option(word, rest)
            else:
                reading.pair(word)
        except ValueError as error:
            reading.issues.append(str(error))
    if reading.issues:
        raise ParameterError(
            f"invalid parameters for {item_id!r}",
            reading.issues,
            hint=f"see `rye run {item_id} --help`",
        )
    return tuple(reading.pairs)


class _Reading:
    def __init__(self, known: SchemaParameters, *, stdin_is_used: bool) -> None:
        self.pairs: list[str] = []
        self.issues: list[str] = []
        self._known = known
        self._stdin_is_used = stdin_is_used

    def option(self, word: str, rest: list[str]) -> None:
        """Add ``--key=value``, ``--key value``, ``--flag`` or ``--no-flag``."""
        given, equals, value = word.removeprefix("--").partition("=")
        name = self._name(given)
        if name is None and not equals and self._is_flag(given.removeprefix("no-")):
            self.pairs.append(f"{self._name(given.removeprefix('no-'))}=false")
            return
        if name is None:
            raise ValueError(
                unknown_parameter(f"--{given}", self._options(), _OWN - {f"--{given}"})
            )
        if equals:
            self.pairs.append(f"{name}={value}")
        elif self._is_flag(given) and rest[-1:] not in (["true"], ["false"]):
            self.pairs.append(f"{name}=true")
        elif not rest or rest[-1].startswith("--"):
            raise ValueError(f"--{given} needs a value (write --{given}=… if it begins with --)")
        else:
            self.pairs.append(f"{name}={rest.pop()}")

    def pair(self, word: str) -> None:
        """Add ``key=value``, and read the value if it names a file or stdin."""
        key, equals, text = word.partition("=")
        if not equals or not is_read_from(text):
            self.pairs.append(word)
            return
        name = quoted_start(key)[1:-1]
        content = text[1:] if text.startswith("@@") else self._content(name, text)
        # A file that was written by an editor or `echo` ends in a newline, a choice does not.
        line = content.removesuffix("\n")
        self.pairs.append(f"{key}={line if line in self._known.type_of(key).choices else content}")

    def _content(self, name: str, text: str) -> str:
        if text == "-":
            if self._stdin_is_used:
                raise ValueError(f"{name}: stdin was already read for another value")
            self._stdin_is_used = True
            return _decoded(sys.stdin.buffer.read(MAX_BYTES + 1), f"{name}: stdin")
        path = text[1:]
        try:
            # Any kind of file: `<(command)` in a shell is a pipe.
            with open(path, "rb") as file:  # noqa: PTH123 - avoids the import of pathlib
                return _decoded(file.read(MAX_BYTES + 1), f"{name}: {path!r}")
        except OSError as error:
            reason = (error.strerror or "cannot be read").lower()
            raise ValueError(
                f"{name}: {quoted_start(path)}: {reason} (for a text that begins with @, "
                f"write {name}=@@…)"
            ) from None

    def _name(self, given: str) -> str | None:
        """The parameter that an option means; ``None`` if the tool has no such parameter."""
        for name in (given, given.replace("-", "_")):
            if name in self._known.names():
                return name
        return given if given and self._known.accepts(given) else None

    def _is_flag(self, given: str) -> bool:
        name = self._name(given)
        return name is not None and self._known.type_of(name).types == {"boolean"}

    def _options(self) -> list[str]:
        return [f"--{name}" for name in self._known.names()]


def _decoded(data: bytes, name: str) -> str:
    if len(data) > MAX_BYTES:
        raise ValueError(f"{name} has more than {MAX_BYTES} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{name} is not UTF-8 text") from None
