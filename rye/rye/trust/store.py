"""The trust store: which public keys there are, and which of them count.

::

    {user}/.ai/keys/public_key.pem               the user's own key               counts
    {user}/.ai/trusted_keys/{fingerprint}.toml   keys that the user vouches for   count
    {system}/.ai/trusted_keys/…                  release keys, of bundles too     count below there
    {project}/.ai/trusted_keys/…                 keys that the project brings     count if approved
    {user}/.ai/approved_keys/{fingerprint}.toml  the user's approvals of those

Whoever may write into the user's folders decides what runs, so these count only while nobody but
the user may. An entry that cannot be used does not count, is listed with its problem, and leaves
the others alone.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from pathlib import Path

from lilux.primitives.signing.identity import PUBLIC_KEY_FILE

from rye.cache.disk import DiskCache
from rye.context import Context
from rye.errors import KeyStoreError
from rye.spaces.model import Space, SpaceName
from rye.trust.key_entry import (
    FINGERPRINT,
    EntryFormatError,
    approval_of,
    render_approval,
    render_trusted_key,
    time_now,
    trusted_key,
)
from rye.trust.key_folder import KeyFolder, access_to, file_identity
from rye.trust.key_source import KeyEntry, KeySource, Place, read_own_key, sources_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rye.trust.model import Verdict

_WRITABLE = "use a user space that you may write to"


class TrustStore:
    """Answers from what it saw when :meth:`stamp` was last called, or at first use.

    So one call of a tool, which begins with :meth:`stamp`, is judged by one state of the store, and
    only that one look costs system calls. ``spaces`` spares looking for the bundles once more if
    they are known already.
    """

    def __init__(
        self,
        context: Context,
        *,
        spaces: Sequence[Space] | None = None,
        disk_cache: DiskCache | None = None,
    ) -> None:
        self.disk_cache = DiskCache(None) if disk_cache is None else disk_cache
        """What is known of bytes that were seen before; never which keys count."""
        user = context.user_space / ".ai"
        self.key_folder = user / "keys"
        """Where the user's own key pair is, or will be."""
        self._own_key = self.key_folder / PUBLIC_KEY_FILE
        self._own_key_text = str(self._own_key)
        self._above_own_key = (str(self.key_folder), str(user))
        self._approvals = KeyFolder(user / "approved_keys", guarded=True)
        self._sources = sources_of(context, spaces)
        self._roots = tuple(
            [
                (root, (f"{root}/", f"{os.path.realpath(root)}/"))
                for root in [source.within for source in self._sources]
                if root is not None
            ]
        )
        self._stamp: Hashable = None
        self._found: dict[tuple[str, Place], KeyEntry | None] = {}
        self._verdicts: dict[tuple[bytes, str, Place], Verdict] = {}

    def stamp(self) -> Hashable:
        """Look at the folders; gives a value that is another one after any change in them."""
        stamp = (
            tuple([source.folder.look() for source in self._sources]),
            self._approvals.look(),
            self._look_at_own_key(),
        )
        if stamp != self._stamp:
            self._found, self._verdicts = {}, {}
            self._stamp = stamp
        return self._stamp

    def _look_at_own_key(self) -> Hashable:
        identity = file_identity(self._own_key_text)
        # Who may write to the folders decides whether the key counts.
        return identity and (identity, *[access_to(folder) for folder in self._above_own_key])

    @property
    def seen(self) -> Hashable:
        """What :meth:`stamp` gave last: the state that answers are from."""
        return self._stamp

    @property
    def verdicts(self) -> dict[tuple[bytes, str, Place], Verdict]:
        """What was judged by the present state; a new dict with each new state."""
        if self._stamp is None:
            self.stamp()
        return self._verdicts

    def place(self, path: Path) -> Place:
        """Where a file lies, as far as that decides which keys count for it."""
        text = str(path)
        # A path that climbs is not below what it begins with.
        if "/../" in text:
            return ()
        return tuple([root for root, starts in self._roots if text.startswith(starts)])

    def lookup(self, fingerprint: str, path: Path | None = None) -> bytes | None:
        """The PEM of the public key, if that key counts for a file at ``path``, or everywhere."""
        place = () if path is None else self.place(path)
        entry = self.find(fingerprint, place)
        return entry.public_key if entry is not None and entry.counts_in(place) else None

    def find(self, fingerprint: str, place: Place = ()) -> KeyEntry | None:
        """The entry that says most about a key.

        That is one that counts in ``place``, or else one that could, or else one with a problem.
        """
        if self._stamp is None:
            self.stamp()
        key = (fingerprint, place)
        if key not in self._found:
            self._found[key] = self._find(fingerprint, place)
        return self._found[key]

    def entries(self) -> tuple[KeyEntry, ...]:
        """Everything that the store holds, the user's own key first, after a fresh look."""
        self.stamp()
        entries = self._own_entries()
        for source in self._sources:
            entries += [
                source.entry(stem, self._approvals, self.disk_cache) for stem in source.folder.stems
            ]
        return tuple(entries)

    def problems(self) -> tuple[str, ...]:
        """What keeps whole folders from counting, and what to do; after a fresh look."""
        self.stamp()
        folders = [source.folder for source in self._sources] + [self._approvals]
        return tuple([folder.problem for folder in folders if folder.problem])

    def add(self, public_key: bytes, owner: str) -> KeyEntry:
        """Let the user vouch for a key: it counts from now on, in every project.

        Raises :class:`KeyStoreError` if it is no Ed25519 public key, the owner's name cannot be
        shown on one line, or the file cannot be written.
        """
        try:
            key = trusted_key(public_key, owner, time_now())
        except EntryFormatError as error:
            raise KeyStoreError(
                f"cannot trust this key: {error}",
                hint="pass the public_key.pem of its owner, and a plain name",
            ) from None
        source = self._source("user")
        self._write(source.folder, key.fingerprint, render_trusted_key(key))
        return source.entry(key.fingerprint, self._approvals, self.disk_cache)

    def approve(self, fingerprint: str) -> KeyEntry:
        """Let a key that the project brings count, in every project that brings this very key.

        Raises :class:`KeyStoreError` if the project has no such key, or one that cannot be used.
        """
        self.stamp()
        source = self._source("project")
        if fingerprint not in source.folder.stems:
            raise KeyStoreError(
                f"no key {fingerprint} in {source.folder.path}",
                hint="get the public key from its owner, "
                "and trust it with: rye trust add PUBLIC_KEY.pem",
            )
        entry = source.entry(fingerprint, self._approvals, self.disk_cache)
        if entry.problem:
            raise KeyStoreError(f"cannot approve key {fingerprint}: {entry.problem}")
        approval = approval_of(fingerprint, entry.public_key, time_now())
        self._write(self._approvals, fingerprint, render_approval(approval))
        return source.entry(fingerprint, self._approvals, self.disk_cache)

    def remove(self, fingerprint: str) -> tuple[Path, ...]:
        """Take back the user's word for a key; gives the files that were removed.

        Raises :class:`KeyStoreError` if the user never gave it: what a bundle or a project brings
        is not the user's to remove.
        """
        if not FINGERPRINT.fullmatch(fingerprint):
            raise KeyStoreError(
                f"{fingerprint!r} is no fingerprint",
                hint="see which keys there are with: rye trust list",
            )
        folders = (self._source("user").folder.path, self._approvals.path)
        paths = [folder / f"{fingerprint}.toml" for folder in folders]
        removed = tuple([path for path in paths if _unlink(path)])
        self._stamp = None
        if not removed:
            reason = self._why_not_removable(fingerprint)
            raise KeyStoreError(f"cannot remove key {fingerprint}: {reason}")
        return removed

    def _find(self, fingerprint: str, place: Place) -> KeyEntry | None:
        if not FINGERPRINT.fullmatch(fingerprint):
            return None
        found = [entry for entry in self._own_entries() if entry.fingerprint == fingerprint]
        found += [
            source.entry(fingerprint, self._approvals, self.disk_cache)
            for source in self._sources
            if fingerprint in source.folder.stems
        ]
        return min(
            found,
            key=lambda entry: (not entry.counts_in(place), bool(entry.problem)),
            default=None,
        )

    def _own_entries(self) -> list[KeyEntry]:
        there = file_identity(self._own_key_text) is not None
        return [read_own_key(self._own_key)] if there else []

    def _why_not_removable(self, fingerprint: str) -> str:
        entry = self.find(fingerprint)
        if entry is None:
            return "it is not in the trust store; see what is with: rye trust list"
        if entry.own:
            return f"it is your own; to sign with a new one, remove {self.key_folder}"
        if entry.space == "project":
            return f"it is not approved, only brought by the project; remove {entry.path}"
        return f"it comes with the bundle {entry.bundle}; uninstall that"

    def _source(self, space: SpaceName) -> KeySource:
        # A project that is the user space has no keys of its own: they are the user's.
        return next((source for source in self._sources if source.space == space), self._sources[0])

    def _write(self, folder: KeyFolder, stem: str, data: bytes) -> None:
        from lilux.files.atomic import atomic_write

        path = folder.path / f"{stem}.toml"
        try:
            folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            atomic_write(path, data, mode=0o644)
        except OSError as error:
            raise KeyStoreError(f"cannot write {path}: {error.strerror}", hint=_WRITABLE) from error
        self._stamp = None
        self.stamp()
        if folder.problem:
            raise KeyStoreError(f"key {stem} does not count yet: {folder.problem}")


def _unlink(path: Path) -> bool:
    try:
        path.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise KeyStoreError(f"cannot remove {path}: {error.strerror}", hint=_WRITABLE) from error
    return True
