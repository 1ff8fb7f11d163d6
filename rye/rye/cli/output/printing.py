"""Text for people and JSON for programs. Colours appear only on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TextIO

# What could move the cursor, change colours or reorder text; tabs and line ends are laid out by us.
_UNPRINTABLE = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_LOOKS = r"\x1b\[[0-9;]*m"

_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_WEIGHTS = {"bold": 1, "dim": 2, "italic": 3, "underline": 4}


def plain(text: str) -> str:
    """Foreign text made harmless for a terminal; what would act on it is shown as an escape."""
    if text.isprintable():
        return text
    import re

    return re.sub(_UNPRINTABLE, lambda found: ascii(found[0])[1:-1], text)


def style(text: str, *, fg: str = "", **weights: bool) -> str:
    """The text in a colour and weight (``bold``, ``dim``, ``italic``, ``underline``).

    Nothing is done to it under ``NO_COLOR`` or on a dumb terminal; off a terminal ``echo``, ours
    and click's, takes it away again.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    codes = [30 + _COLOURS.index(fg)] if fg else []
    codes += [_WEIGHTS[name] for name, wanted in weights.items() if wanted]
    return f"\x1b[{';'.join(map(str, codes))}m{text}\x1b[0m" if codes else text


def echo(text: str = "", *, err: bool = False) -> None:
    """One line on stdout or stderr, without its looks where that is no terminal."""
    stream = sys.stderr if err else sys.stdout
    if "\x1b" in text and not is_terminal(stream):
        import re

        text = re.sub(_LOOKS, "", text)
    stream.write(f"{text}\n")
    stream.flush()


def is_terminal(stream: TextIO) -> bool:
    """Whether a person may be looking at it."""
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def print_json(value: Any) -> None:
    """Two spaces of indentation, one line end; lone surrogates stay escapes."""
    echo(json_text(value, indent=2))


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON that stdout can encode, whatever the locale."""
    import json

    ascii_only = (sys.stdout.encoding or "").replace("-", "").lower() != "utf8"
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only, default=_as_json)
    return text.encode("utf-8", "backslashreplace").decode()


def print_table(rows: Sequence[Sequence[str]], *, looks: Sequence[dict[str, Any]] = ()) -> None:
    """Columns as wide as they need; the last one is cut at the width of a terminal."""
    cells = [[plain(cell).replace("\n", " ") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    room = _terminal_width() - sum(widths[:-1]) - 2 * (len(widths) - 1) if widths else 0
    lines = []
    for row in cells:
        padded = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        last = row[-1] if len(row[-1]) <= room else f"{row[-1][: max(room - 1, 10)]}…"
        styled = [
            style(cell, **looks[at]) if at < len(looks) and looks[at] else cell
            for at, cell in enumerate([*padded, last])
        ]
        lines.append("  ".join(styled).rstrip())
    if lines:
        echo("\n".join(lines))


def _as_json(value: Any) -> Any:
    """Read-only mappings and records are JSON too; of anything else there is only its text."""
    return dict(value) if isinstance(value, Mapping) else str(value)


def _terminal_width() -> int:
    """Of the terminal that is written to; without one nothing is cut."""
    try:
        return os.get_terminal_size(1).columns
    except OSError:
        return 100_000
