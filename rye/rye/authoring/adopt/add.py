"""Write a proposed tool into a space, sign it, and pin it if it runs files that nobody signs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from lilux.files.atomic import atomic_write

from rye.authoring.adopt.recognise import Proposal
from rye.authoring.signing import SigningRoom
from rye.context import Context
from rye.errors import RyeError
from rye.executor.pinning import Locking
from rye.spaces.containment import is_in_space, outside_space_error
from rye.spaces.folders import files_with_stem
from rye.spaces.ids import check_item_id
from rye.spaces.model import Space
from rye.trust.signer import Signer

_PLAIN, _EXECUTABLE = 0o644, 0o755


class Added(NamedTuple):
    """A tool that was written and signed."""

    item_id: str
    path: Path
    in_place: bool
    """True if the file was already below ``.ai/tools``."""
    pinned: tuple[str, ...]
    """The files of the project that were pinned with it."""


def place_of(source: Path | None, proposal: Proposal, item_id: str | None, space: Space) -> Added:
    """Where the tool will be. Raises :class:`RyeError` if another tool is there.

    A ``source`` below the tools of the space stays where it is.
    """
    if source is not None and source.is_relative_to(space.tools):
        own = source.relative_to(space.tools).with_suffix("").as_posix()
        if item_id not in (None, own):
            raise RyeError(
                f"{source} already has the id '{own}'", hint="leave out --as, or move the file"
            )
        others = set(files_with_stem(str(source.parent), source.stem)) - {source.name}
        if others:
            raise RyeError(
                f"'{own}' is also {source.parent / min(others)}", hint="remove or rename one"
            )
        return Added(check_item_id(own), source, True, ())
    name = check_item_id(item_id or proposal.name)
    path = space.tools / f"{name}{proposal.extension}"
    folder, _, stem = name.rpartition("/")
    there = space.tools / folder
    names = files_with_stem(str(there), stem) if there.is_dir() else []
    if names:
        raise RyeError(
            f"'{name}' already exists: {there / names[0]}",
            hint=f"choose another name with --as, or remove it with: rye rm {name}",
        )
    return Added(name, path, False, ())


def add_tool(proposal: Proposal, place: Added, space: Space, context: Context) -> Added:
    """Write, sign and pin the tool at its place. If it cannot be signed, nothing is left."""
    signer = Signer.of_user(context.user_space / ".ai" / "keys")
    folder = place.path.parent
    if not is_in_space(f"{os.path.realpath(folder)}/", str(space.root)):
        raise outside_space_error(folder, space.root)
    folder.mkdir(parents=True, exist_ok=True)
    before = place.path.read_bytes() if place.in_place else None
    mode = _EXECUTABLE if proposal.executable else _PLAIN
    atomic_write(place.path, proposal.text.encode(), mode=mode, create_only=before is None)
    try:
        SigningRoom(context, signer).sign(place.item_id, place.path, space.root)
        if proposal.pins:
            Locking(context).pin(place.item_id, update=True)
    except RyeError:
        if before is None:
            place.path.unlink(missing_ok=True)
        else:
            atomic_write(place.path, before, mode=mode)
        raise
    return place._replace(pinned=proposal.pins)
