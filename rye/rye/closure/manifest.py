"""The manifest of a closure: everything that was verified for a call, by its content.

::

    {
      "config": {…},                 the merged config of the chain, with its placeholders
      "files": [
        {"mode": "0400", "path": "add.py", "role": "tool", "sha256": "…"},
        …
      ],
      "format": 1,
      "permissions": {…},            what the signed files allow; null if the tool is not confined
      "primitive": "rye/core/primitives/subprocess"
    }

The SHA-256 of this text, as canonical JSON, is the digest of the closure. It contains no absolute
path, no time and nothing of the machine. ``sha256`` is the content hash of a signed file, without
its signature line, as in a lockfile; so signing the same content again gives the same closure. For
a file without a signature it is the hash of all bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from lilux.primitives.integrity import canonical_json
from lilux.record import Record, field
from lilux.sha256 import sha256

from rye.errors import ClosureError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMAT = 1

TOOL = "tool"
LIBRARY = "library"
"""A signed file that the tool loads: a module of its folder."""
ANCHOR = "anchor"
"""The same, in an anchor that does not contain the tool."""
DATA = "data"
"""A file that the tool reads, in the signed list of its ``files`` or in ``pins``."""
MARKER = "marker"
"""A file that marks the folder of the tool, such as ``package.json``. It is not signed."""
RUNTIME = "runtime"
"""The file of a runtime or of the primitive."""
RUNTIME_LIBRARY = "runtime_library"
RUNTIME_DATA = "runtime_data"
"""A file that the library of a runtime reads, in the signed list of the runtime's ``files``."""
PROJECT = "project"
"""A file of the project in ``pins``. It runs where it is, and is not copied."""

FOLDERS = {
    **dict.fromkeys((TOOL, LIBRARY, DATA, MARKER), "tool"),
    ANCHOR: "anchor",
    RUNTIME: "runtime",
    **dict.fromkeys((RUNTIME_LIBRARY, RUNTIME_DATA), "lib"),
}
"""The folder of the copy that has the files of a role."""

_MODES = {False: "0400", True: "0500"}
_DIGEST = r"[0-9a-f]{64}"


class ClosureFile(Record, frozen=True, kw_only=True):
    """One file of a closure."""

    role: str
    path: str
    """Relative to the folder of its role: of the tool, of the anchor, of the runtime's library, of
    the tools in the runtime's space, or of the project."""
    sha256: str
    executable: bool = False

    @property
    def place(self) -> str | None:
        """The path in the copy; ``None`` if the file is not copied."""
        folder = FOLDERS.get(self.role)
        return None if folder is None else f"{folder}/{self.path}"


class Manifest(Record, frozen=True, kw_only=True):
    """The content of a closure. Files are sorted by role and path."""

    files: tuple[ClosureFile, ...]
    primitive: str
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)
    permissions: Mapping[str, Any] | None = None

    @property
    def tool(self) -> ClosureFile | None:
        """The file of the tool; ``None`` for a primitive without one."""
        return next((one for one in self.files if one.role == TOOL), None)

    def encoded(self) -> bytes:
        """The canonical text, whose SHA-256 is the digest."""
        return canonical_json(
            {
                "format": FORMAT,
                "primitive": self.primitive,
                "config": self.config,
                "permissions": self.permissions,
                "files": [
                    {
                        "role": one.role,
                        "path": one.path,
                        "mode": _MODES[one.executable],
                        "sha256": one.sha256,
                    }
                    for one in self.files
                ],
            }
        ).encode("ascii")


class Closure(Record, frozen=True, kw_only=True):
    """A manifest, and where its files were verified."""

    digest: str
    manifest: Manifest
    encoded: bytes = field(repr=False)
    """The text whose SHA-256 is the digest."""
    sources: tuple[tuple[str, str], ...] = field(repr=False)
    """For each file its path, and the folder that contains it."""
    folders: Mapping[str, str] = field(repr=False)
    """The folders of the copy, and the folders that they are copies of."""


def close(
    manifest: Manifest, sources: tuple[tuple[str, str], ...], folders: Mapping[str, str]
) -> Closure:
    """The closure with this manifest."""
    encoded = manifest.encoded()
    return Closure(
        digest=sha256(encoded).hexdigest(),
        manifest=manifest,
        encoded=encoded,
        sources=sources,
        folders=folders,
    )


def decode_manifest(data: bytes, digest: str) -> Manifest:
    """Return the manifest with this digest. Raises :class:`ClosureError` for any other bytes."""
    if sha256(data).hexdigest() != digest:
        raise ClosureError(f"the manifest of closure {digest} has changed", hint=_MAKE_AGAIN)
    try:
        values = json.loads(data)
        if values["format"] != FORMAT:
            raise ClosureError(
                f"closure {digest} has format {values['format']!r}, which this version of rye "
                "does not know",
                hint="update rye",
            )
        return Manifest(
            files=tuple([_file(one) for one in values["files"]]),
            primitive=values["primitive"],
            config=values["config"],
            permissions=values["permissions"],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ClosureError(f"closure {digest} is malformed ({error})", hint=_MAKE_AGAIN) from None


_MAKE_AGAIN = "remove it with: rye cache prune --all"


def is_digest(text: str) -> bool:
    """True for 64 lower-case hex digits."""
    return re.fullmatch(_DIGEST, text) is not None


def _file(values: Mapping[str, Any]) -> ClosureFile:
    path, role = str(values["path"]), str(values["role"])
    if not {"", ".", ".."}.isdisjoint(path.split("/")) or "\0" in path:
        raise ValueError(f"{path!r} is not a path inside a closure")
    return ClosureFile(
        role=role,
        path=path,
        sha256=str(values["sha256"]),
        executable={text: flag for flag, text in _MODES.items()}[values["mode"]],
    )
