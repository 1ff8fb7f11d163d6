"""Revoked keys: a signature by such a key is refused, whoever trusts the key.

::

    {user}/.ai/revoked_keys/{fingerprint}.toml      in all projects of this user
    {project}/.ai/revoked_keys/{fingerprint}.toml   for everybody who calls tools in this project

    fingerprint = "4be1c20d9a7f3358"
    owner = "alice@example.org"
    revoked = "2026-11-03T14:25:30Z"
    reason = "the laptop was stolen"

The name of the file revokes the key; the content is for people. So a damaged file still revokes,
and a folder that cannot be read refuses every key.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path

from lilux.record import Record, replaced

from rye.context import Context
from rye.errors import KeyStoreError
from rye.trust.key_folder import KeyFileProblem, KeyFolder, KeyListing, read_key_file
from rye.trust.key_format import FINGERPRINT, MAX_OWNER_CHARACTERS, quoted, time_now
from rye.trust.key_source import KeyEntry

FOLDER = "revoked_keys"
_FIELDS = ("owner", "revoked", "reason")


class Revocation(Record, frozen=True, kw_only=True):
    """One revoked key. The texts are empty if the file does not have them."""

    fingerprint: str
    path: Path
    owner: str = ""
    revoked: str = ""
    reason: str = ""

    @property
    def words(self) -> str:
        """When and why, in parentheses; empty if the file does not say it."""
        said = [text for text in (self.revoked[:10], self.reason) if text]
        return f" ({', '.join(said)})" if said else ""


class Revocations:
    """The two folders. They are looked at with the trust store."""

    def __init__(self, context: Context) -> None:
        user, project = context.user_space / ".ai", context.project_path / ".ai"
        self.user = KeyFolder(user / FOLDER, guarded=True)
        # A project can only take trust away here, so anybody may write to its folder.
        self.project = KeyFolder(project / FOLDER, guarded=False) if project != user else self.user
        self._folders = (self.user,) if self.project is self.user else (self.user, self.project)

    def look(self) -> tuple[Hashable, tuple[KeyListing, ...]]:
        """Return a value that differs after any change, and the current listings."""
        found = [folder.look() for folder in self._folders]
        return tuple([look for look, _ in found]), tuple([listing for _, listing in found])


def revoked_by(fingerprint: str, listings: tuple[KeyListing, ...]) -> Path | None:
    """Return the file that revokes a key; ``None`` if none does."""
    for listing in listings:
        if fingerprint in listing.stems:
            return listing.path / f"{fingerprint}.toml"
    return None


def unless_revoked(entry: KeyEntry, listings: tuple[KeyListing, ...]) -> KeyEntry:
    """Return the entry as it is, or without trust if the key is revoked or may be."""
    revoked = revoked_by(entry.fingerprint, listings)
    if revoked is not None:
        return replaced(entry, trusted=False, revoked=revoked)
    problem = next((listing.problem for listing in listings if listing.problem), "")
    return replaced(entry, trusted=False, problem=problem) if problem else entry


def read_revocation(path: Path) -> Revocation:
    """Return what a file says about a revoked key; raises nothing."""
    from lilux.files.toml import load_toml

    found = Revocation(fingerprint=path.stem, path=path)
    try:
        table = load_toml(read_key_file(path, guarded=False).decode())
    except (KeyFileProblem, ValueError):
        return found
    texts = {name: table.get(name) for name in _FIELDS}
    return replaced(found, **{name: text for name, text in texts.items() if _is_plain(text)})


def write_revocation(
    folder: KeyFolder, fingerprint: str, owner: str = "", reason: str = ""
) -> Revocation:
    """Revoke a key; the time is now. Raises :class:`KeyStoreError`."""
    from lilux.files.atomic import atomic_write

    if not re.fullmatch(FINGERPRINT, fingerprint):
        raise KeyStoreError(
            f"{fingerprint!r} is not a fingerprint", hint="list the keys with: rye trust list"
        )
    if not _is_plain(reason):
        raise KeyStoreError(
            f"the reason is not one line of at most {MAX_OWNER_CHARACTERS} printable characters",
            hint="shorten it",
        )
    path = folder.path / f"{fingerprint}.toml"
    fields = {"fingerprint": fingerprint, "owner": owner, "revoked": time_now(), "reason": reason}
    text = "".join([f"{name} = {quoted(value)}\n" for name, value in fields.items() if value])
    try:
        folder.path.mkdir(mode=0o700 if folder.guarded else 0o777, parents=True, exist_ok=True)
        atomic_write(path, text.encode())
    except OSError as error:
        raise KeyStoreError(
            f"cannot write {path}: {error.strerror}", hint="make its folder writable"
        ) from error
    return read_revocation(path)


def _is_plain(text: object) -> bool:
    return isinstance(text, str) and text.isprintable() and len(text) <= MAX_OWNER_CHARACTERS
