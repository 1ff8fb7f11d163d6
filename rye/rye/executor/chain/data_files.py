"""The data files of a chain: ``files``, compared with the signed list of their digests.

The files of the tool are part of its folder in the closure. Those of a runtime have to be in its
library. A file that is verified as code needs no entry.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from lilux.record import Record, field

from rye.errors import DataFileError, ItemNotFoundError
from rye.executor.chain.anchor import Anchor, runtime_lib
from rye.executor.chain.dependencies import (
    FEW_FILES,
    LIBRARY,
    ManyDependencies,
    VerifyFile,
    name_below,
)
from rye.items.element import ChainElement
from rye.items.reader import read_item
from rye.spaces.containment import is_below, real_path
from rye.trust.data_list import MAX_BYTES, SUFFIX, data_files, digest_of, parse_list


class DataFiles(Record, frozen=True):
    """The verified data files of a chain, by name."""

    digests: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The path of each, and the folder that contains it."""


_NONE = DataFiles()


def verified_data_files(
    chain: Sequence[ChainElement], anchor: Anchor | None, verify: VerifyFile, *, few: bool = False
) -> DataFiles:
    """Compare all data files with the signed lists.

    Raises :class:`DataFileError` for a file that differs, is missing or was added, and the errors
    of ``verify``, which verifies a list. With ``few`` it raises ``ManyDependencies`` for many.
    """
    declaring = [one for one in chain if one.metadata.files and one.path is not None]
    if not declaring:
        return _NONE
    digests: dict[str, str] = {}
    files: dict[str, tuple[str, str]] = {}
    for element in declaring:
        listed = _listed(element, verify)
        assert element.path is not None  # noqa: S101 - see above
        names = data_files(element.path, element.metadata.files)
        if few and len(names) > FEW_FILES:
            raise ManyDependencies
        _refuse_difference(element, names, listed)
        folder = real_path(str(element.path.parent))
        total = 0
        for name in names:
            path = f"{folder}/{name}"
            found = digest_of(element.path, name)
            if found != listed[name]:
                raise _changed(element, f"{path} has changed since it was signed")
            total += os.stat(path).st_size  # noqa: PTH116 - a text
            if total > MAX_BYTES:
                raise DataFileError(
                    f"files of {element.path}: more than {MAX_BYTES} bytes in total",
                    hint="keep large data outside, and read it from {source_dir} or a parameter",
                )
            key = _name(chain, anchor, element, path)
            digests[key] = found
            files[key] = (path, folder)
    return DataFiles(digests, files)


def _listed(element: ChainElement, verify: VerifyFile) -> dict[str, str]:
    path, root = Path(f"{element.path}{SUFFIX}"), element.resolution.space.root
    try:
        content_hash = verify(str(path), root, f"{element.item_id} → {path.name}")
    except ItemNotFoundError:
        raise _changed(element, f"{element.path} declares files, and nobody signed them") from None
    return parse_list(read_item(path, root), content_hash)


def _refuse_difference(
    element: ChainElement, names: Sequence[str], listed: Mapping[str, str]
) -> None:
    for name in sorted({*names} ^ listed.keys()):
        what = "was added since" if name in names else "is missing, although"
        raise _changed(element, f"files of {element.path}: {name} {what} it was signed")


def _changed(element: ChainElement, what: str) -> DataFileError:
    from shlex import quote

    return DataFileError(what, hint=f"review it, then run: rye sign {quote(element.item_id)}")


def _name(
    chain: Sequence[ChainElement], anchor: Anchor | None, element: ChainElement, path: str
) -> str:
    """The name of the file in a lockfile, as for verified code."""
    if element is chain[0]:
        base = str(anchor.path) if anchor is not None else real_path(str(element.path.parent))  # type: ignore[union-attr]
        return name_below(path, base)
    lib = runtime_lib(chain)
    if lib is None or not is_below(path, str(lib)):
        raise DataFileError(
            f"files of {element.path}: {path} is not in the library of the runtime",
            hint="move it to the folder in anchor.lib",
        )
    return f"{LIBRARY}{path[len(str(lib)) + 1 :]}"
