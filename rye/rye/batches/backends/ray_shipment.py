"""A tool on its way to the nodes of a cluster: its files and keys, named by their content.

The driver packs what it has verified. A worker checks every name against the content, writes the
files to spaces of its own, and verifies the tool again as for any call: signatures by the keys of
the shipment, and the digest of the closure that comes out. So a worker runs exactly the closure
that the driver verified, or nothing.

Files of the system space are not shipped: they are part of Rye, which every node has.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lilux.sha256 import sha256

from rye.closure.manifest import PROJECT
from rye.errors import BatchError, ClosureError
from rye.executor.config.asked_names import asked_names
from rye.formats import format_of
from rye.trust.data_list import SUFFIX
from rye.trust.signature import split_signature
from rye.trust.store import TrustStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rye.context import Context
    from rye.executor.run.prepare import VerifiedChain


class Shipment(NamedTuple):
    """Everything that a worker needs of a tool."""

    item_id: str
    closure: str
    """The digest of the closure that the driver verified."""
    files: Mapping[str, tuple[str, bool]]
    """Where each file belongs, such as ``project/tools/a.py``: the name of its blob, and whether it
    is executable."""
    keys: Mapping[str, tuple[str, str]]
    """Fingerprint → the name of the blob with the public key, and its owner."""
    blobs: Mapping[str, bytes]
    """SHA-256 → content."""


def pack(verified: VerifiedChain, context: Context) -> Shipment:
    """Pack a verified tool. Raises :class:`BatchError` for one that needs its project."""
    tool = verified.chain[0]
    pinned = [one.path for one in verified.closure.manifest.files if one.role == PROJECT]
    if pinned:
        raise BatchError(
            f"{tool.item_id!r} runs files of its project ({pinned[0]}), which other machines "
            "do not have",
            hint="run it with --on local",
        )
    files: dict[str, tuple[str, bool]] = {}
    keys: dict[str, tuple[str, str]] = {}
    blobs: dict[str, bytes] = {}
    store, roots = TrustStore(context), _roots(verified, context)
    for path, executable in _sources(verified):
        place = _place(path, roots)
        if place is None:
            continue
        data = path.read_bytes()
        files[place] = (_add(blobs, data), executable)
        line = split_signature(data, format_of(path).comment).line
        entry = None if line is None else store.find(line.fingerprint, store.place(path))
        if entry is not None and entry.is_trusted_in(()):
            keys[entry.fingerprint] = (_add(blobs, entry.public_key), entry.owner)
    return Shipment(tool.item_id, verified.closure.digest, files, keys, blobs)


def checked(shipment: Shipment) -> Shipment:
    """Return the shipment. Raises :class:`ClosureError` if a blob is not what its name says."""
    for name, data in shipment.blobs.items():
        if sha256(data).hexdigest() != name:
            raise ClosureError(
                f"a file of {shipment.item_id!r} changed on its way", hint="start the batch again"
            )
    return shipment


def chosen(verified: VerifiedChain, names: tuple[str, ...], context: Context) -> dict[str, str]:
    """The variables that the user sends to the workers. Raises :class:`BatchError`.

    Only those that the signed files ask for, as for a ``.env``.
    """
    asked, tool = asked_names(verified.chain), verified.chain[0].item_id
    for name in names:
        if not asked.takes(name):
            raise BatchError(
                f"{tool!r} does not ask for the variable {name!r}",
                hint="declare it in the tool's permissions.env, or leave out --env",
            )
        if name not in context.environ:
            raise BatchError(f"the variable {name!r} is not set here", hint="set it")
    return {name: context.environ[name] for name in names}


def _sources(verified: VerifiedChain) -> Iterator[tuple[Path, bool]]:
    closure = verified.closure
    for one, (path, _) in zip(closure.manifest.files, closure.sources, strict=True):
        yield Path(path), one.executable
    for element in verified.chain:
        # The signed list of the data files vouches for them, and is not a part of the closure.
        if element.path is not None and element.metadata.files:
            yield element.path.with_name(f"{element.path.name}{SUFFIX}"), False


def _place(path: Path, roots: Mapping[Path, str]) -> str | None:
    for root, space in roots.items():
        for found, base in ((path, root), (path.resolve(), root.resolve())):
            if found.is_relative_to(base):
                return f"{space}/{found.relative_to(base)}"
    return None


def _roots(verified: VerifiedChain, context: Context) -> dict[Path, str]:
    """The folders of the spaces. A tool that has changed since is in a space of its own."""
    found = {
        one.resolution.space.root: str(one.space) for one in verified.chain if one.space != "system"
    }
    return {**found, context.project_path / ".ai": "project", context.user_space / ".ai": "user"}


def _add(blobs: dict[str, bytes], data: bytes) -> str:
    name = sha256(data).hexdigest()
    blobs[name] = data
    return name
