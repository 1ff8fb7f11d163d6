"""The items of one call, each read once.

A :class:`Library` lasts as long as its executor and remembers files; a :class:`Snapshot` lasts for
one call. Within a snapshot a file has one content, so lock, signature and metadata are checked on
the same bytes. What the library remembers is used only for bytes with the same hash; the trust
store remembers its own verdicts.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from pathlib import Path

from lilux.record import Record

from rye.cache.disk import cache_of
from rye.context import Context
from rye.executor.caches import BoundedDict
from rye.executor.chain.known_files import KnownFile, VerifiedFiles
from rye.formats import format_of
from rye.items.element import ChainElement, Metadata, metadata_from_json, metadata_to_json
from rye.items.reader import read_item
from rye.spaces.ids import check_item_id
from rye.spaces.model import PRECEDENCE, Resolution, Space
from rye.spaces.resolver import Resolver
from rye.spaces.watch import Watch
from rye.trust.store import TrustStore
from rye.trust.verify import Verdict, changed_by_author, judge, verify_item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Generic, TypeVar

    Data = TypeVar("Data")
else:
    # Only type checkers need the real ones, and importing typing is slow.
    Generic = {None: object}
    Data = None

_ANY_SPACE = max(PRECEDENCE.values())
_FILELESS = Metadata(tool_type="primitive", executor_id=None)


class CacheEntry(Record, Generic[Data], frozen=True):
    """A value made from files, and the SHA-256 of what it was made from.

    ``trust_stamp`` is the state of the trust store that the value depends on, ``None`` if it does
    not depend on trust. ``files`` are the files it was made from. ``watch`` covers the folders that
    decide where its ids lead; ``None`` if they were just changing, or if there are none.
    """

    data: Data
    content_hash: str
    trust_stamp: Hashable = None
    files: tuple[KnownFile, ...] = ()
    watch: Watch | None = None


class Library:
    """The spaces, the trust store, and what is remembered about files. For one thread."""

    def __init__(self, context: Context, *, own: tuple[Space, ...] | None = None) -> None:
        """``own`` replaces the spaces of the project and of the user."""
        self.context = context
        self.disk_cache = cache_of(context.user_space)
        self.resolver = Resolver(context, own=own)
        self.store = TrustStore(context, spaces=self.resolver.spaces, disk_cache=self.disk_cache)
        self.metadata_cache: dict[Path, CacheEntry[Metadata]] = BoundedDict()
        self.known_files: dict[Path, KnownFile] = BoundedDict()
        self.verified_files = VerifiedFiles()

    def snapshot(self) -> Snapshot:
        """A fresh view of the files, for one call."""
        return Snapshot(self)


class Snapshot:
    """The files as this call sees them."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self.trust_stamp = library.store.stamp()
        self._resolutions: dict[tuple[str, int], Resolution] = {}
        self._files: dict[str, KnownFile] = {}

    @property
    def resolver(self) -> Resolver:
        """The resolver of the library."""
        return self._library.resolver

    def resolve(self, item_id: str, from_space: Space | None = None) -> Resolution:
        """Like ``Resolver.resolve``, with one answer for the whole call."""
        if type(item_id) is not str:
            check_item_id(item_id)
        key = (item_id, _ANY_SPACE if from_space is None else from_space.precedence)
        resolution = self._resolutions.get(key)
        if resolution is None:
            resolution = self.resolver.resolve(item_id, from_space=from_space)
            self._resolutions[key] = resolution
        return resolution

    def files(self, resolutions: Iterable[Resolution]) -> tuple[KnownFile, ...]:
        """The files as this call reads them; resolutions without a file are skipped."""
        return tuple(self._read(one) for one in resolutions if one.path is not None)

    def reads_again(self, files: Iterable[KnownFile]) -> bool:
        """True if this call reads the same content in each file as an earlier call did."""
        for file in files:
            seen = self._files.get(file.name)
            if seen is not None:
                if seen.digest != file.digest:
                    return False
            elif file.is_unchanged():
                self._files[file.name] = file
            else:
                return False
        return True

    def verdict(self, resolution: Resolution) -> Verdict:
        """The verdict of the trust store about the file; the item must have one."""
        file = self._read(resolution).file
        return judge(file, format_of(file.path).comment, self._library.store)

    def changed_by_author(self, resolution: Resolution) -> bool:
        """True if the user signed an earlier content of the file, which was changed since."""
        file = self._read(resolution).file
        return changed_by_author(file, format_of(file.path).comment, self._library.store)

    def metadata(self, resolution: Resolution) -> Metadata:
        """The declarations of the file; raises ``ItemFormatError``."""
        if resolution.path is None:
            return _FILELESS
        read = self._read(resolution)
        known = self._library.metadata_cache.get(resolution.path)
        if known and known.content_hash == read.digest:
            return known.data
        metadata = self._parse(read)
        self._library.metadata_cache[resolution.path] = CacheEntry(metadata, read.digest)
        return metadata

    def _parse(self, read: KnownFile) -> Metadata:
        """Take the metadata from the disk cache, or parse the file.

        The same bytes have different metadata in different formats.
        """
        disk_cache = self._library.disk_cache
        found = format_of(read.file.path)
        kind = f"metadata {found.kind} {found.comment}"
        metadata = metadata_from_json(disk_cache.recall(kind, read.digest))
        if metadata is None:
            from rye.items.metadata import parse_metadata

            metadata = parse_metadata(read.file)
            disk_cache.keep(kind, read.digest, metadata_to_json(metadata))
        return metadata

    def element(self, resolution: Resolution) -> ChainElement:
        """The verified item as an element of a chain.

        Raises ``TrustError`` before parsing a file that may not run, then ``ItemFormatError``.
        """
        integrity = signer = ""
        if resolution.path is not None:
            verdict = self.verdict(resolution)
            if not verdict.trusted:
                self.require_trusted(resolution)
            integrity, signer = verdict.content_hash, verdict.fingerprint
        return ChainElement(
            item_id=resolution.item_id,
            path=resolution.path,
            space=resolution.space.name,
            metadata=self.metadata(resolution),
            integrity=integrity,
            signer=signer,
            resolution=resolution,
        )

    def require_trusted(self, resolution: Resolution) -> None:
        """Raise a ``TrustError`` unless the file is validly signed by a trusted key."""
        file = self._read(resolution).file
        verify_item(file, format_of(file.path).comment, self._library.store, resolution.item_id)

    def verify_file(self, path: str, root: Path, name: str) -> str:
        """Verify a dependency below ``root``, a file that is not an item; return its content hash.

        Raises ``TrustError``, and the errors of :func:`rye.items.reader.read_item`.
        """
        verified = self._library.verified_files
        content_hash = verified.recall(path, root, self.trust_stamp)
        if content_hash is None:
            file = read_item(Path(path), root)
            comment = format_of(file.path).comment
            store = self._library.store
            # Before the verification: another snapshot may refresh the store at any time, and a
            # verdict by an old state must not be remembered for the new one.
            seen = store.seen
            content_hash = verify_item(file, comment, store, name).content_hash
            verified.keep(file, root, seen, content_hash)
        return content_hash

    def digest(self, path: str) -> str | None:
        """The SHA-256 of all bytes of a signed file, as this call read it."""
        known = self._files.get(path)
        return self._library.verified_files.digest(path) if known is None else known.digest

    def _read(self, resolution: Resolution) -> KnownFile:
        path = resolution.path
        assert path is not None, f"{resolution.item_id} has no file"  # noqa: S101 - a defect
        name = str(path)
        known = self._files.get(name)
        if known is None:
            known = self._library.known_files.get(path)
            if known is None or not known.is_unchanged():
                known = KnownFile.of(read_item(path, resolution.space.root))
                self._library.known_files[path] = known
            self._files[name] = known
        return known
