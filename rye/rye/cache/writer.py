"""Writing entries of the disk cache, and removing old ones. Loaded only when there are new ones."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from lilux.files.atomic import atomic_write

from rye.ownership import is_private

_STALE_SECONDS = 30 * 24 * 3600


def write_entries(folder: str, entries: Mapping[str, bytes], max_entries: int) -> None:
    """Write the entries if possible; raises nothing.

    If there are more than ``max_entries``, the older half is removed.
    """
    if not _prepare(folder):
        return
    try:
        for name, data in entries.items():
            # No fsync: an entry that a power failure leaves empty is detected and ignored.
            atomic_write(f"{folder}/{name}", data, mode=0o600, synced=False)
        _shrink(folder, max_entries)
    except OSError:
        return


def _prepare(folder: str) -> bool:
    """Create the folder, unless the place belongs to another user; true if it can be used."""
    if is_private(folder):
        return True
    path = Path(folder)
    above = next((one for one in path.parents if one.exists()), path)
    try:
        # Under sudo, root must not leave files in the home of another user.
        if above.stat().st_uid != os.geteuid():
            return False
        for one in (*reversed(path.parents), path):
            one.mkdir(mode=0o700, exist_ok=True)
        if not is_private(folder):
            return False
        _remove_old_versions(path)
    except OSError:
        return False
    return True


def _remove_old_versions(current: Path) -> None:
    for other in current.parent.iterdir():
        # is_private() is false for a link, whose target is not a cache.
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
        os.unlink(entry.path)  # noqa: PTH108 - a string
