"""Run, detach, kill and query processes through ``lilux-proc``."""

from lilux.exports import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lilux.primitives.subprocess.blocking import BlockingSubprocess
    from lilux.primitives.subprocess.primitive import (
        KillResult,
        SpawnResult,
        StatusResult,
        SubprocessPrimitive,
    )
    from lilux.primitives.subprocess.result import SubprocessResult

__all__ = [
    "BlockingSubprocess",
    "KillResult",
    "SpawnResult",
    "StatusResult",
    "SubprocessPrimitive",
    "SubprocessResult",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "BlockingSubprocess": "lilux.primitives.subprocess.blocking",
        "KillResult": "lilux.primitives.subprocess.primitive",
        "SpawnResult": "lilux.primitives.subprocess.primitive",
        "StatusResult": "lilux.primitives.subprocess.primitive",
        "SubprocessPrimitive": "lilux.primitives.subprocess.primitive",
        "SubprocessResult": "lilux.primitives.subprocess.result",
    },
)
