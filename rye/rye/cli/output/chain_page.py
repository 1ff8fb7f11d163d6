"""What ``rye chain`` prints: a tree, JSON, or a picture in Mermaid's language."""

from __future__ import annotations

from typing import Any

from rye.cli.output.item_page import signed_by
from rye.cli.output.paths import shown
from rye.cli.output.printing import plain, style
from rye.executor.inspection import InspectedElement, Inspection

_DIGITS = 12


def tree(seen: Inspection) -> str:
    """One element below the other, each with what is known of it."""
    lines: list[str] = []
    last = len(seen.elements) - 1
    for level, element in enumerate(seen.elements):
        indent = "   " * (level - 1)
        branch = f"{indent}└─ " if level else ""
        lines.append(f"{branch}{style(plain(element.item_id), bold=True)} {plain(element.version)}")
        goes_on = level < last or element.executor_id is not None
        below = "   " * level + ("│  " if goes_on else "   ")
        lines += [below + each for each in _about(element)]
    missing = seen.elements[-1].executor_id
    if missing is not None:
        indent = "   " * last
        lines.append(f"{indent}└─ {plain(missing)}, not reached")
    lines.append("")
    lines += _about_the_whole(seen)
    return "\n".join(lines)


def as_json(seen: Inspection) -> list[dict[str, Any]]:
    """A list of objects, from the tool to the primitive."""
    return [
        {
            "item_id": element.item_id,
            "space": element.space,
            "path": element.path,
            "version": element.version,
            "executor_id": element.executor_id,
            "integrity": element.integrity or None,
            "signer": element.signer or None,
            "locked": element.locked,
            "bundle": element.bundle or None,
            "owner": element.owner or None,
            "standing": element.standing or None,
            "pinned": element.pinned or None,
        }
        for element in seen.elements
    ]


def mermaid(seen: Inspection) -> str:
    """A flowchart that GitHub and editors draw."""
    lines = ["flowchart TD"]
    for number, element in enumerate(seen.elements):
        about = [
            f"<b>{_label(element.item_id)}</b> {_label(element.version)}",
            *[_label(each) for each in (_space(element), signed_by(element), _lock(element))],
        ]
        lines.append(f'    e{number}["{"<br/>".join(filter(None, about))}"]')
        if number:
            lines.append(f"    e{number - 1} --> e{number}")
    if seen.error is not None:
        last = len(seen.elements) - 1
        lines.append(f'    refused["{_label(str(seen.error))}"]')
        lines.append(f"    e{last} -.-> refused")
        lines.append("    style refused stroke:#c00")
    return "\n".join(lines)


def _about(element: InspectedElement) -> list[str]:
    if element.path is None:
        return ["part of rye, without a file"]
    signed = signed_by(element)
    looks = "green" if element.standing == "trusted" else "red"
    hashed = f"sha256 {element.integrity[:_DIGITS]}" if element.integrity else ""
    return [
        style(f"{_space(element)}, {shown(element.path)}", dim=True),
        style(plain(signed), fg=looks),
        ", ".join(filter(None, [hashed, plain(_lock(element))])),
    ]


def _about_the_whole(seen: Inspection) -> list[str]:
    lines = []
    if seen.dependencies:
        count = len(seen.dependencies)
        files = "file runs" if count == 1 else "files run"
        lines.append(f"{count} more {files} along, signed as well")
    if seen.lockfile is not None:
        lines.append(f"lockfile {shown(seen.lockfile)}")
    else:
        lines.append("no lockfile yet; the first run that succeeds makes it")
    return lines


def _space(element: InspectedElement) -> str:
    foreign = element.bundle not in ("", "rye")
    return f"{element.space} ({element.bundle})" if foreign else element.space


def _lock(element: InspectedElement) -> str:
    if element.locked is None:
        return ""
    if element.pinned and not element.locked:
        return f"pinned as {element.pinned[:_DIGITS]}"
    return "pinned" if element.locked else "not pinned"


def _label(text: str) -> str:
    """Text in the quotes of a label, where it can neither end them nor be taken for markup."""
    return "".join(
        [_ENTITIES.get(character, character) for character in " ".join(plain(text).split())]
    )


_ENTITIES = {character: f"#{ord(character)};" for character in '"#<>&`\\[]{}|'}
