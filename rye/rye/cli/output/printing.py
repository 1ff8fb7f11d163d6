"""Text for people and JSON for programs, on the standard streams.

Colours appear only on a terminal. Text that Rye did not write goes through :func:`plain` or
:func:`display` first, so that it cannot control the terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TextIO

_STYLE_CODES = r"\x1b\[[0-9;]*m"

# A path in a message begins after one of these; elsewhere the match is the end of a longer path.
_BEFORE_PATH = r"(?<![^\s'\"`(=,])"
# Something must remain after the folder, and a command must not take it for an option.
_AFTER_FOLDER = r"(?=[^\s/'\"`),;:-])"

_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_WEIGHTS = {"bold": 1, "dim": 2, "italic": 3, "underline": 4}

_MAX_NAMES = 5
_MAX_WIDTH = 100
_MIN_WIDTH = 40


# The standard streams


def prepare_streams() -> None:
    """Make stdin, stdout and stderr usable, whatever the caller did to them.

    A closed stream is connected to ``/dev/null``: otherwise the next file to be opened would get
    its number and receive the output. Characters that the locale cannot encode are escaped.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            _connect_to_null(number)
            setattr(sys, name, os.fdopen(number, mode, closefd=False))
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def flush_or_discard() -> None:
    """Flush stdout. If that fails, drop the rest, so that it does not fail again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        discard_stdout()


def discard_stdout() -> None:
    """Drop the unwritten and all further output."""
    _connect_to_null(1)


def is_terminal(stream: TextIO) -> bool:
    """True if the stream is a terminal; false if it is closed."""
    try:
        return stream.isatty()
    except ValueError:
        return False


def _connect_to_null(number: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    if null != number:
        os.dup2(null, number)
        os.close(null)


# Text


def plain(text: str) -> str:
    """Return the text with escapes in place of characters that would control the terminal."""
    if text.isprintable():
        return text
    from rye.plaintext import escaped

    return escaped(text)


def short_list(names: Sequence[str]) -> str:
    """Return the first names, and the number of the rest."""
    rest = len(names) - _MAX_NAMES
    listed = ", ".join(names[:_MAX_NAMES])
    return f"{listed} and {rest:,} more" if rest > 0 else listed


def shorten_paths(text: str) -> str:
    """Make the paths in a text relative if they are below the working directory."""
    try:
        folder = os.getcwd()  # noqa: PTH109 - avoids the import of pathlib
    except OSError:  # the directory was removed
        return text
    if folder == "/" or folder not in text:
        return text
    import re

    return re.sub(f"{_BEFORE_PATH}{re.escape(folder)}/{_AFTER_FOLDER}", "", text)


def display(text: object) -> str:
    """Return a path, or a message with paths, for people: short paths, no control characters."""
    return plain(shorten_paths(str(text)))


def style(text: str, *, fg: str = "", **weights: bool) -> str:
    """Return the text in a colour and weight (``bold``, ``dim``, ``italic``, ``underline``).

    ``NO_COLOR`` and a dumb terminal turn styles off. Where the output is not a terminal, ``echo``
    (ours and click's) removes them.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    codes = [30 + _COLOURS.index(fg)] if fg else []
    codes += [_WEIGHTS[name] for name, wanted in weights.items() if wanted]
    return f"\x1b[{';'.join(map(str, codes))}m{text}\x1b[0m" if codes else text


def echo(text: str = "", *, err: bool = False) -> None:
    """Print one line on stdout or stderr, without styles if that is not a terminal."""
    stream = sys.stderr if err else sys.stdout
    if "\x1b" in text and not is_terminal(stream):
        import re

        text = re.sub(_STYLE_CODES, "", text)
    stream.write(f"{text}\n")
    stream.flush()


# JSON


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print a value as JSON, with an indentation of two spaces or in one line."""
    echo(json_text(value, indent=indent))


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return JSON that stdout can encode in any locale, and that no terminal or reader obeys.

    Every character that is not printable is escaped: lone surrogates, control characters of a
    terminal, and characters that reorder text or end a line.
    """
    import json

    ascii_only = (sys.stdout.encoding or "").replace("-", "").lower() != "utf8"
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only, default=_json_default)
    if text.replace("\n", "").isprintable():
        return text
    # Outside strings, JSON has no other characters than printable ones and the line ends of indent.
    return "".join(
        one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in text
    )


def _json_default(value: Any) -> Any:
    """Return a read-only mapping as a dict, and anything else as text."""
    return dict(value) if isinstance(value, Mapping) else str(value)


# Layout


def print_table(rows: Sequence[Sequence[str]], *, styles: Sequence[dict[str, Any]] = ()) -> None:
    """Print aligned columns. On a terminal, the last column is cut at the right edge."""
    cells = [[plain(cell).replace("\n", " ") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    room = (_terminal_width() or 100_000) - sum(widths[:-1]) - 2 * (len(widths) - 1)
    lines = []
    for row in cells:
        padded = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        last = row[-1] if len(row[-1]) <= room else f"{row[-1][: max(room - 1, 10)]}…"
        styled = [
            style(cell, **styles[at]) if at < len(styles) and styles[at] else cell
            for at, cell in enumerate([*padded, last])
        ]
        lines.append("  ".join(styled).rstrip())
    if lines:
        echo("\n".join(lines))


def paragraph(text: str, indent: str = "") -> str:
    """Return text wrapped and without control characters; blank lines separate paragraphs."""
    parts = [" ".join(part.split()) for part in plain(text).split("\n\n")]
    return "\n\n".join([_wrap(part, indent, indent) for part in parts if part])


def field_list(fields: Sequence[tuple[str, str]], indent: str = "  ") -> str:
    """Return names and values in two columns, wrapped and without control characters."""
    cells = [(plain(name), " ".join(plain(text).split())) for name, text in fields]
    column = max([len(name) for name, _ in cells], default=0)
    lines = []
    for name, text in cells:
        start = f"{indent}{name.ljust(column)}  "
        wrapped = _wrap(text, start, " " * len(start)) or start
        lines.append(f"{indent}{style(name, dim=True)}{wrapped[len(indent) + len(name) :]}")
    return "\n".join(lines)


def _wrap(text: str, first: str, rest: str) -> str:
    import textwrap

    width = min(max(_terminal_width() or _MAX_WIDTH, _MIN_WIDTH), _MAX_WIDTH)
    # Paths and commands are not broken, so that they can be copied.
    return textwrap.fill(
        text,
        max(width, len(rest) + 20),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _terminal_width() -> int | None:
    """The width of the terminal on stdout; ``None`` if stdout is not a terminal."""
    try:
        return os.get_terminal_size(1).columns
    except OSError:
        return None


def print_changes(lines: Iterable[str]) -> None:
    """Print the lines of a diff, indented and coloured."""
    for line in lines:
        colour = {"+": "green", "-": "red"}.get(line[:1], "")
        echo(f"  {style(plain(line), fg=colour)}")
