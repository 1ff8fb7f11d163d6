"""The trust store: the public keys of the three spaces, and which of them are trusted.

::

    {user}/.ai/keys/public_key.pem               the user's own key            trusted
    {user}/.ai/trusted_keys/{fingerprint}.toml   keys that the user added      trusted
    {system}/.ai/trusted_keys/…                  release keys, also of bundles trusted in that space
    {project}/.ai/trusted_keys/…                 keys that the project lists   trusted if approved
    {user}/.ai/approved_keys/{fingerprint}.toml  the user's approvals of those
    {user}/.ai/removed_keys/{fingerprint}.toml   keys that the user stopped trusting, for messages
    {user or project}/.ai/revoked_keys/…         keys that nobody may trust: see ``revocation.py``

The user's folders decide what may run, so they are used only if nobody else can write to them. An
entry that cannot be used is not trusted, and is listed with its problem.
"""

from __future__ import annotations

import os
import re
from _thread import allocate_lock  # `threading` would slow down every start
from collections.abc import Hashable, Sequence
from pathlib import Path

from lilux.primitives.signing.identity import PUBLIC_KEY_FILE
from lilux.record import Record, replaced

from rye.cache.disk import DiskCache
from rye.context import Context
from rye.errors import KeyStoreError
from rye.spaces.model import Space, SpaceName
from rye.trust.key_folder import KeyFileProblem, KeyFolder, KeyListing, access_to, file_identity
from rye.trust.key_format import (
    FINGERPRINT,
    EntryFormatError,
    approval_of,
    parse_approval,
    parse_removal,
    render_approval,
    render_removal,
    render_trusted_key,
    time_now,
    trusted_key,
)
from rye.trust.key_source import KeyEntry, KeySource, Place, read_own_key, sources_of
from rye.trust.revocation import (
    Revocation,
    Revocations,
    read_revocation,
    revoked_by,
    unless_revoked,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rye.trust.verify import Verdict

_WRITABLE = "use a user space that you can write to"
_LIST = "list the keys with: rye trust list"


class _State(Record, frozen=True, kw_only=True):
    """The store as one look found it, and what was concluded from that."""

    number: int
    looks: Hashable
    listings: tuple[KeyListing, ...]
    approvals: KeyListing
    revoked: tuple[KeyListing, ...]
    found: dict[tuple[str, Place], KeyEntry | None]
    verdicts: dict[tuple[bytes, str, Place], Verdict]

    @property
    def stamp(self) -> Hashable:
        """A value that no other state of the same store has, even if the files are as before."""
        return self.number, self.looks


class TrustStore:
    """Answers from the state that the last :meth:`stamp` saw, or the first use.

    A call of a tool begins with :meth:`stamp`, so the whole call is judged by that state or a newer
    one, and only that look costs system calls. ``spaces`` are the known spaces; without them, the
    bundles are searched again.

    Threads may share a store. A state is replaced as a whole, so a conclusion from an old state is
    never remembered for a new one.
    """

    def __init__(
        self,
        context: Context,
        *,
        spaces: Sequence[Space] | None = None,
        disk_cache: DiskCache | None = None,
    ) -> None:
        self.disk_cache = DiskCache(None) if disk_cache is None else disk_cache
        """What is known about bytes that were seen before; never which keys are trusted."""
        user = context.user_space / ".ai"
        self.key_folder = user / "keys"
        """The folder of the user's own key pair, which may not exist yet."""
        self._own_key = self.key_folder / PUBLIC_KEY_FILE
        self._own_key_text = str(self._own_key)
        self._above_own_key = (str(self.key_folder), str(user))
        self._approvals = KeyFolder(user / "approved_keys", guarded=True)
        self._removed = KeyFolder(user / "removed_keys", guarded=False)
        self.revocations = Revocations(context)
        """The folders of revoked keys."""
        self._sources = sources_of(context, spaces)
        self._roots = tuple(
            [
                (root, (f"{root}/", f"{os.path.realpath(root)}/"))
                for root in [source.within for source in self._sources]
                if root is not None
            ]
        )
        self._state: _State | None = None
        self._states = 0
        # Orders the looks of several threads, so that an older one never replaces a newer one.
        self._looking = allocate_lock()

    def stamp(self) -> Hashable:
        """Look at the folders; return a value that differs after any change in them."""
        return self._look().stamp

    def _look(self) -> _State:
        with self._looking:
            sources = [source.folder.look() for source in self._sources]
            approvals = self._approvals.look()
            revoked = self.revocations.look()
            looks = (
                tuple([look for look, _ in sources]),
                approvals[0],
                revoked[0],
                self._look_at_own_key(),
            )
            state = self._state
            if state is None or state.looks != looks:
                self._states += 1
                state = _State(
                    number=self._states,
                    looks=looks,
                    listings=tuple([listing for _, listing in sources]),
                    approvals=approvals[1],
                    revoked=revoked[1],
                    found={},
                    verdicts={},
                )
                self._state = state
        return state

    def _look_at_own_key(self) -> Hashable:
        identity = file_identity(self._own_key_text)
        # The key is trusted only if nobody else can write to these folders.
        return identity and (identity, *[access_to(folder) for folder in self._above_own_key])

    def _current(self) -> _State:
        return self._state or self._look()

    @property
    def seen(self) -> Hashable:
        """What :meth:`stamp` returned last: the state that answers come from."""
        return self._current().stamp

    @property
    def verdicts(self) -> dict[tuple[bytes, str, Place], Verdict]:
        """The verdicts by the current state; a new dict for each new state."""
        return self._current().verdicts

    def place(self, path: Path) -> Place:
        """Return the system spaces that contain a file, which decide about bundles' keys."""
        text = str(path)
        # A path with ".." may be outside the folder that it starts with.
        if "/../" in text:
            return ()
        return tuple([root for root, starts in self._roots if text.startswith(starts)])

    def lookup(self, fingerprint: str, path: Path | None = None) -> bytes | None:
        """Return the PEM of a key that is trusted for a file at ``path``, or everywhere."""
        place = () if path is None else self.place(path)
        entry = self.find(fingerprint, place)
        return entry.public_key if entry is not None and entry.is_trusted_in(place) else None

    def find(self, fingerprint: str, place: Place = ()) -> KeyEntry | None:
        """Return the most useful entry of a key.

        One that is trusted in ``place`` is preferred, then one without a problem.
        """
        state = self._current()
        key = (fingerprint, place)
        if key not in state.found:
            state.found[key] = self._find(state, fingerprint, place)
        return state.found[key]

    def entries(self) -> tuple[KeyEntry, ...]:
        """Look again, and return every entry of the store, the user's own key first."""
        state = self._look()
        entries = self._own_entries()
        for source, listing in zip(self._sources, state.listings, strict=True):
            entries += [
                source.entry(stem, listing, state.approvals, self.disk_cache)
                for stem in listing.stems
            ]
        trusted = [_trusted_like_others(entry, entries) for entry in entries]
        return tuple([unless_revoked(entry, state.revoked) for entry in trusted])

    def problems(self) -> tuple[str, ...]:
        """Look again, and return why whole folders cannot be used, and what to do."""
        state = self._look()
        listings = (*state.listings, state.approvals)
        return tuple([listing.problem for listing in listings if listing.problem])

    def add(self, public_key: bytes, owner: str) -> KeyEntry:
        """Add a key to the user's trusted keys: it is trusted in every project.

        Raises :class:`KeyStoreError` if it is not an Ed25519 public key, the owner's name is not
        one printable line, or the file cannot be written.
        """
        try:
            key = trusted_key(public_key, owner, time_now())
        except EntryFormatError as error:
            raise KeyStoreError(
                f"cannot trust this key: {error}",
                hint="pass the public_key.pem of its owner, and a plain name",
            ) from None
        self._refuse_revoked(key.fingerprint)
        source = self._source("user")
        self._forget_removal(key.fingerprint)
        self._write(source.folder, key.fingerprint, render_trusted_key(key))
        return self._entry(source, key.fingerprint)

    def approve(self, fingerprint: str) -> KeyEntry:
        """Trust a key that the project lists, in every project that lists the same key.

        Raises :class:`KeyStoreError` if the project does not list it, or it cannot be used.
        """
        source = self._source("project")
        _, listing = source.folder.look()
        if fingerprint not in listing.stems:
            raise KeyStoreError(
                f"key {fingerprint} is not in {listing.path}",
                hint="get the public key from its owner, "
                "and trust it with: rye trust add PUBLIC_KEY.pem",
            )
        entry = self._entry(source, fingerprint)
        if entry.problem:
            raise KeyStoreError(f"cannot approve key {fingerprint}: {entry.problem}")
        self._refuse_revoked(fingerprint)
        self._forget_removal(fingerprint)
        approval = approval_of(fingerprint, entry.public_key, time_now())
        self._write(self._approvals, fingerprint, render_approval(approval))
        return self._entry(source, fingerprint)

    def remove(self, fingerprint: str) -> tuple[Path, ...]:
        """Remove a key from the user's trusted and approved keys; return the removed files.

        Raises :class:`KeyStoreError` if the user has neither added nor approved it. Keys of bundles
        and projects are not removed.
        """
        if not re.fullmatch(FINGERPRINT, fingerprint):
            raise KeyStoreError(f"{fingerprint!r} is not a fingerprint", hint=_LIST)
        removed = self.withdraw(fingerprint)
        if not removed:
            reason = self._why_not_removable(fingerprint)
            raise KeyStoreError(f"cannot remove key {fingerprint}: {reason}")
        self._write(self._removed, fingerprint, render_removal(fingerprint, time_now()))
        return removed

    def withdraw(self, fingerprint: str) -> tuple[Path, ...]:
        """Remove the files of the user that make a key trusted, and return them."""
        folders = (self._source("user").folder.path, self._approvals.path)
        paths = [folder / f"{fingerprint}.toml" for folder in folders]
        self._state = None
        return tuple([path for path in paths if _unlink(path)])

    def _refuse_revoked(self, fingerprint: str) -> None:
        self._look()
        revocation = self.revocation_of(fingerprint)
        if revocation is not None:
            raise KeyStoreError(
                f"cannot trust key {fingerprint}: it was revoked{revocation.words}",
                hint=f"if that was a mistake, remove {revocation.path}",
            )

    def _forget_removal(self, fingerprint: str) -> None:
        _unlink(self._removed.path / f"{fingerprint}.toml")

    def _find(self, state: _State, fingerprint: str, place: Place) -> KeyEntry | None:
        if not re.fullmatch(FINGERPRINT, fingerprint):
            return None
        found = [entry for entry in self._own_entries() if entry.fingerprint == fingerprint]
        found += [
            source.entry(fingerprint, listing, state.approvals, self.disk_cache)
            for source, listing in zip(self._sources, state.listings, strict=True)
            if fingerprint in listing.stems
        ]
        best = min(
            found,
            key=lambda entry: (not entry.is_trusted_in(place), bool(entry.problem)),
            default=None,
        )
        return best if best is None else unless_revoked(best, state.revoked)

    def revocation_of(self, fingerprint: str) -> Revocation | None:
        """Return who revoked a key, and why; ``None`` if it is not revoked."""
        path = revoked_by(fingerprint, self._current().revoked)
        return None if path is None else read_revocation(path)

    def removed_on(self, fingerprint: str) -> str:
        """Return when the user stopped trusting a key; empty if that did not happen."""
        try:
            data = self._removed.look()[1].read(fingerprint)
            return parse_removal(data, fingerprint)
        except (KeyFileProblem, EntryFormatError):
            return ""

    def approved_on(self, fingerprint: str) -> str:
        """Return when the user approved a key of a project; empty if that did not happen."""
        try:
            return parse_approval(self._approvals.look()[1].read(fingerprint), fingerprint).approved
        except (KeyFileProblem, EntryFormatError):
            return ""

    def _own_entries(self) -> list[KeyEntry]:
        exists = file_identity(self._own_key_text) is not None
        return [read_own_key(self._own_key)] if exists else []

    def _why_not_removable(self, fingerprint: str) -> str:
        entry = self.find(fingerprint)
        if entry is None:
            return f"it is not in the trust store; {_LIST}"
        if entry.own:
            return "it is your own key; to sign with a new one, run: rye key rotate"
        if entry.space == "project":
            return f"it is not approved, only listed by the project; remove {entry.path}"
        return f"it is part of the bundle {entry.bundle}; uninstall the bundle"

    def _source(self, space: SpaceName) -> KeySource:
        # If the project is the user space, its keys are the user's.
        return next((source for source in self._sources if source.space == space), self._sources[0])

    def _entry(self, source: KeySource, fingerprint: str) -> KeyEntry:
        """Read one entry as it is now."""
        listing, approvals = source.folder.look()[1], self._approvals.look()[1]
        return source.entry(fingerprint, listing, approvals, self.disk_cache)

    def _write(self, folder: KeyFolder, stem: str, data: bytes) -> None:
        from lilux.files.atomic import atomic_write

        path = folder.path / f"{stem}.toml"
        try:
            folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            atomic_write(path, data, mode=0o644)
        except OSError as error:
            raise KeyStoreError(f"cannot write {path}: {error.strerror}", hint=_WRITABLE) from error
        self._state = None
        problem = folder.look()[1].problem
        if problem:
            raise KeyStoreError(f"key {stem} is not trusted yet: {problem}")


def _trusted_like_others(entry: KeyEntry, entries: Sequence[KeyEntry]) -> KeyEntry:
    """Mark a key that a project lists as trusted if the user owns it or has added it."""
    if entry.trusted or entry.problem:
        return entry
    same = [other for other in entries if other.public_key == entry.public_key]
    trusted = [other for other in same if other.is_trusted_in(())]
    return replaced(entry, trusted=bool(trusted), own=any(other.own for other in trusted))


def _unlink(path: Path) -> bool:
    try:
        path.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise KeyStoreError(f"cannot remove {path}: {error.strerror}", hint=_WRITABLE) from error
    return True
