"""Run, detach, kill and query processes through ``lilux-proc``."""

from lilux.exports import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lilux.primitives.subprocess.blocking import BlockingSubprocess
    from lilux.primitives.subprocess.confinement import (
        Confinement,
        ConfinementLimits,
        ConfinementReport,
        MissingPart,
    )
    from lilux.primitives.subprocess.observation import Access, Observation
    from lilux.primitives.subprocess.prepared import PreparedProcess
    from lilux.primitives.subprocess.primitive import (
        KillResult,
        SpawnResult,
        StatusResult,
        SubprocessPrimitive,
    )
    from lilux.primitives.subprocess.result import SubprocessResult

__all__ = [
    "Access",
    "BlockingSubprocess",
    "Confinement",
    "ConfinementLimits",
    "ConfinementReport",
    "KillResult",
    "MissingPart",
    "Observation",
    "PreparedProcess",
    "SpawnResult",
    "StatusResult",
    "SubprocessPrimitive",
    "SubprocessResult",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "BlockingSubprocess": "lilux.primitives.subprocess.blocking",
        "Confinement": "lilux.primitives.subprocess.confinement",
        "ConfinementLimits": "lilux.primitives.subprocess.confinement",
        "ConfinementReport": "lilux.primitives.subprocess.confinement",
        "MissingPart": "lilux.primitives.subprocess.confinement",
        "Access": "lilux.primitives.subprocess.observation",
        "Observation": "lilux.primitives.subprocess.observation",
        "PreparedProcess": "lilux.primitives.subprocess.prepared",
        "KillResult": "lilux.primitives.subprocess.primitive",
        "SpawnResult": "lilux.primitives.subprocess.primitive",
        "StatusResult": "lilux.primitives.subprocess.primitive",
        "SubprocessPrimitive": "lilux.primitives.subprocess.primitive",
        "SubprocessResult": "lilux.primitives.subprocess.result",
    },
)
