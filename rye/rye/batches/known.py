"""The batches of a user: those in ``~/.ai/batches``, and links there to those elsewhere."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from rye.context import Context
from rye.recording.run_ids import is_run_id, new_run_id


def batches_of(context: Context) -> Path:
    """The folder of the batches in the user's space, which need not exist."""
    return context.user_space / ".ai" / "batches"


def new_folder(context: Context) -> Path:
    """A folder for a new batch, in the user's space."""
    return batches_of(context) / new_run_id(int(time.time() * 1000))


def remember(path: Path, context: Context) -> None:
    """Leave a link to a batch that is kept elsewhere, so that it can be found.

    Links whose batches are gone are removed. What cannot be written is not needed to run a batch.
    """
    folder = batches_of(context)
    if path.parent == folder:
        return
    with suppress(OSError):
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        for name in known_batches(context):
            link = folder / name
            if link.is_symlink() and (not link.exists() or link.samefile(path)):
                link.unlink()
        (folder / new_run_id(int(time.time() * 1000))).symlink_to(path)


def known_batches(context: Context) -> list[str]:
    """The names of the batches, the newest first."""
    try:
        names = [one.name for one in batches_of(context).iterdir()]
    except OSError:
        return []
    return sorted(filter(is_run_id, names), reverse=True)


def path_of(name: str, context: Context) -> Path | None:
    """Return the folder of a batch; ``None`` if there is none of this name."""
    path = batches_of(context) / name
    return path.resolve() if is_run_id(name) and path.is_dir() else None
