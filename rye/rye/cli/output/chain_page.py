"""What ``rye chain`` prints: a tree, JSON or a Mermaid flowchart."""

from __future__ import annotations

from typing import Any

from rye.cli.output.printing import display, plain, short_list, style
from rye.executor.chain.dependencies import PROJECT
from rye.executor.inspection import InspectedElement, Inspection, signed_by, space_of

_DIGITS = 12
# The escapes of characters with a meaning in a Mermaid label.
_ENTITIES = {character: f"#{ord(character)};" for character in '"#<>&`\\[]{}|'}


def text_page(inspection: Inspection) -> str:
    """Return the chain as a tree, with details below each element."""
    lines: list[str] = []
    last = len(inspection.elements) - 1
    for level, element in enumerate(inspection.elements):
        indent = "   " * (level - 1)
        branch = f"{indent}└─ " if level else ""
        lines.append(f"{branch}{style(plain(element.item_id), bold=True)} {plain(element.version)}")
        continues = level < last or element.executor_id is not None
        below = "   " * level + ("│  " if continues else "   ")
        lines += [below + each for each in _details(element)]
    unreached = inspection.elements[-1].executor_id
    if unreached is not None:
        indent = "   " * last
        lines.append(f"{indent}└─ {plain(unreached)}, not reached")
    lines.append("")
    lines += _summary(inspection)
    return "\n".join(lines)


def json_page(inspection: Inspection) -> list[dict[str, Any]]:
    """Return the elements for ``--json``, from the tool to the primitive."""
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
            **({"closure": element.closure or None} if number == 0 else {}),
        }
        for number, element in enumerate(inspection.elements)
    ]


def mermaid_page(inspection: Inspection) -> str:
    """Return a flowchart in Mermaid's language, which GitHub and many editors render."""
    lines = ["flowchart TD"]
    for number, element in enumerate(inspection.elements):
        details = [
            f"<b>{_label(element.item_id)}</b> {_label(element.version)}",
            *[_label(each) for each in (space_of(element), signed_by(element), _pin(element))],
        ]
        lines.append(f'    e{number}["{"<br/>".join(filter(None, details))}"]')
        if number:
            lines.append(f"    e{number - 1} --> e{number}")
    if inspection.error is not None:
        last = len(inspection.elements) - 1
        lines.append(f'    refused["{_label(str(inspection.error))}"]')
        lines.append(f"    e{last} -.-> refused")
        lines.append("    style refused stroke:#c00")
    return "\n".join(lines)


def _details(element: InspectedElement) -> list[str]:
    if element.path is None:
        return ["built into rye"]
    colour = "green" if element.standing == "trusted" else "red"
    digest = f"sha256 {element.integrity[:_DIGITS]}" if element.integrity else ""
    return [
        style(f"{space_of(element)}, {display(element.path)}", dim=True),
        style(plain(signed_by(element)), fg=colour),
        ", ".join(filter(None, [digest, plain(_pin(element))])),
    ]


def _summary(inspection: Inspection) -> list[str]:
    lines = []
    if inspection.dependencies:
        pins = [
            name.removeprefix(PROJECT)
            for name in inspection.dependencies
            if name.startswith(PROJECT)
        ]
        signed = len(inspection.dependencies) - len(pins)
        if signed:
            lines.append(f"plus {signed} supporting {_files(signed)}, also signed")
        if pins:
            lines.append(
                f"plus {len(pins)} {_files(len(pins))} of the project, not signed: "
                f"{plain(short_list(pins))}"
            )
    if inspection.lockfile is not None:
        lines.append(f"lockfile {display(inspection.lockfile)}")
    elif any(name.startswith(PROJECT) for name in inspection.dependencies):
        lines.append("no lockfile yet; review the pinned files, then create it with rye lock")
    else:
        lines.append("no lockfile yet; the first successful run creates it")
    return lines


def _pin(element: InspectedElement) -> str:
    if element.locked is None:
        return ""
    if element.pinned and not element.locked:
        same = element.pinned == element.integrity
        return "pinned in another space" if same else f"pinned as {element.pinned[:_DIGITS]}"
    return "pinned" if element.locked else "not pinned"


def _label(text: str) -> str:
    """Escape text so that it cannot end a quoted label or be read as markup."""
    return "".join(
        [_ENTITIES.get(character, character) for character in " ".join(plain(text).split())]
    )


def _files(count: int) -> str:
    return "file" if count == 1 else "files"
