"""Lockfiles beside the present files: which match, and what differs in the others."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from rye.authoring.changes import stored_text
from rye.cache.disk import cache_of
from rye.context import Context
from rye.errors import RyeError
from rye.executor.inspection import Inspection, inspect_chain
from rye.executor.locks.pins import PinCheck
from rye.executor.pinning import Locking
from rye.formats import format_of
from rye.items.reader import read_item
from rye.trust.signed_text import text_signed_at
from rye.ui.site import Site
from rye.ui.tool_files import CHANGED, GONE, NEW, NOT_STORED, ToolFiles, difference
from rye.ui.tool_rows import drift_of

_MAX_FILES = 5
_MAX_BAD = 50
_VIEW_SECONDS = 0.1
_AT_LEAST = 20


class Pins(NamedTuple):
    """The lockfiles of a project, as far as they have been checked since the page was started."""

    checks: tuple[PinCheck, ...]
    """Those that do not match first."""
    total: int
    """How many lockfiles there are."""
    now: int
    """How many were checked for this view."""

    @property
    def bad(self) -> tuple[PinCheck, ...]:
        """Those that do not match."""
        return tuple([one for one in self.checks if not one.good])


class Drift(NamedTuple):
    """A file that is not as it was pinned."""

    name: str
    state: str
    pinned: str
    """Its hash in the lockfile, as far as it is known."""
    present: str
    diff: tuple[str, ...]
    note: str
    """Why there are no lines to show."""


class Drifts(NamedTuple):
    """What differs between a lockfile and the present files."""

    files: tuple[Drift, ...]
    others: int
    """Further files that differ."""
    note: str


def checked_pins(site: Site) -> Pins:
    """Check lockfiles for a short time; those that it does not suffice for are as a view before.

    Those that were never checked are first; then those that did not match, since somebody may have
    repaired them; then those whose check is the oldest.
    """
    until = time.monotonic() + _VIEW_SECONDS
    now = 0
    with site.preparer() as preparer:
        locking = Locking(site.context, preparer=preparer)
        paths = locking.lockfiles()
        there = set(paths)
        # The oldest check is first.
        known = {path: one for path, one in site.pins.items() if path in there}
        bad = [path for path, one in known.items() if not one.good][:_MAX_BAD]
        new = [path for path in paths if path not in known]
        for path in dict.fromkeys([*new, *bad, *known]):
            if now >= _AT_LEAST and time.monotonic() > until:
                break
            known.pop(path, None)
            known[path] = locking.check(path)
            now += 1
        site.pins = known
        preparer.flush()
    checks = sorted(known.values(), key=lambda one: (one.good, one.item_id))
    return Pins(tuple(checks), len(paths), now)


def drifts_of(item_id: str, site: Site) -> Drifts:
    """Compare the pinned files of a tool with the present ones."""
    try:
        with site.preparer() as preparer:
            seen = inspect_chain(item_id, site.context, preparer=preparer, past_lock=True)
    except RyeError as error:
        return Drifts((), 0, str(error))
    if not seen.files:
        return _of_elements(seen, site.context)
    files = ToolFiles(seen, site.context)
    pinned = files.pinned or {}
    changed = [one for one in files.files if one.state in (CHANGED, NEW, GONE)]
    found = []
    for one in changed[:_MAX_FILES]:
        text = files.text(one.key)
        diff, note = ((), "") if text is None else (text.diff, text.diff_note)
        found.append(Drift(one.name, one.state, pinned.get(one.key, ""), one.integrity, diff, note))
    return Drifts(tuple(found), max(len(changed) - _MAX_FILES, 0), files.note)


def _of_elements(seen: Inspection, context: Context) -> Drifts:
    """As far as it is known of a chain that would be refused whatever its lockfile says."""
    found = []
    for one in seen.elements:
        if one.path is None or not drift_of(one):
            continue
        diff: tuple[str, ...] = ()
        if one is seen.elements[0]:
            diff = _of_tool(Path(one.path), one.pinned, seen.pinned_closure, context)
        found.append(
            Drift(one.item_id, CHANGED, one.pinned, one.integrity, diff, "" if diff else NOT_STORED)
        )
    return Drifts(tuple(found), 0, "")


def _of_tool(path: Path, pinned: str, closure: str, context: Context) -> tuple[str, ...]:
    comment = format_of(path).comment
    old = text_signed_at(path, pinned, comment, cache_of(context.user_space))
    if old is None:
        old = stored_text(closure, pinned, comment, context)
    if old is None:
        return ()
    try:
        now = read_item(path, path.parent).content.decode(errors="replace")
    except RyeError:
        return ()
    return difference(old, now, comment)
