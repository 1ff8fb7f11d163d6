"""The ids of primitives, which no file of a project or a user can take."""

from __future__ import annotations

from rye.spaces.entry_points import PRIMITIVES, announcements

SUBPROCESS = "rye/core/primitives/subprocess"
HTTP_CLIENT = "rye/core/primitives/http_client"


def primitive_ids() -> tuple[str, ...]:
    """Those of Rye first, then the names that packages announce as ``rye.primitives``."""
    announced = announcements(PRIMITIVES)
    return tuple(dict.fromkeys((SUBPROCESS, HTTP_CLIENT, *(each.name for each in announced))))
