"""What a script in JavaScript or another language takes, as far as a look at its text tells."""

from __future__ import annotations

import json
import re

from rye.authoring.adopt.comments import first_comment
from rye.authoring.adopt.proposal import ARGS, Findings, Parameter

# How languages read their arguments, with the number of the first one.
_ARGUMENTS = (
    (r"process\.argv\[(\d+)\]", 2),
    (r"\$ARGV\[(\d+)\]", 0),
    (r"(?<![\w$])ARGV\[(\d+)\]", 0),
    (r"(?<![\w.])arg\[(\d+)\]", 1),
    (r"\$argv\[(\d+)\]", 1),
    (r"\bargv\[(\d+)\]", 1),
    (r"commandArgs\(TRUE\)\[(\d+)\]", 1),
)
_EXPORTED = r"(?m)^export\s+(?:default\s+)?(?:async\s+)?function\s*(?:main|execute)?\s*\("
_MAIN = r"(?m)^export\s+(?:default\s+)?(?:async\s+)?function\s*(?:main)?\s*\(\s*\{([^})]*)\}"
_TYPED = rf"{_MAIN}\s*:\s*\{{([^}}]*)\}}"
_COMMONJS = r"(?m)^(?:module\.)?exports(?:\.(?:main|execute))?\s*="
_TYPES = {"string": "string", "number": "number", "boolean": "boolean"}
_MAX_POSITION = 20


def is_node_module(text: str) -> bool:
    """True if the file exports a function that ``node_runtime`` calls."""
    return re.search(_EXPORTED, text) is not None or re.search(_COMMONJS, text) is not None


def node_findings(text: str) -> Findings:
    """The fields that ``main({ city, days = 3 })`` takes, with what JSDoc says about them."""
    found = re.search(_MAIN, text)
    documented = {
        name: (kind, about.strip(" -"))
        for kind, name, about in re.findall(
            r"@param\s+(?:\{([^}]*)\}\s+)?\[?(?:\w+\.)?(\w+)(?:=[^\]]*)?\]?(.*)", text
        )
    }
    typed = re.search(_TYPED, text)
    for name, kind in re.findall(r"(\w+)\??\s*:\s*(\w+)", typed[2]) if typed else ():
        documented[name] = (kind, documented.get(name, ("", ""))[1])
    parameters = []
    for part in found[1].split(",") if found else ():
        name, equals, default = [piece.strip() for piece in part.partition("=")]
        name = name.partition(":")[0].strip()
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            continue
        kind, about = documented.get(name, ("", ""))
        schema: dict[str, object] = {"type": _TYPES[kind]} if kind in _TYPES else {}
        value = _literal(default)
        if value is not None:
            schema = {"type": _kind_of(value), **schema, "default": value}
        if about:
            schema["description"] = about
        parameters.append(Parameter(name, schema, not equals))
    return Findings(first_comment(text, "//"), tuple(parameters), open_ended=found is None)


def script_findings(text: str, comment: str) -> Findings:
    """The positions of the arguments that the script reads; any others if it reads none."""
    for pattern, first in _ARGUMENTS:
        used = [int(number) - first + 1 for number in re.findall(pattern, text)]
        used = [number for number in used if 0 < number <= _MAX_POSITION]
        if used:
            parameters = [
                Parameter(f"arg{number}", {"type": "string"}, number == 1)
                for number in range(1, max(used) + 1)
            ]
            return Findings(first_comment(text, comment), tuple(parameters))
    return Findings(first_comment(text, comment), open_ended=True)


def positional(name: str = ARGS) -> Parameter:
    """A list of further arguments."""
    schema = {"type": "array", "items": {"type": "string"}, "default": []}
    return Parameter(name, schema | {"description": "The arguments"})


def _literal(text: str) -> object:
    if re.fullmatch(r"'[^'\\]*'", text):
        text = f'"{text[1:-1]}"'
    try:
        value: object = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, str | int | float | bool) else None


def _kind_of(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "string" if isinstance(value, str) else "number"
