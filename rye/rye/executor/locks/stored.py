"""A decoded lockfile as JSON and back, for the disk cache."""

from __future__ import annotations

from lilux.primitives.lockfile import Lockfile, LockfileRoot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def lockfile_to_json(lockfile: Lockfile) -> dict[str, Any]:
    """All fields; ``lockfile_from_json`` gives an equal object."""
    root = lockfile.root
    return {
        "lockfile_version": lockfile.lockfile_version,
        "generated_at": lockfile.generated_at,
        "root": [root.tool_id, root.version, root.integrity, root.extra],
        "resolved_chain": lockfile.resolved_chain,
        "registry": lockfile.registry,
        "verified_deps": lockfile.verified_deps,
        "extra": lockfile.extra,
    }


def lockfile_from_json(values: dict[str, Any]) -> Lockfile:
    """The lockfile that was kept."""
    return Lockfile(**{**values, "root": LockfileRoot(*values["root"])})
