"""Parsing of untrusted TOML, in time and memory proportional to its size."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# tomllib stores every prefix of a dotted key, so one line of 60 KB of dots would take gigabytes.
# No real table is nested this deeply.
_MAX_DOTS = 200


def load_toml(text: str) -> dict[str, Any]:
    """Parse ``text``.

    Raises ``tomllib.TOMLDecodeError`` with the line, and ``ValueError`` for text that is nested
    too deeply or has a line with more than 200 dots.
    """
    import tomllib

    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > _MAX_DOTS:
            raise ValueError(f"line {number} has more than {_MAX_DOTS} dots")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
