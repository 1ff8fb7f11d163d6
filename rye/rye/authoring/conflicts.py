"""Merge conflicts that only a signature and a pin can end: their lines are made, not merged."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from lilux.files.atomic import atomic_write

from rye.context import Context
from rye.errors import LockError, RyeError
from rye.executor.locks.file import LockfileResolver
from rye.formats import format_of
from rye.items.reader import read_item

_HUNK = rb"(?ms)^<{7} [^\n]*\n(.*?)^={7}\r?\n(.*?)^>{7} [^\n]*\n"


def resolve_signatures(path: Path, root: Path) -> bool:
    """Remove the conflicts whose sides are only signature lines; true if there were any.

    Other conflicts stay: they are about the content, which the user merges.
    """
    content = read_item(path, root).content
    comment = re.escape(format_of(path).comment.encode())
    line = re.compile(rb"(?:\|{7}[^\n]*|[ \t]*" + comment + rb"[ \t]*rye:signed:[^\n]*)?\r?")

    def resolved(hunk: re.Match[bytes]) -> bytes:
        lines = [one for side in hunk.groups() for one in side.split(b"\n")]
        return b"" if all(line.fullmatch(one) for one in lines) else hunk[0]

    merged = re.sub(_HUNK, resolved, content)
    if merged == content:
        return False
    atomic_write(path, merged, mode=stat.S_IMODE(path.stat().st_mode))
    return True


def pins_in_conflict(item_ids: Iterable[str], context: Context) -> Iterator[str]:
    """The tools whose lockfile cannot be read, or that have several, as after a merge."""
    lockfiles = LockfileResolver(context)
    for item_id in item_ids:
        try:
            lockfiles.find(item_id)
        except LockError:
            yield item_id
        except RyeError:
            continue
