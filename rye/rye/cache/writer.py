"""Putting entries into the folder of a disk cache, and keeping it small."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from lilux.files.atomic import atomic_write

from rye.ownership import is_private

_STALE_SECONDS = 30 * 24 * 3600


def write_entries(folder: str, entries: Mapping[str, bytes], max_entries: int) -> None:
    """Write what is possible; raises nothing. Beyond ``max_entries`` the older half goes."""
    if not _prepared(folder):
        return
    try:
        for name, data in entries.items():
            # A power failure may leave an entry empty, which is seen: that need not be waited for.
            atomic_write(f"{folder}/{name}", data, mode=0o600, synced=False)
        _shrink(folder, max_entries)
    except OSError:
        return


def _prepared(folder: str) -> bool:
    """Make the folder, where it is this user's to make."""
    if is_private(folder):
        return True
    path = Path(folder)
    above = next((one for one in path.parents if one.exists()), path)
    try:
        # Whoever works as another user, as with sudo, leaves nothing in somebody's home.
        if above.stat().st_uid != os.geteuid():
            return False
        for one in (*reversed(path.parents), path):
            one.mkdir(mode=0o700, exist_ok=True)
        if not is_private(folder):
            return False
        _forget_old_versions(path)
    except OSError:
        return False
    return True


def _forget_old_versions(current: Path) -> None:
    for other in current.parent.iterdir():
        # Not what a link leads to: that is no cache.
        if is_private(str(other)) and time.time() - other.stat().st_mtime > _STALE_SECONDS:
            for entry in other.iterdir():
                entry.unlink()
            other.rmdir()


def _shrink(folder: str, max_entries: int) -> None:
    with os.scandir(folder) as found:
        entries = list(found)
    if len(entries) <= max_entries:
        return
    by_age = sorted(entries, key=lambda entry: entry.stat(follow_symlinks=False).st_mtime_ns)
    for entry in by_age[: len(entries) // 2]:
        os.unlink(entry.path)  # noqa: PTH108 - a text
