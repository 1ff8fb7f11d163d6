"""Lockfiles: their data structures, and I/O at explicit paths."""

from lilux.exports import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lilux.primitives.lockfile.manager import (
        MAX_LOCKFILE_BYTES,
        Lockfile,
        LockfileManager,
        LockfileRoot,
    )

__all__ = [
    "MAX_LOCKFILE_BYTES",
    "Lockfile",
    "LockfileManager",
    "LockfileRoot",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "MAX_LOCKFILE_BYTES": "lilux.primitives.lockfile.manager",
        "Lockfile": "lilux.primitives.lockfile.manager",
        "LockfileManager": "lilux.primitives.lockfile.manager",
        "LockfileRoot": "lilux.primitives.lockfile.manager",
    },
)
