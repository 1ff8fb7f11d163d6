"""Noticing that tools appear, change or vanish: the project's and the user's, and the config.

Keys are watched as well: whom the user trusts decides what is listed. Two watches: a deep one on
the folders of tools and keys, and a shallow one on the ``.ai`` folders, or on their parents while
they are not there, for folders that come and go and for ``config.yaml``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
from watchfiles import Change, awatch

from rye.context import Context
from rye.mcp.featured import CONFIG_NAME
from rye.spaces.folders import CLOCK_LAG_NS

OnChange = Callable[[], Awaitable[None]]

_SETTLED_MS = 50
_LONGEST_WAIT_MS = 500
_STARTED_SECONDS = 0.1
_FOLDERS = ("tools", "trusted_keys", "approved_keys")
_NO_ITEMS = ("~", ".pyc", ".swp", ".swx", ".tmp")
_logger = logging.getLogger("rye.mcp")


class _Places(NamedTuple):
    """What can be watched at the moment."""

    shallow: tuple[Path, ...]
    deep: tuple[Path, ...]


async def watch_tools(context: Context, on_change: OnChange, on_start: OnChange) -> None:
    """Call ``on_change`` after each burst of changes, for as long as there is something to watch.

    ``on_start`` is called once, when changes begin to be seen. A machine that cannot watch is told
    of on stderr; the server goes on without.
    """
    roots = _roots(context)
    while (known := _places(roots)).shallow:
        fault = await _watch_until_moved(known, on_change, on_start)
        if fault:
            _logger.warning("changes of tools go unnoticed: %s", fault)
            return
        # What came into a new folder before it was watched is told of here.
        on_start = on_change


def changed_since(context: Context, moment: int) -> bool:
    """Whether a tool, a key or the config has come, gone or changed since ``moment`` (in ns)."""
    moment -= CLOCK_LAG_NS
    if any(_is_younger(root / CONFIG_NAME, moment) for root in _roots(context)):
        return True
    watched = [root / name for root in _roots(context) for name in _FOLDERS]
    for root in watched:
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if not _is_hidden(name)]
            paths = [Path(folder), *(Path(folder, name) for name in names)]
            if any(_is_younger(path, moment) for path in paths):
                return True
    return False


def _roots(context: Context) -> tuple[Path, ...]:
    return tuple(dict.fromkeys((context.project_path / ".ai", context.user_space / ".ai")))


def _is_younger(path: Path, moment: int) -> bool:
    try:
        return path.lstat().st_ctime_ns > moment
    except OSError:
        return False


async def _watch_until_moved(places: _Places, on_change: OnChange, on_start: OnChange) -> str:
    """Returns when a folder that is to be watched has appeared or vanished, or with a fault."""
    moved = anyio.Event()
    fault = ""

    async def follow_shallow() -> None:
        relevant = partial(_is_structure, places.shallow)
        async for changes in _watch(places.shallow, relevant, moved, recursive=False):
            if any(Path(path).name != CONFIG_NAME for _, path in changes):
                return
            await on_change()

    async def follow_deep() -> None:
        relevant = partial(_may_be_item, places.deep)
        async for _ in _watch(places.deep, relevant, moved, recursive=True):
            await on_change()

    async def follow(watch: Callable[[], Awaitable[None]]) -> None:
        nonlocal fault
        try:
            await watch()
        except FileNotFoundError:
            # It vanished before it could be watched.
            pass
        except (OSError, RuntimeError) as error:
            fault = getattr(error, "strerror", None) or type(error).__name__
        moved.set()

    async with anyio.create_task_group() as group:
        group.start_soon(follow, follow_shallow)
        if places.deep:
            group.start_soon(follow, follow_deep)
        try:
            await anyio.sleep(_STARTED_SECONDS)
            if not fault:
                await on_start()
            await moved.wait()
        finally:
            # Nothing else wakes the threads that watch.
            moved.set()
    return fault


def _watch(
    paths: Iterable[Path],
    relevant: Callable[[Change, str], bool],
    stop: anyio.Event,
    *,
    recursive: bool,
) -> AsyncIterator[set[tuple[Change, str]]]:
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


def _places(roots: Iterable[Path]) -> _Places:
    shallow, deep = [], []
    for root in roots:
        if root.is_dir():
            shallow.append(root)
        elif root.parent.is_dir():
            shallow.append(root.parent)
        deep += [root / name for name in _FOLDERS if (root / name).is_dir()]
    return _Places(tuple(dict.fromkeys(shallow)), tuple(deep))


def _is_structure(shallow: tuple[Path, ...], change: Change, path: str) -> bool:
    """Whether a folder that is watched came or went, or the config changed."""
    place = Path(path)
    if place in shallow:
        return change is Change.deleted
    if place.name == CONFIG_NAME:
        return place.parent.name == ".ai"
    return place.name in (".ai", *_FOLDERS) and change is not Change.modified


def _may_be_item(deep: tuple[Path, ...], _change: Change, path: str) -> bool:
    place = Path(path)
    root = next((root for root in deep if place.is_relative_to(root)), None)
    if root is None or place == root:
        return False
    parts = place.relative_to(root).parts
    return not any(map(_is_hidden, parts)) and not place.name.endswith(_NO_ITEMS)


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__pycache__"
