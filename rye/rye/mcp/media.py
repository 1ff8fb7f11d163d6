"""Pictures, sound and files that a tool returns: ``{"content": [{"type": "image", "path": …}]}``.

A block has its data in base64, as blocks of MCP do, or names a file. The server is not confined as
the tool is, and a tool may pass on what a foreign server told it. So a file is sent only if it is
in the project or in the folder for temporary files, no part of its path is hidden, the call could
read it, and it was changed while the call ran.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rye.mcp.protocol.types import (
    AudioContent,
    Content,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from rye.spaces.folders import CLOCK_LAG_NS

MAX_BYTES = 3 * 1024 * 1024
"""Of all files of a result. In base64 they are a third larger, and some clients end the session
over messages of 5 MB."""

_TOO_LARGE = "it has {:,} bytes, and {:,} can be sent"
_TYPES = ("text", "image", "audio", "file", "resource")


class Media(NamedTuple):
    """Where the files of a call may be."""

    project: Path
    started: int
    """When the call began, in nanoseconds since the epoch."""
    readable: tuple[str, ...] | None
    """What the call could read; ``None`` if it was not confined."""


def blocks_of(data: Any) -> list[Mapping[str, Any]] | None:
    """Return the content blocks that a tool returned; ``None`` if it returned something else."""
    if not isinstance(data, Mapping) or set(data) != {"content"}:
        return None
    blocks = data["content"]
    if not isinstance(blocks, list) or not blocks:
        return None
    return blocks if all(map(_is_block, blocks)) else None


def blocks_of_server(content: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the blocks of another MCP server, which must not name files of this machine."""
    return [{key: value for key, value in one.items() if key != "path"} for one in content]


def _is_block(block: object) -> bool:
    if not isinstance(block, Mapping) or block.get("type") not in _TYPES:
        return False
    kind = block["type"]
    if kind == "text":
        return isinstance(block.get("text"), str)
    if kind == "resource":
        found = block.get("resource")
        return isinstance(found, Mapping) and isinstance(found.get("uri"), str)
    if isinstance(block.get("path"), str):
        return True
    return kind != "file" and all(isinstance(block.get(one), str) for one in ("data", "mimeType"))


def media_content(blocks: list[Mapping[str, Any]], media: Media) -> Iterator[Content]:
    """Yield content for each block; a file that cannot be sent is a text that says why."""
    room = MAX_BYTES
    for block in blocks:
        kind = block["type"]
        if kind == "text":
            yield TextContent(text=block["text"])
        elif kind == "resource_link":
            yield ResourceLink(
                str(block.get("uri")), str(block.get("name")), _text(block, "mimeType")
            )
        else:
            name = f"{kind} {block['path']}" if "path" in block else kind
            try:
                size, content = _made(block, media, room)
                room -= size
                yield content
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                yield TextContent(text=f"[{name} is not sent: {reason.lower()}]")


def _made(block: Mapping[str, Any], media: Media, room: int) -> tuple[int, Content]:
    """Return the size of a file or its data, and its content."""
    kind = block["type"]
    if "path" in block:
        path, data = _read(block["path"], media, room)
        return len(data), _of_file(kind, path, data, block.get("mimeType"))
    if kind == "resource":
        given = _given_resource(block["resource"])
        # Text counts as text of the result.
        return _size(given.blob or "", room), EmbeddedResource(given)
    made = ImageContent if kind == "image" else AudioContent
    return _size(block["data"], room), made(data=block["data"], mime_type=block["mimeType"])


def _size(base64: str, room: int) -> int:
    size = len(base64) * 3 // 4
    if size > room:
        raise ValueError(_TOO_LARGE.format(size, room))
    return size


def _text(given: Mapping[str, Any], name: str) -> str | None:
    return given[name] if isinstance(given.get(name), str) else None


def _given_resource(given: Mapping[str, Any]) -> ResourceContents:
    mime_type = _text(given, "mimeType") or "application/octet-stream"
    text, blob = _text(given, "text"), _text(given, "blob")
    return ResourceContents(given["uri"], mime_type, text=text, blob=blob)


def _of_file(kind: str, path: Path, data: bytes, mime_type: object) -> Content:
    from base64 import b64encode
    from mimetypes import guess_type

    known = mime_type if isinstance(mime_type, str) else guess_type(path.name)[0]
    if kind == "file":
        uri = path.as_uri()
        try:
            contents = ResourceContents(uri, known or "text/plain", text=data.decode())
        except UnicodeDecodeError:
            blob = b64encode(data).decode()
            contents = ResourceContents(uri, known or "application/octet-stream", blob=blob)
        return EmbeddedResource(contents)
    if known is None or not known.startswith(f"{kind}/"):
        raise ValueError(f"its name does not say which kind of {kind} it is; set mimeType")
    made = ImageContent if kind == "image" else AudioContent
    return made(data=b64encode(data).decode(), mime_type=known)


def _read(name: str, media: Media, room: int) -> tuple[Path, bytes]:
    """Return a file that this call has written. Raises ``OSError`` and ``ValueError``."""
    import tempfile

    path = Path(os.path.realpath(media.project / name))
    folders = [media.project.resolve(), Path(tempfile.gettempdir()).resolve()]
    folder = next((one for one in folders if path.is_relative_to(one)), None)
    if folder is None:
        raise ValueError("it is neither in the project nor in the folder for temporary files")
    if any(part.startswith(".") for part in path.relative_to(folder).parts):
        raise ValueError("a part of its path is hidden")
    if media.readable is not None and not any(map(path.is_relative_to, media.readable)):
        raise ValueError("the tool may not read it")
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        # A folder on the way may have been replaced by a link meanwhile.
        if os.path.realpath(path) != str(path) or not stat.S_ISREG(found.st_mode):
            raise ValueError("it is not a regular file")
        # Another name of an older file would make that look new.
        if found.st_uid != os.getuid() or found.st_nlink != 1:
            raise ValueError("it has another owner or another name")
        if found.st_ctime_ns < media.started - CLOCK_LAG_NS:
            raise ValueError("the call has not changed it")
        if found.st_size > room:
            raise ValueError(_TOO_LARGE.format(found.st_size, room))
        return path, file.read(room)
