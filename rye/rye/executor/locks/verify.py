"""Checks the entries of a lockfile against the current files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path

from lilux.record import Record

from rye.context import Context
from rye.errors import ItemFormatError, RyeError
from rye.executor.chain.snapshot import Library, Snapshot
from rye.spaces.model import Resolution, Space
from rye.trust.verify import Standing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Breach(Enum):
    """How an element can differ from its pin, from the mildest to the worst."""

    MISSING = "missing"
    EDITED = "edited"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    SHADOWED = "shadowed"
    TAMPERED = "tampered"
    MALFORMED = "malformed"


class Violation(Record, frozen=True, kw_only=True):
    """One entry that does not match, as text and as fields."""

    breach: Breach
    item_id: str
    message: str
    path: Path | None = None
    pinned: str = ""
    found: str = ""


class IntegrityResult(Record, frozen=True, kw_only=True):
    """Every mismatch between a locked chain and the current files."""

    violations: tuple[Violation, ...] = ()

    @property
    def success(self) -> bool:
        """True if every entry matches."""
        return not self.violations


class IntegrityVerifier:
    """Checks lock entries against the files of ``snapshot``.

    Without a snapshot, against the files of this machine at the time of each call.
    """

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        self._snapshot: Callable[[], Snapshot] = (
            Library(Context.from_machine()).snapshot if snapshot is None else lambda: snapshot
        )

    def verify_chain(
        self, resolved_chain: Sequence[Mapping[str, Any]], tool: Resolution | None = None
    ) -> IntegrityResult:
        """Resolve every entry and compare its space and hash with what is pinned.

        An entry is resolved from the space of the one before it, as when a chain is built;
        ``tool`` is the resolution of the first one, if it is known. A malformed entry is a
        violation and not an exception; a file that cannot be read raises the reader's error.
        """
        return IntegrityResult(
            violations=tuple(_violations(resolved_chain, self._snapshot(), tool))
        )


def _violations(
    entries: Sequence[Mapping[str, Any]], snapshot: Snapshot, tool: Resolution | None
) -> Iterator[Violation]:
    from_space: Space | None = None
    for index, entry in enumerate(entries):
        item_id = entry.get("item_id") or entry.get("tool_id")
        integrity = entry.get("integrity")
        if not isinstance(item_id, str) or not isinstance(integrity, str) or not integrity:
            yield Violation(
                breach=Breach.MALFORMED,
                item_id=str(item_id or ""),
                message=f"resolved_chain[{index}] lacks its item_id or its integrity",
            )
            return
        try:
            known = tool if tool is not None and index == 0 and tool.item_id == item_id else None
            resolution = known or snapshot.resolve(item_id, from_space)
        except RyeError as error:
            yield Violation(breach=Breach.MISSING, item_id=item_id, message=str(error))
            return
        if resolution.path is None:
            yield Violation(
                breach=Breach.MISSING,
                item_id=item_id,
                message=f"{item_id!r} is pinned, but no longer has a file",
            )
            return
        yield from _differences(entry, resolution, snapshot)
        from_space = resolution.space


def _differences(
    entry: Mapping[str, Any], resolution: Resolution, snapshot: Snapshot
) -> Iterator[Violation]:
    pinned_space = entry.get("space", resolution.space.name)
    verdict = snapshot.verdict(resolution)
    pinned, found = entry["integrity"], verdict.content_hash
    if pinned_space != resolution.space.name:
        breach = Breach.SHADOWED
        message = (
            f"{resolution.item_id!r} is pinned in the {pinned_space} space ({pinned}), but "
            f"{resolution.path} of the {resolution.space.name} space ({found}) now takes its place"
        )
    elif pinned == found:
        return
    elif verdict.trusted:
        breach, message = _signed_change(entry, resolution, snapshot, found)
    elif verdict.standing is Standing.CHANGED and snapshot.changed_by_author(resolution):
        breach = Breach.EDITED
        message = f"{resolution.item_id} changed since you signed it: {resolution.path}"
    else:
        breach = Breach.TAMPERED
        message = (
            f"{resolution.item_id!r} is pinned as {pinned}, but {resolution.path} is {found}, "
            f"not validly signed ({verdict.standing.value}): an unsigned edit or tampering"
        )
    yield Violation(
        breach=breach,
        item_id=resolution.item_id,
        message=message,
        path=resolution.path,
        pinned=pinned,
        found=found,
    )


def _signed_change(
    entry: Mapping[str, Any], resolution: Resolution, snapshot: Snapshot, found: str
) -> tuple[Breach, str]:
    old = entry.get("version")
    try:
        new = snapshot.metadata(resolution).version or "0.0.0"
    except ItemFormatError:
        new = ""
    if old is None or new in ("", old):
        return Breach.UPGRADE, (
            f"{resolution.item_id!r} is pinned as {entry['integrity']}, but {resolution.path} is "
            f"{found}, validly signed: an upgrade"
        )
    order, breach, kind = _compared(new, str(old))
    return breach, (
        f"{resolution.item_id!r} {new} is {order} the pinned {old} ({resolution.path}, validly "
        f"signed): {kind}"
    )


def _compared(new: str, old: str) -> tuple[str, Breach, str]:
    """How to say in which direction the version changed; not all versions can be compared."""
    from packaging.version import InvalidVersion, Version

    try:
        before, after = Version(old), Version(new)
    except InvalidVersion:
        before = after = Version("0")
    if after < before:
        return "older than", Breach.DOWNGRADE, "a downgrade"
    if after > before:
        return "newer than", Breach.UPGRADE, "an upgrade"
    return "another version than", Breach.UPGRADE, "a change"
