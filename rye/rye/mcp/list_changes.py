"""Noticing changes of the tool list.

Watched are the tools and the ``config.yaml`` of the project and the user, the trusted keys and the
approved projects, which decide which tools are listed. There are two watches. A recursive one is on
the directories of tools, keys and approvals. A flat one is on the ``.ai`` directories, or on their
parents while they do not exist: it notices directories that appear or disappear, and changes of
``config.yaml``.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rye.context import CONFIG_NAME, Context
from rye.spaces.folders import CLOCK_LAG_NS

if TYPE_CHECKING:
    from watchfiles import Change

    OnChange = Callable[[], Awaitable[None]]
    IsRelevant = Callable[[Change, str], bool]

_SETTLED_MS = 50
_LONGEST_WAIT_MS = 500
_WATCHING_AFTER_SECONDS = 0.1
_DIRECTORIES = ("tools", "trusted_keys", "approved_keys", "approved_projects")
_TEMPORARY_SUFFIXES = ("~", ".pyc", ".swp", ".swx", ".tmp")
_logger = logging.getLogger("rye.mcp")


async def watch_tools(context: Context, on_change: OnChange, on_start: OnChange) -> None:
    """Call ``on_change`` after each burst of changes, as long as there is a directory to watch.

    ``on_start`` is called once, when the watch is active. If the machine cannot watch files, that
    is logged and the server continues without.
    """
    # In a thread, since it takes longer than a client should wait for an answer.
    await asyncio.to_thread(__import__, "watchfiles")
    roots = _roots(context)
    while (paths := _paths(roots)).flat:
        fault = await _watch_until_moved(paths, on_change, on_start)
        if fault:
            log_not_watching(fault)
            return
        # A new directory may have got content before it was watched.
        on_start = on_change


def log_not_watching(reason: str) -> None:
    """Log that changes of tools are not noticed."""
    _logger.warning("cannot watch for changes of tools: %s", reason)


def changed_since(context: Context, moment: int) -> bool:
    """Return True if a tool, key or config was added, removed or changed since ``moment`` (ns)."""
    moment -= CLOCK_LAG_NS
    if any(_is_younger(root / CONFIG_NAME, moment) for root in _roots(context)):
        return True
    watched = [root / name for root in _roots(context) for name in _DIRECTORIES]
    for root in watched:
        for directory, directories, names in os.walk(root):
            directories[:] = [name for name in directories if not _is_hidden(name)]
            paths = [Path(directory), *(Path(directory, name) for name in names)]
            if any(_is_younger(path, moment) for path in paths):
                return True
    return False


class _Paths(NamedTuple):
    """The directories that exist and can be watched now."""

    flat: tuple[Path, ...]
    recursive: tuple[Path, ...]


def _roots(context: Context) -> tuple[Path, ...]:
    return tuple(dict.fromkeys((context.project_path / ".ai", context.user_space / ".ai")))


def _paths(roots: Iterable[Path]) -> _Paths:
    flat, recursive = [], []
    for root in roots:
        if root.is_dir():
            flat.append(root)
        elif root.parent.is_dir():
            flat.append(root.parent)
        recursive += [root / name for name in _DIRECTORIES if (root / name).is_dir()]
    return _Paths(tuple(dict.fromkeys(flat)), tuple(recursive))


def _is_younger(path: Path, moment: int) -> bool:
    try:
        return path.lstat().st_ctime_ns > moment
    except OSError:
        return False


async def _watch_until_moved(paths: _Paths, on_change: OnChange, on_start: OnChange) -> str:
    """Watch until a directory of interest appears or disappears.

    Returns the reason if the directories cannot be watched, else an empty string.
    """
    moved = asyncio.Event()
    fault = ""

    async def follow_flat() -> None:
        relevant = partial(_is_structural, paths.flat)
        async for changes in _watch(paths.flat, relevant, moved, recursive=False):
            if any(Path(path).name != CONFIG_NAME for _, path in changes):
                return
            await on_change()

    async def follow_recursive() -> None:
        relevant = partial(_may_be_item, paths.recursive)
        async for _ in _watch(paths.recursive, relevant, moved, recursive=True):
            await on_change()

    async def follow(watch: Callable[[], Awaitable[None]]) -> None:
        nonlocal fault
        try:
            await watch()
        except FileNotFoundError:
            # The directory disappeared before it could be watched.
            pass
        except (OSError, RuntimeError) as error:
            fault = getattr(error, "strerror", None) or type(error).__name__
        moved.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(follow(follow_flat))
        if paths.recursive:
            group.create_task(follow(follow_recursive))
        try:
            await asyncio.sleep(_WATCHING_AFTER_SECONDS)
            if not fault:
                await on_start()
            await moved.wait()
        finally:
            # The event also wakes the watching threads; cancellation does not.
            moved.set()
    return fault


def _watch(
    paths: Iterable[Path], relevant: IsRelevant, stop: asyncio.Event, *, recursive: bool
) -> AsyncIterator[set[tuple[Change, str]]]:
    from watchfiles import awatch

    return awatch(
        *paths,
        watch_filter=relevant,
        debounce=_LONGEST_WAIT_MS,
        step=_SETTLED_MS,
        stop_event=stop,
        recursive=recursive,
        force_polling=False,
        ignore_permission_denied=True,
    )


def _is_structural(flat: tuple[Path, ...], change: Change, path: str) -> bool:
    """Return True if a watched directory appeared or disappeared, or the config changed."""
    changed = Path(path)
    if changed in flat:
        return change.name == "deleted"
    if changed.name == CONFIG_NAME:
        return changed.parent.name == ".ai"
    return changed.name in (".ai", *_DIRECTORIES) and change.name != "modified"


def _may_be_item(recursive: tuple[Path, ...], _change: Change, path: str) -> bool:
    changed = Path(path)
    root = next((root for root in recursive if changed.is_relative_to(root)), None)
    if root is None or changed == root:
        return False
    parts = changed.relative_to(root).parts
    return not any(map(_is_hidden, parts)) and not changed.name.endswith(_TEMPORARY_SUFFIXES)


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__pycache__"
