"""The ids of primitives, which no file of a project or a user can take."""

from __future__ import annotations

from rye.spaces.entry_points import PRIMITIVES, announcements

BUILT_IN = ("rye/core/primitives/subprocess", "rye/core/primitives/http_client")


def primitive_ids() -> tuple[str, ...]:
    """Those of Rye first, then the names that packages announce as ``rye.primitives``."""
    announced = announcements(PRIMITIVES)
    return tuple(dict.fromkeys((*BUILT_IN, *(each.name for each in announced))))
