"""Which texts can be the id of an item."""

from __future__ import annotations

from rye.errors import ItemIdError

MAX_ID_BYTES = 512
MAX_PART_BYTES = 200  # file systems allow 255 for a name, which also has to hold the extension

_HINT = "write the path below .ai/tools/ without its extension, like rye/bash/bash"


def check_item_id(item_id: str) -> str:
    """Gives ``item_id`` back if it can name an item; raises :class:`ItemIdError` if not.

    An id is one or more parts with ``/`` between them. No part is empty, hidden or made of dots,
    has blanks at its ends, or holds a backslash or a character that cannot be printed.
    """
    if not isinstance(item_id, str):
        raise ItemIdError(f"an item id is text, not {type(item_id).__name__}", hint=_HINT)
    fault = _fault(item_id)
    if fault:
        raise ItemIdError(f"item id {_shown(item_id)} {fault}", hint=_HINT)
    return item_id


def _fault(item_id: str) -> str:
    if not item_id:
        return "is empty"
    if not item_id.isprintable():
        return "has a character that cannot be printed"
    if item_id[0] == "/" or item_id[1:2] == ":":
        return "is an absolute path"
    if "\\" in item_id:
        return "has a backslash"
    if len(item_id.encode()) > MAX_ID_BYTES:
        return f"is longer than {MAX_ID_BYTES} bytes"
    return next(filter(None, map(_part_fault, item_id.split("/"))), "")


def _part_fault(part: str) -> str:
    if not part:
        return "has an empty part"
    if part[0] == ".":
        return f"has the part '{_shortened(part)}', which begins with a dot"
    if part[0] == " " or part[-1] == " ":
        return "has a part with a blank at its end or beginning"
    if len(part.encode()) > MAX_PART_BYTES:
        return f"has a part longer than {MAX_PART_BYTES} bytes"
    return ""


def _shown(item_id: str) -> str:
    return ascii(_shortened(item_id)) if not item_id.isprintable() else f"'{_shortened(item_id)}'"


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"
