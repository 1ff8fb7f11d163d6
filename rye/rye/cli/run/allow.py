"""``rye run --allow``: what a person allows for one call."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rye.errors import ParameterError
from rye.executor.run.confine import Widening
from rye.items.permissions import permissions_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LISTS = ("read", "write", "run", "env", "net")
_HINT = "write net, net=HOST:PORT, read=PATH, write=PATH, run=NAME, env=NAME or unenforced"


def parse_allow(given: Sequence[str]) -> Widening:
    """Return what the arguments allow. Raises :class:`ParameterError`."""
    fields, unenforced = allowed_fields(given)
    permissions, fault = permissions_from(fields, "--allow")
    if fault:
        raise ParameterError("invalid --allow", [fault], hint=_HINT)
    return Widening(permissions=permissions, unenforced=unenforced)


def allowed_fields(given: Sequence[str]) -> tuple[dict[str, Any], bool]:
    """Return the permissions as an author writes them, and whether ``unenforced`` is among them."""
    fields: dict[str, Any] = {}
    unenforced = False
    for one in given:
        key, equals, value = one.partition("=")
        if one == "unenforced":
            unenforced = True
        elif one == "net":
            fields["net"] = True
        elif equals and key in _LISTS and value:
            listed = fields.setdefault(key, [])
            if listed is not True:
                listed.append(_path(value) if key in ("read", "write") else value)
        else:
            raise ParameterError("invalid --allow", [f"{one!r} is not understood"], hint=_HINT)
    return fields, unenforced


def _path(value: str) -> str:
    """A person writes paths relative to the current folder, as everywhere on a command line."""
    if value == "tmp" or value.startswith(("~", "{")):
        return value
    return os.path.abspath(value)  # noqa: PTH100 - a text; links are resolved later
