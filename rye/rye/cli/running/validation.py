"""The library that parameters are validated with, loaded for less."""

from __future__ import annotations

import sys


def load_validation() -> None:
    """Import ``jsonschema_rs``, for a program that has no other thread under way.

    It asks the standard library for one thing, to read the date on which it was built, and with
    that come sockets, random numbers and calendars: as much work as all the rest of it. So that one
    question is answered here; for any other there would be the real module.
    """
    name = "email.utils"
    if name in sys.modules:
        return
    stand_in = type(sys)(name)
    stand_in.__dict__.update(parsedate_to_datetime=str, __getattr__=_of_the_real_one)
    sys.modules[name] = stand_in
    try:
        import jsonschema_rs  # noqa: F401 - for whoever needs it next
    finally:
        if sys.modules.get(name) is stand_in:
            del sys.modules[name]


def _of_the_real_one(attribute: str) -> object:
    sys.modules.pop("email.utils", None)
    import email.utils

    return getattr(email.utils, attribute)
