"""New tools and new projects, as files. Nothing is printed here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from lilux.files.atomic import atomic_write

from rye.cli.new.templates import Template, rendered
from rye.context import Context
from rye.errors import ItemFormatError, ItemIdError, ParameterError, RyeError
from rye.formats import format_of, known_extensions
from rye.spaces.containment import is_in_space, outside_space_error
from rye.spaces.folders import files_with_stem
from rye.spaces.ids import check_item_id, primitive_ids
from rye.spaces.model import Resolution, Space, SpaceName
from rye.spaces.resolver import Resolver
from rye.trust.signature import compose, timestamp_now
from rye.trust.signer import Signer

MAX_DESCRIPTION = 500


class NewTool(NamedTuple):
    """A tool that was written and signed."""

    item_id: str
    path: Path
    template: Template
    fingerprint: str
    instead_of: Resolution | None
    """What the id, or its last part as a short id, led to before, and leads to no more."""
    hidden_by: Resolution | None
    """What the id leads to in place of the new tool, since it is in a higher space."""


def key_folder(context: Context) -> Path:
    """Where the user's key pair is, or will be."""
    return context.user_space / ".ai" / "keys"


def new_tool(
    item_id: str,
    template: Template,
    context: Context,
    resolver: Resolver,
    *,
    space: SpaceName = "project",
    description: str = "",
) -> NewTool:
    """Write a signed tool in one step, and the folders that it needs.

    Raises :class:`ItemIdError` for an id that no tool may have, :class:`RyeError` if there is one
    already, :class:`KeyStoreError` if the user's key cannot be used; then nothing was written.
    """
    _check_name(item_id)
    _check_description(description)
    root = (context.user_space if space == "user" else context.project_path) / ".ai"
    home = Space(name=space, root=root)
    before = _led_to(item_id, resolver)
    by_stem = _led_to(item_id.rpartition("/")[2], resolver)
    path = home.tools / f"{item_id}{template.extension}"
    _refuse_existing(item_id, path)
    text = rendered(template, item_id, description or template.does)
    signer = Signer.of_user(key_folder(context))
    signed = compose(
        text.encode(),
        format_of(path).comment,
        private_key=signer.private_key,
        fingerprint=signer.fingerprint,
        timestamp=timestamp_now(),
    )
    _make_folder(path.parent, home)
    try:
        atomic_write(path, signed, create_only=True)
    except FileExistsError:
        raise _exists(item_id, path) from None
    higher = [one for one in (before,) if one and one.space.precedence > home.precedence]
    others = [one for one in (before, by_stem) if one and one.space.precedence <= home.precedence]
    return NewTool(
        item_id=item_id,
        path=path,
        template=template,
        fingerprint=signer.fingerprint,
        instead_of=next(iter(others), None),
        hidden_by=next(iter(higher), None),
    )


def _check_name(item_id: str) -> None:
    check_item_id(item_id)
    if item_id.startswith("-"):
        raise ItemIdError(
            f"item id '{item_id}' begins like an option", hint="choose a name without the dash"
        )
    reserved = primitive_ids()
    if item_id in reserved or item_id in {one.rpartition("/")[2] for one in reserved}:
        raise ItemIdError(
            f"item id '{item_id}' is reserved for a primitive", hint="choose another name"
        )
    stem, extension = os.path.splitext(item_id)  # noqa: PTH122 - an id is a text
    if extension in known_extensions():
        raise ItemIdError(f"item id '{item_id}' ends in an extension", hint=f"leave it out: {stem}")


def _check_description(description: str) -> None:
    if not description.isprintable() or len(description) > MAX_DESCRIPTION:
        raise ParameterError(
            "wrong description",
            [f"expected one line of at most {MAX_DESCRIPTION} printable characters"],
            hint="shorten it; the file can say more",
        )


def _led_to(item_id: str, resolver: Resolver) -> Resolution | None:
    try:
        return resolver.resolve(item_id)
    except RyeError:
        return None


def _refuse_existing(item_id: str, path: Path) -> None:
    stem = path.name.removesuffix(path.suffix)
    names = files_with_stem(str(path.parent), stem) if path.parent.is_dir() else []
    if names:
        raise _exists(item_id, path.parent / names[0])


def _exists(item_id: str, path: Path) -> RyeError:
    return RyeError(
        f"'{item_id}' is there already: {path}", hint="choose another name, or remove that file"
    )


def _make_folder(folder: Path, space: Space) -> None:
    # A link on the way could lead the new file to where no item may be.
    if not is_in_space(f"{os.path.realpath(folder)}/", str(space.root)):
        raise outside_space_error(folder, space.root)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ItemFormatError(
            folder, "is in the way of a folder", hint="choose another name, or move that file"
        ) from None
