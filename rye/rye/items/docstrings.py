"""Read a docstring: the first paragraph, and what it says about each parameter.

Understands the three common styles: Google (``Args:``), NumPy (``Parameters`` and a line of dashes)
and Sphinx (``:param name:``).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from typing import NamedTuple

MAX_DESCRIPTION = 1000

_SPHINX = (
    r"[ \t]*:(?:param(?:eter)?|arg(?:ument)?|key(?:word)?)\s+(?:[^:\n]*\s)?\*{0,2}(\w+)\s*:(.*)"
)
_SPHINX_FIELD = r"[ \t]*:[a-z]+[^:\n]*:"
_GOOGLE_SECTION = r"(?i:args|arguments|parameters|params|keyword args|keyword arguments):\s*"
_ANY_GOOGLE_SECTION = r"[A-Z][A-Za-z ]{2,30}:\s*"
_GOOGLE_ENTRY = r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:(.*)"
_NUMPY_SECTION = r"(?i:(?:other )?parameters)\s*"
_NUMPY_ENTRY = r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?"


class Docstring(NamedTuple):
    """What a docstring says."""

    summary: str
    """The first paragraph on one line, without a final full stop if it is one sentence."""
    parameters: Mapping[str, str]


def read_docstring(text: str | None) -> Docstring:
    """Read a docstring; anything that is not in one of the styles is ignored."""
    # The first line follows the quotes, so that its indentation is not that of the others.
    first, _, rest = (text or "").expandtabs().strip().partition("\n")
    lines = [first, *textwrap.dedent(rest).split("\n")]
    return Docstring(_summary(lines), {**_google(lines), **_numpy(lines), **_sphinx(lines)})


def _summary(lines: list[str]) -> str:
    found = []
    for number, line in enumerate(lines):
        if not line.strip() or re.match(_SPHINX_FIELD, line) or _starts_section(lines, number):
            break
        found.append(line.strip())
    summary = " ".join(found)[:MAX_DESCRIPTION]
    return summary[:-1] if summary.endswith(".") and ". " not in summary else summary


def _starts_section(lines: list[str], number: int) -> bool:
    following = lines[number + 1] if number + 1 < len(lines) else ""
    underlined = re.fullmatch(r"-{3,}\s*", following) is not None
    return underlined or re.fullmatch(_ANY_GOOGLE_SECTION, lines[number]) is not None


def _google(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    inside, depth, name = False, 0, ""
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if not line.strip():
            continue
        if indent == 0:
            inside, depth, name = re.fullmatch(_GOOGLE_SECTION, line) is not None, 0, ""
            continue
        if not inside:
            continue
        depth = depth or indent
        entry = re.fullmatch(_GOOGLE_ENTRY, line.strip()) if indent <= depth else None
        if entry is not None:
            name = entry[1]
            found[name] = entry[2].strip()
        elif name:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return _bounded(found)


def _numpy(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    inside, names = False, list[str]()
    for number, line in enumerate(lines):
        if _starts_section(lines, number) and not line.rstrip().endswith(":"):
            inside, names = re.fullmatch(_NUMPY_SECTION, line) is not None, []
        elif not inside or not line.strip() or re.fullmatch(r"-{3,}\s*", line):
            continue
        elif line[:1].strip():
            entry = re.fullmatch(_NUMPY_ENTRY, line)
            names = [] if entry is None else [each.strip(" *") for each in entry[1].split(",")]
        else:
            for name in names:
                found[name] = f"{found.get(name, '')} {line.strip()}".strip()
    return _bounded(found)


def _sphinx(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        entry = re.fullmatch(_SPHINX, line)
        if entry is not None:
            name = entry[1]
            found[name] = entry[2].strip()
        elif not line.strip() or re.match(_SPHINX_FIELD, line):
            name = ""
        elif name:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return _bounded(found)


def _bounded(found: dict[str, str]) -> dict[str, str]:
    return {name: text[:MAX_DESCRIPTION] for name, text in found.items() if text}
