"""The keys of one space, read and checked one by one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lilux.primitives.signing.identity import compute_key_fingerprint
from lilux.record import Record, field
from lilux.sha256 import sha256

from rye.cache.disk import DiskCache
from rye.context import Context
from rye.ownership import guard, guard_above
from rye.spaces.model import Space, SpaceName
from rye.trust.key_folder import KeyFileProblem, KeyFolder, KeyListing, read_key_file
from rye.trust.key_format import (
    EntryFormatError,
    TrustedKey,
    is_public_key,
    parse_approval,
    parse_trusted_key,
)

OWN_NAME = "you"
"""The owner of the user's own key."""

_FIX = "fix or remove it"

Place = tuple[Path, ...]
"""The roots of the system spaces that contain a file: at most one, unless they are nested."""


class KeyEntry(Record, frozen=True, kw_only=True):
    """One key of the store, or a file of the store that cannot be used."""

    fingerprint: str
    """From the name of the file; for the user's own key, computed from the key."""
    space: SpaceName
    bundle: str = ""
    path: Path
    owner: str = ""
    created: str = ""
    public_key: bytes = field(default=b"", repr=False)
    own: bool = False
    """True for the key that the user signs with."""
    trusted: bool = False
    """True if a signature by this key makes an item below ``within`` trusted."""
    within: Path | None = None
    """The folder for whose files the key is trusted; ``None`` if it is trusted everywhere."""
    revoked: Path | None = None
    """The file that revokes the key."""
    problem: str = ""
    """Why the file cannot be used, and what to do; empty if it can."""

    def is_trusted_in(self, place: Place) -> bool:
        """True if the key makes a file in ``place`` trusted."""
        return self.trusted and (self.within is None or self.within in place)


class KeySource(Record, frozen=True, kw_only=True):
    """The folder ``trusted_keys`` of one space."""

    space: SpaceName
    bundle: str
    folder: KeyFolder
    within: Path | None = None

    def entry(
        self, stem: str, listing: KeyListing, approvals: KeyListing, disk_cache: DiskCache
    ) -> KeyEntry:
        """Read ``{stem}.toml`` of ``listing``; a project's key needs one of ``approvals``."""
        path = listing.path / f"{stem}.toml"
        problem = ""
        key = TrustedKey(fingerprint=stem, owner="", public_key=b"", created="")
        try:
            key = _parsed_key(listing.read(stem), stem, disk_cache)
        except EntryFormatError as error:
            problem = f"{path}: {error}; {_FIX}"
        except KeyFileProblem as error:
            problem = str(error)
        return KeyEntry(
            fingerprint=key.fingerprint,
            space=self.space,
            bundle=self.bundle,
            path=path,
            owner=key.owner,
            created=key.created,
            public_key=key.public_key,
            trusted=not problem
            and (self.space != "project" or _is_approved(key, approvals, disk_cache)),
            within=self.within,
            problem=problem,
        )


def is_own_name(owner: str) -> bool:
    """True for the names that the user's keys have here, which mean nothing to others."""
    return owner == OWN_NAME or owner.startswith(f"{OWN_NAME}, until ")


def sources_of(context: Context, spaces: Sequence[Space] | None) -> tuple[KeySource, ...]:
    """Return the sources of the user, of the system spaces, and of the project.

    The project has none if it is the user space.
    """
    if spaces is None:
        from rye.spaces.bundles import system_spaces

        spaces = system_spaces(context)
    user, project = context.user_space / ".ai", context.project_path / ".ai"
    found = [_source("user", user, guarded=True)]
    # Only the user's folder needs a guard: a program that can write to the system space can change
    # Rye itself, and a project's keys are pinned by the user's approvals.
    found += [
        _source("system", space.root, bundle=space.bundle, guarded=False)
        for space in spaces
        if space.name == "system"
    ]
    if project != user:
        found.append(_source("project", project, guarded=False))
    return tuple(found)


def read_own_key(path: Path) -> KeyEntry:
    """Return the entry of the user's own public key."""
    public_key, problem = b"", ""
    try:
        public_key = read_key_file(path, guarded=True)
        problem = guard(path.parent, path.parent.stat()) or guard_above(path.parent)
        if not is_public_key(public_key):
            problem = f"{path} is not the PEM of an Ed25519 public key; {_FIX}"
    except KeyFileProblem as error:
        problem = str(error)
    except OSError as error:
        problem = f"cannot read {path.parent}: {error.strerror}; make it readable"
    return KeyEntry(
        fingerprint=compute_key_fingerprint(public_key) if public_key else "",
        space="user",
        path=path,
        owner=OWN_NAME,
        public_key=public_key,
        own=True,
        trusted=not problem,
        problem=problem,
    )


def _source(name: SpaceName, root: Path, *, guarded: bool, bundle: str = "") -> KeySource:
    folder = KeyFolder(root / "trusted_keys", guarded=guarded)
    # A bundle's key is trusted for the bundle only. Otherwise a project could copy a signed file
    # and run it next to other files than those it was released with.
    within = root if name == "system" else None
    return KeySource(space=name, bundle=bundle, folder=folder, within=within)


def _parsed_key(data: bytes, stem: str, disk_cache: DiskCache) -> TrustedKey:
    kind, digest = f"trusted key {stem}", sha256(data).hexdigest()
    known = disk_cache.recall(kind, digest)
    if isinstance(known, dict):
        return TrustedKey(**{**known, "public_key": known["public_key"].encode()})
    key = parse_trusted_key(data, stem)
    fields = {"fingerprint": key.fingerprint, "owner": key.owner, "created": key.created}
    disk_cache.keep(kind, digest, {**fields, "public_key": key.public_key.decode()})
    return key


def _pinned_key(data: bytes, stem: str, disk_cache: DiskCache) -> str:
    """Return the hash of the key that an approval pins."""
    kind, digest = f"approval {stem}", sha256(data).hexdigest()
    known = disk_cache.recall(kind, digest)
    if isinstance(known, str):
        return known
    pinned = parse_approval(data, stem).public_key_sha256
    disk_cache.keep(kind, digest, pinned)
    return pinned


def _is_approved(key: TrustedKey, approvals: KeyListing, disk_cache: DiskCache) -> bool:
    if key.fingerprint not in approvals.stems:
        return False
    try:
        pinned = _pinned_key(approvals.read(key.fingerprint), key.fingerprint, disk_cache)
    except (EntryFormatError, KeyFileProblem):
        return False
    return pinned == sha256(key.public_key).hexdigest()
