"""TOML that somebody else wrote, read at a cost that grows with its size and no faster."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The parser remembers every part of a dotted key with all parts before it, so that one line of
# 60 KB would take gigabytes. No table is nested as deeply as this.
_MAX_DOTS = 200


def load_toml(text: str) -> dict[str, Any]:
    """The table that ``text`` spells.

    Raises ``tomllib.TOMLDecodeError`` with the line, and ``ValueError`` for what is nested too
    deeply or has a line of more than 200 dots.
    """
    import tomllib

    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > _MAX_DOTS:
            raise ValueError(f"line {number} has more than {_MAX_DOTS} dots")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
