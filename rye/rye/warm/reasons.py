"""Whether a tool can be prepared, and why not."""

from __future__ import annotations

from collections.abc import Sequence

from rye.cache.disk import DiskCache
from rye.items.element import Metadata
from rye.warm.settings import WarmSettings

OF_TOOL = "the tool says warm: false"
SWITCHED_OFF = "switched off in your config (warm)"
_KIND = "why a tool starts cold"


def has_warm_runtime(chain: Sequence[Metadata]) -> bool:
    """True if the runtime can prepare tools. The chain has a tool, runtimes and a primitive."""
    return len(chain) > 2 and chain[1].warm is True


def may_be_prepared(chain: Sequence[Metadata]) -> bool:
    """True if the runtime can prepare tools, and the tool does not refuse."""
    return has_warm_runtime(chain) and chain[0].warm is not False


def cold_reason(
    chain: Sequence[Metadata], closure: str, settings: WarmSettings, disk_cache: DiskCache
) -> str:
    """Why the calls of a tool on such a runtime start cold; empty if they are prepared."""
    if chain[0].warm is False:
        return OF_TOOL
    if not settings.enabled or settings.processes == 0:
        return SWITCHED_OFF
    found = disk_cache.recall(_KIND, closure)
    return found if isinstance(found, str) else ""


def keep_reason(disk_cache: DiskCache, closure: str, reason: str) -> None:
    """Keep why a tool cannot be prepared, for ``rye show``. It decides nothing."""
    disk_cache.keep(_KIND, closure, reason)
