"""One file as the index remembers it: what it says, and the stamp by which that holds."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import NamedTuple

from rye.catalogue.entry import Summary
from rye.catalogue.words import NO_TEXTS, Texts, texts_of
from rye.errors import ItemFormatError, ItemNotFoundError, NoMetadataError, RyeError
from rye.items.element import Metadata
from rye.spaces.folders import is_settled
from rye.spaces.model import Resolution

FileStamp = tuple[int, int, int, int, int]
"""Device, inode, mtime, ctime and size. A file that is edited in place keeps its folder's stamp, so
each file has its own."""

NO_DETAIL = "[null, {}]"


class Record(NamedTuple):
    """What is remembered of one file."""

    summary: Summary
    hidden: bool
    """Whether it is a helper beside the items: it declares nothing, or that it is a library."""
    stamp: FileStamp | None
    """``None`` if a later change might not show: it is read again next time."""
    detail: str
    """Schema and annotations, as one line of JSON that only those decode who need it."""
    texts: Texts
    """What a search looks through."""


def stamp_of_file(path: str) -> FileStamp | None:
    """``None`` if there is no plain file that may be looked at."""
    try:
        status = os.stat(path)  # noqa: PTH116 - for every item of every list
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return (
        status.st_dev,
        status.st_ino,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_size,
    )


def read_record(resolution: Resolution) -> Record | None:
    """Read the item; a file whose metadata cannot be read gives a record with a fault.

    ``None`` if the file has vanished.
    """
    path = Path() if resolution.path is None else resolution.path
    # Taken before the file is read, so that a later change alters it.
    stamp = stamp_of_file(os.fspath(path))
    if stamp is not None and not is_settled(stamp[:4]):
        stamp = None
    try:
        metadata = metadata_of(resolution)
    except NoMetadataError as error:
        return _without_metadata(resolution, stamp, "", hidden=str(error))
    except ItemNotFoundError:
        return None
    except RyeError as error:
        return _without_metadata(resolution, stamp, str(error))
    summary = _summary(resolution, metadata)
    detail = json.dumps([metadata.config_schema, metadata.annotations], default=dict)
    texts = texts_of(summary, metadata.config_schema)
    return Record(summary, metadata.tool_type == "library", stamp, detail, texts)


def metadata_of(resolution: Resolution) -> Metadata:
    """What the file declares, or that it is a primitive without one; raises as its reader does."""
    if resolution.path is None:
        return Metadata(tool_type="primitive", executor_id=None)
    from rye.items.metadata import parse_metadata
    from rye.items.reader import read_item

    try:
        return parse_metadata(read_item(resolution.path, resolution.space.root))
    except RecursionError:
        raise ItemFormatError(
            resolution.path, "is nested too deeply", hint="simplify it and sign again"
        ) from None


def _summary(resolution: Resolution, metadata: Metadata) -> Summary:
    return Summary(
        item_id=resolution.item_id,
        space=resolution.space.name,
        bundle=resolution.space.bundle,
        path="" if resolution.path is None else str(resolution.path),
        version=metadata.version or "0.0.0",
        tool_type=metadata.tool_type,
        executor_id=metadata.executor_id,
        category=metadata.category,
        description=metadata.description,
        fault="",
    )


def _without_metadata(
    resolution: Resolution, stamp: FileStamp | None, fault: str, *, hidden: str = ""
) -> Record:
    summary = Summary(
        item_id=resolution.item_id,
        space=resolution.space.name,
        bundle=resolution.space.bundle,
        path=str(resolution.path),
        version="",
        tool_type="",
        executor_id=None,
        category="",
        description="",
        fault=fault or hidden,
    )
    texts = NO_TEXTS if hidden else texts_of(summary, None)
    return Record(summary, bool(hidden), stamp, NO_DETAIL, texts)
