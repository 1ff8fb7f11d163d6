"""What a shell script takes: ``getopts`` names, ``$1`` and ``"$@"``."""

from __future__ import annotations

import re

from rye.authoring.adopt.comments import first_comment
from rye.authoring.adopt.proposal import ARGS, Findings, Parameter

_GETOPTS = r"\bgetopts\s+[\"']?(:?[A-Za-z0-9:]+)[\"']?\s"
_POSITION = r"\$(?:([1-9])|\{([1-9])(?:(:?[-?=+])([^}]*))?\})"
_NAMED = r"(?m)^\s*(?:local |readonly |export |declare )?([A-Za-z_]\w*)=[\"']?\$\{?([1-9])\b"
_REST = r"\$[@*]|\$\{[@*]|\bshift\b"


def shell_findings(text: str) -> Findings:
    """Read the script; functions with arguments of their own are left out."""
    code = _without_functions(_without_comments(text))
    options = list(_options(code))
    positions = list(_positions(code))
    rest = re.search(_REST, code) is not None and not options and not positions
    if rest:
        schema = {"type": "array", "items": {"type": "string"}, "default": []}
        positions = [Parameter(ARGS, schema | {"description": "The arguments"})]
    return Findings(
        description=first_comment(text, "#"),
        parameters=(*options, *positions),
        has_options=bool(options),
    )


def _options(code: str) -> list[Parameter]:
    found = re.search(_GETOPTS, code)
    if found is None:
        return []
    letters = found[1].lstrip(":")
    made = []
    for at, letter in enumerate(letters):
        if letter == ":":
            continue
        has_value = letters[at + 1 : at + 2] == ":"
        kind = "string" if has_value else "boolean"
        about = _assigned(code, letter)
        schema = {"type": kind, **({"description": about} if about else {})}
        made.append(Parameter(letter, schema, False, f"-{letter}", flag=not has_value))
    return made


def _assigned(code: str, letter: str) -> str:
    """The variable that the branch of an option sets: ``n) name=$OPTARG``."""
    found = re.search(rf"(?m)(?:^|[|\s(]){letter}\)\s*([A-Za-z_]\w*)=", code)
    return found[1].lower() if found else ""


def _positions(code: str) -> list[Parameter]:
    names = {number: name for name, number in re.findall(_NAMED, code)}
    optional: dict[str, str | None] = {}
    used = set()
    for plain, braced, operator, value in re.findall(_POSITION, code):
        number = plain or braced
        used.add(number)
        if operator in (":-", "-", ":=", "="):
            plain_value = value if not re.search(r"[$`]", value) else None
            optional[number] = plain_value.strip("\"'") if plain_value is not None else None
    if not used:
        return []
    made = []
    for number in map(str, range(1, int(max(used)) + 1)):
        schema: dict[str, object] = {"type": "string"}
        if number in names:
            schema["description"] = names[number].lower()
        if optional.get(number):
            schema["default"] = optional[number]
        made.append(Parameter(f"arg{number}", schema, number not in optional))
    return made


def _without_comments(text: str) -> str:
    return re.sub(r"(?m)(^|\s)#.*$", r"\1", text)


def _without_functions(code: str) -> str:
    """Remove the bodies of functions whose braces stand at the start and end of lines."""
    pattern = r"(?ms)^\s*(?:function\s+)?[A-Za-z_][\w-]*\s*(?:\(\s*\))?\s*\{\s*$.*?^\}"
    return re.sub(pattern, "", code)
