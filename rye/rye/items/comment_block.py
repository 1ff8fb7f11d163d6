"""Read the metadata of a text file from a block of comment lines that contains TOML.

::

    # /// rye
    # executor_id = "rye/core/runtimes/bash_runtime"
    # ///
"""

from __future__ import annotations

import re
from pathlib import Path

from rye.errors import ItemFormatError, NoMetadataError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_BLOCK_BYTES = 64 * 1024

_HINT = "correct it and sign again"
_TOML_PLACE = r" \(at (?:line (\d+), column \d+|end of document)\)$"


def load_block(text: str, comment: str, path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the mapping in the block, and the line of each top-level key.

    Raises :class:`NoMetadataError` if there is no block, and :class:`ItemFormatError` if there are
    two, if the block does not end, or if it is not TOML.
    """
    body, first = _find_block(text, comment, path)
    if len(body) > MAX_BLOCK_BYTES:
        raise ItemFormatError(
            path, f"has a rye block larger than {MAX_BLOCK_BYTES} bytes", line=first, hint=_HINT
        )
    import tomllib

    from lilux.files.toml import load_toml

    try:
        values = load_toml(body + "\n")
    except tomllib.TOMLDecodeError as error:
        reason = str(error)
        place = re.search(_TOML_PLACE, reason)
        line = first + (int(place[1]) if place and place[1] else body.count("\n") + 1)
        reason = f"has a rye block that is not TOML ({re.sub(_TOML_PLACE, '', reason)})"
        raise ItemFormatError(path, reason, line=line, hint=_HINT) from None
    except ValueError as error:
        raise ItemFormatError(
            path, f"has a rye block that is not TOML ({error})", line=first, hint=_HINT
        ) from None
    return values, _key_lines(body, first)


def _find_block(text: str, comment: str, path: Path) -> tuple[str, int]:
    opening, closing = f"{comment} /// rye", f"{comment} ///"
    lines = text.split("\n")
    starts = [number for number, line in enumerate(lines) if line.rstrip() == opening]
    if not starts:
        raise NoMetadataError(
            path,
            "is not a tool: it has no metadata",
            hint=f"add TOML between '{opening}' and '{closing}'",
        )
    if len(starts) > 1:
        raise ItemFormatError(
            path,
            f"has two rye blocks, the first at line {starts[0] + 1}",
            line=starts[1] + 1,
            hint=_HINT,
        )
    body: list[str] = []
    for number in range(starts[0] + 1, len(lines)):
        line = lines[number].rstrip()
        if line == closing:
            return "\n".join(body), starts[0] + 1
        if line != comment and not line.startswith(f"{comment} "):
            break
        body.append(line[len(comment) + 1 :])
    raise ItemFormatError(
        path,
        f"has a rye block without the closing line '{closing}'",
        line=starts[0] + 1,
        hint=_HINT,
    )


def _key_lines(body: str, first: int) -> dict[str, int]:
    """The line of each key, guessed from the start of each line; used only in messages."""
    lines: dict[str, int] = {}
    for number, line in enumerate(body.split("\n"), first + 1):
        key = re.match(r"\[*\s*[\"']?([A-Za-z0-9_-]+)", line)
        if key:
            lines.setdefault(key[1], number)
    return lines
