"""The files of a tool's closure: their text, and what changed since they were pinned."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rye.cache.disk import cache_of
from rye.closure.manifest import PROJECT, TOOL
from rye.closure.store import StoredClosure, store_of
from rye.context import Context
from rye.errors import ClosureError, RyeError
from rye.executor.inspection import Inspection, ShownFile
from rye.formats import format_of
from rye.items.reader import read_item
from rye.trust.signature import split_signature
from rye.trust.signed_text import text_signed_at

_MAX_TEXT = 200_000
_MAX_DIFF = 2_000
# In the order in which the files are listed.
ROLES = {
    "tool": "the tool",
    "library": "code of the tool",
    "anchor": "code that the tool shares",
    "data": "data of the tool",
    "marker": "mark of the tool's folder",
    "project": "file of the project, not signed",
    "runtime": "runtime or primitive",
    "runtime_library": "code of the runtime",
    "runtime_data": "data of the runtime",
}

NOT_STORED = "The pinned version is not stored on this machine: no difference can be shown."

SAME, CHANGED, NEW, GONE = "as pinned", "changed since pinned", "not pinned", "missing"


class ToolFile(NamedTuple):
    """A file, beside its pinned version."""

    key: str
    """What the address of its text has."""
    role: str
    name: str
    path: str
    integrity: str
    state: str
    """One of the words above; empty if the tool is not pinned."""


class FileText(NamedTuple):
    """The text of a file, and the difference to the pinned one."""

    file: ToolFile
    text: str
    note: str
    """Why there is no text, or not all of it."""
    diff: tuple[str, ...]
    diff_note: str
    """Why there is no difference to show, although the file changed."""


class ToolFiles:
    """All files of a tool."""

    def __init__(self, seen: Inspection, context: Context) -> None:
        self._context = context
        found = seen.files or (() if seen.claimed is None else seen.claimed.files)
        self.verified = bool(seen.files)
        """False if the only file is that of a tool that is refused."""
        self._sources = {_key(one): one for one in found}
        self._tool_pin = seen.elements[0].pinned
        self._stored, self.note = _stored(seen, context)
        self.pinned = _pinned_hashes(seen, self._stored, found)
        shown = sorted(found, key=lambda one: list(ROLES).index(one.role))
        missing = self._missing() if self.verified else ()
        self.files = (*map(self._file, shown), *missing)

    @property
    def drifted(self) -> bool:
        """True if a file is not as it was pinned."""
        return any(one.state in (CHANGED, NEW, GONE) for one in self.files)

    def text(self, key: str) -> FileText | None:
        """Return the text of one file, and how it differs; ``None`` if there is no such file."""
        file = next((one for one in self.files if one.key == key), None)
        if file is None:
            return None
        text, note = ("", "the file is missing now")
        source = self._sources.get(key)
        if source is not None:
            text, note = _text_of(source)
        diff: tuple[str, ...] = ()
        diff_note = ""
        if file.state in (CHANGED, GONE):
            old = self._old_text(file)
            if old is None:
                diff_note = NOT_STORED
            else:
                diff = difference(old, text, format_of(Path(file.name)).comment)
        return FileText(file, text[:_MAX_TEXT], note, diff, diff_note)

    def _file(self, one: ShownFile) -> ToolFile:
        key = _key(one)
        state = ""
        if self.pinned is not None:
            pin = self.pinned.get(key)
            state = NEW if pin is None else SAME if pin == one.integrity else CHANGED
        return ToolFile(
            key, ROLES.get(one.role, one.role), one.name, one.path, one.integrity, state
        )

    def _missing(self) -> list[ToolFile]:
        gone = [key for key in self.pinned or {} if key not in self._sources]
        return [
            ToolFile(key, ROLES.get(key.partition(":")[0], ""), key.partition(":")[2], "", "", GONE)
            for key in gone
        ]

    def _old_text(self, file: ToolFile) -> str | None:
        role, _, name = file.key.partition(":")
        content: bytes | None = None
        if self._stored is not None:
            for one in self._stored.manifest.files:
                if (one.role, one.path) == (role, name) and one.place is not None:
                    content = _bytes(Path(self._stored.root, one.place))
        if content is None and role == TOOL and file.path:
            path = Path(file.path)
            cache = cache_of(self._context.user_space)
            signed = text_signed_at(path, self._tool_pin, format_of(path).comment, cache)
            content = None if signed is None else signed.encode()
        try:
            return None if content is None else content.decode()
        except UnicodeDecodeError:
            return None


def _key(one: ShownFile) -> str:
    return f"{one.role}:{one.name}"


def _stored(seen: Inspection, context: Context) -> tuple[StoredClosure | None, str]:
    """The pinned closure, and what a person should know if it cannot be used."""
    if not seen.pinned_closure or seen.pinned_closure == seen.elements[0].closure:
        return None, ""
    try:
        return store_of(context).open(seen.pinned_closure), ""
    except ClosureError as error:
        return None, str(error)


def _pinned_hashes(
    seen: Inspection, stored: StoredClosure | None, files: Sequence[ShownFile]
) -> Mapping[str, str] | None:
    """Key → pinned hash of each file, as far as it is known; ``None`` without a lockfile."""
    if seen.lockfile is None or not files:
        return None
    if stored is not None:
        return {f"{one.role}:{one.path}": one.sha256 for one in stored.manifest.files}
    pinned = {_key(one): one.integrity for one in files}
    changed = {one.path: one.pinned for one in seen.elements if one.pinned}
    supporting = dict(seen.pinned)
    hashes = set(supporting.values())
    for one in files:
        if one.path in changed:
            pinned[_key(one)] = changed[one.path]
        elif dict(seen.dependencies) != supporting and one.integrity not in hashes:
            # The names in a lockfile and in a closure differ, but the hashes do not.
            pinned[_key(one)] = supporting.get(
                f"{PROJECT}:{one.name}", supporting.get(one.name, "")
            )
    return pinned


def _text_of(source: ShownFile) -> tuple[str, str]:
    try:
        content = read_item(Path(source.path), Path(source.folder)).content
    except RyeError as error:
        return "", str(error)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return "", f"{len(content):,} bytes that are not text"
    note = f"only the first {_MAX_TEXT:,} characters are shown" if len(text) > _MAX_TEXT else ""
    return text, note


def difference(old: str, new: str, comment: str) -> tuple[str, ...]:
    """Return the lines of a unified diff without signatures, as many as a page shows."""
    before, after = [
        split_signature(text.encode(errors="replace"), comment).signed_bytes.decode().splitlines()
        for text in (old, new)
    ]
    found = list(difflib.unified_diff(before, after, "pinned", "now", lineterm="", n=3))
    if len(found) > _MAX_DIFF:
        found[_MAX_DIFF:] = [f"… and {len(found) - _MAX_DIFF:,} more lines"]
    return tuple(found)


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
