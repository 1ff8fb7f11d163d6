"""Item ids: which texts are valid, and which ids are reserved for primitives."""

from __future__ import annotations

from rye.errors import ItemIdError
from rye.spaces.entry_points import PRIMITIVES, entry_points

SUBPROCESS = "rye/core/primitives/subprocess"
HTTP_CLIENT = "rye/core/primitives/http_client"

MAX_ID_BYTES = 512
MAX_PART_BYTES = 200  # file systems allow 255 for a name, which includes the extension

_HINT = "write the path below .ai/tools/ without its extension, like rye/bash/bash"


def primitive_ids() -> tuple[str, ...]:
    """Return the ids of primitives, which no file of a project or a user can take.

    Rye's own are first, then the names of the entry points in ``rye.primitives``.
    """
    added = [each.name for each in entry_points(PRIMITIVES)]
    return tuple(dict.fromkeys((SUBPROCESS, HTTP_CLIENT, *added)))


def check_item_id(item_id: str) -> str:
    """Return ``item_id`` if it is valid; raise :class:`ItemIdError` if it is not.

    An id consists of parts separated by ``/``. A part is not empty, does not start with a dot,
    does not start or end with a space, and has no backslash and no unprintable character.
    """
    if not isinstance(item_id, str):
        raise ItemIdError(f"an item id must be a string, not {type(item_id).__name__}", hint=_HINT)
    fault = _fault(item_id)
    if fault:
        raise ItemIdError(f"item id {_shown(item_id)} {fault}", hint=_HINT)
    return item_id


def _fault(item_id: str) -> str:
    if not item_id:
        return "is empty"
    if not item_id.isprintable():
        return "has an unprintable character"
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
        return "has a part that starts or ends with a space"
    if len(part.encode()) > MAX_PART_BYTES:
        return f"has a part longer than {MAX_PART_BYTES} bytes"
    return ""


def _shown(item_id: str) -> str:
    return ascii(_shortened(item_id)) if not item_id.isprintable() else f"'{_shortened(item_id)}'"


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"
