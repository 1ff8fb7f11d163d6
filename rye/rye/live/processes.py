"""The processes of a running tool, as the kernel shows them: names, processor time, memory.

Names, not command lines: those may contain values that a page must not show.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_MAX_PROCESSES = 200
_MAX_DEPTH = 32
_PROC = Path("/proc")


class Process(NamedTuple):
    """One process, and how deep it is below the first one."""

    depth: int
    pid: int
    name: str
    cpu_seconds: float
    memory_bytes: int


def processes_of(pid: int) -> list[Process]:
    """Return the process and everything below it, each after its parent; empty if it has ended."""
    found: list[Process] = []
    waiting = [(0, pid)]
    while waiting and len(found) < _MAX_PROCESSES:
        depth, one = waiting.pop()
        facts = _facts(depth, one) if one > 1 else None
        if facts is not None:
            found.append(facts)
            if depth < _MAX_DEPTH:
                waiting += [(depth + 1, child) for child in sorted(_children(one), reverse=True)]
    return found


def _facts(depth: int, pid: int) -> Process | None:
    folder = _PROC / str(pid)
    try:
        if folder.stat().st_uid != os.geteuid():
            return None
        text = (folder / "stat").read_text("utf-8", "replace")
    except OSError:
        return None
    # The name is in parentheses, and may contain some.
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    ticks = int(fields[11]) + int(fields[12])
    memory = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    return Process(depth, pid, name, ticks / os.sysconf("SC_CLK_TCK"), memory)


def _children(pid: int) -> Iterator[int]:
    try:
        tasks = list((_PROC / str(pid) / "task").iterdir())
    except OSError:
        return
    for task in tasks:
        try:
            yield from map(int, (task / "children").read_text().split())
        except (OSError, ValueError):
            continue
