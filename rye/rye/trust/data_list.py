"""The data files of a tool, covered by a signed list of their digests.

::

    files: ["templates/**", "words.txt"]

The globs are relative to the folder of the file that declares them: ``*`` and ``?`` match within
one folder, ``**`` matches any number of folders. Data has no signature line, so ``rye sign``
writes their SHA-256 to a list beside the tool, ``report.py.files``, and signs the list.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from rye.errors import DataFileError
from rye.formats import format_of
from rye.items.element import ItemFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rye.trust.signer import Signer

SUFFIX = ".files"
MAX_FILES = 1_000
MAX_ENTRIES = 20_000
"""Directory entries in one search."""
MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_BYTES = 64 * 1024 * 1024
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def sign_data_files(path: Path, root: Path, signer: Signer) -> bool:
    """Write and sign the list of a tool that declares ``files``; true if it changed.

    Raises :class:`DataFileError` for a file that cannot be covered, and what signing raises.
    """
    from lilux.files.atomic import atomic_write

    from rye.errors import ItemFormatError
    from rye.items.metadata import parse_metadata
    from rye.items.reader import read_item
    from rye.trust.signature import split_signature

    try:
        patterns = parse_metadata(read_item(path, root)).files
    except ItemFormatError:
        return False  # a helper of a tool; or it is refused when it is called
    if not patterns:
        return False
    names = data_files(path, patterns)
    lines = [f"{digest_of(path, name)}  {name}\n" for name in names]
    text = "".join(lines).encode("utf-8", "surrogateescape")
    target = path.with_name(f"{path.name}{SUFFIX}")
    comment = format_of(target).comment
    if not target.exists() or split_signature(target.read_bytes(), comment).signed_bytes != text:
        atomic_write(target, text)
    return signer.sign_file(target, root).changed


def data_files(path: Path, patterns: Sequence[str]) -> list[str]:
    """The files that a tool declares, relative to its folder and sorted.

    Raises :class:`DataFileError` for a pattern without a file, and for too many files.
    """
    found: set[str] = set()
    entries = list(_below(str(path.parent), path))
    for pattern in patterns:
        parts = pattern.split("/")
        matching = [name for name in entries if _matches(name.split("/"), parts)]
        if not matching:
            raise DataFileError(
                f"files of {path}: nothing in its folder matches {pattern!r}",
                hint="create the file, or correct the pattern",
            )
        found.update(matching)
    found -= {path.name}
    for name in found:
        if "\n" in name:
            raise DataFileError(f"files of {path}: {name!r} has two lines", hint="rename it")
    if len(found) > MAX_FILES:
        raise DataFileError(
            f"files of {path}: more than {MAX_FILES} files match", hint="narrow the patterns"
        )
    return sorted(found)


def digest_of(path: Path, name: str) -> str:
    """The SHA-256 of a file in the folder of ``path``. Raises :class:`DataFileError`."""
    where = f"files of {path}: {name}"
    try:
        descriptor = os.open(f"{path.parent}/{name}", _READ)
    except OSError as error:
        reason = (error.strerror or "unknown error").lower()
        raise DataFileError(
            f"{where} cannot be read ({reason})", hint="put the file itself there"
        ) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise DataFileError(f"{where} is not a regular file", hint="correct the patterns")
        if status.st_size > MAX_FILE_BYTES:
            raise DataFileError(
                f"{where} is larger than {MAX_FILE_BYTES} bytes",
                hint="keep it outside, and read it from {source_dir} or a parameter",
            )
        return _hashed(descriptor, status.st_size)
    finally:
        os.close(descriptor)


def parse_list(file: ItemFile, content_hash: str) -> dict[str, str]:
    """The digests in a verified list, by name; ``content_hash`` is what its signature covers.

    Raises :class:`DataFileError` for other bytes, and for a line that is malformed.
    """
    from lilux.sha256 import sha256

    # The only place of a signature line in this format.
    text = file.content.partition(b"\n")[2]
    if sha256(text).hexdigest() != content_hash:
        raise DataFileError(f"{file.path} changed after it was verified", hint="run it again")
    found: dict[str, str] = {}
    for line in text.decode("utf-8", "surrogateescape").split("\n")[:-1]:
        digest, _, name = line.partition("  ")
        if len(digest) != 64 or not name:
            raise DataFileError(f"{file.path} is not a list of files", hint="sign the tool again")
        found[name] = digest
    return found


def _hashed(descriptor: int, size: int) -> str:
    from lilux.sha256 import sha256

    chunks = []
    while chunk := os.read(descriptor, size + 1):
        chunks.append(chunk)
        if sum(map(len, chunks)) > MAX_FILE_BYTES:
            break
    return sha256(b"".join(chunks)).hexdigest()


def _below(folder: str, path: Path) -> Iterator[str]:
    """The files below a folder, relative to it. Links are files, and links to folders are not
    followed."""
    seen = 0
    pending = [""]
    while pending:
        inner = pending.pop()
        try:
            with os.scandir(f"{folder}/{inner}") as entries:
                for entry in entries:
                    seen += 1
                    if seen > MAX_ENTRIES:
                        raise DataFileError(
                            f"files of {path}: more than {MAX_ENTRIES} files to search",
                            hint="move the tool to a folder of its own",
                        )
                    name = f"{inner}{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(f"{name}/")
                    elif not name.endswith(SUFFIX):
                        yield name
        except OSError as error:
            reason = (error.strerror or "").lower()
            raise DataFileError(
                f"files of {path}: {folder}/{inner} cannot be searched ({reason})",
                hint="check its permissions",
            ) from None


def _matches(name: list[str], pattern: list[str]) -> bool:
    from fnmatch import fnmatchcase

    if not pattern:
        return not name
    if pattern[0] == "**":
        rest = pattern[1:]
        if not rest:
            return bool(name)
        return any(_matches(name[start:], rest) for start in range(len(name)))
    return bool(name) and fnmatchcase(name[0], pattern[0]) and _matches(name[1:], pattern[1:])
