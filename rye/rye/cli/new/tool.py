"""Create a tool: find the template that is meant, and write a signed file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from lilux.files.atomic import atomic_write

from rye.cache.disk import cache_of
from rye.cli.new.templates import (
    TEMPLATES,
    Template,
    bare_template,
    extension_for,
    render,
    script_template,
    template_for,
    template_named,
)
from rye.cli.sign.signing import key_folder
from rye.context import Context
from rye.errors import ItemFormatError, ItemIdError, ItemNotFoundError, ParameterError, RyeError
from rye.formats import format_of, known_extensions, may_be_item
from rye.items.element import Metadata
from rye.items.metadata import parse_metadata
from rye.items.reader import read_item
from rye.spaces.containment import is_in_space, outside_space_error
from rye.spaces.folders import files_with_stem
from rye.spaces.ids import check_item_id, primitive_ids
from rye.spaces.model import Resolution, Space, SpaceName
from rye.spaces.resolver import Resolver
from rye.trust.signature import compose, timestamp_now
from rye.trust.signed_text import keep_signed
from rye.trust.signer import Signer

MAX_DESCRIPTION = 500


class NewTool(NamedTuple):
    """A tool that was written and signed."""

    item_id: str
    path: Path
    template: Template
    fingerprint: str
    replaces: Resolution | None
    """The item that the id, or its last part as a short id, resolved to before."""
    hidden_by: Resolution | None
    """The item in a higher space that the id still resolves to."""
    problem: str
    """Why it cannot run on this machine, and what to do; empty if it can."""


def find_template(runtime: str, resolver: Resolver, extension: str | None = None) -> Template:
    """Return the template for ``--runtime``, which is a short name or the id of a runtime.

    A runtime without a template gets a bare one, if the extension is given or known from its
    interpreter. Raises :class:`ParameterError` that lists the possible values.
    """
    template = template_named(runtime) or _template_of_item(runtime, resolver, extension)
    if extension is not None and extension != template.extension:
        raise ParameterError(
            f"invalid extension {extension!r}",
            [f"a tool from the template {template.name!r} is a {template.extension} file"],
            hint="leave it out",
        )
    return template


def new_tool(
    item_id: str,
    template: Template,
    context: Context,
    resolver: Resolver,
    *,
    space: SpaceName = "project",
    description: str = "",
) -> NewTool:
    """Write a signed tool in one step, and create its parent directories.

    Raises :class:`ItemIdError` for an invalid id, :class:`RyeError` if the tool exists, and
    :class:`KeyStoreError` if the user's key cannot be used. In each case nothing is written.
    """
    _check_name(item_id)
    _check_description(description)
    root = (context.user_space if space == "user" else context.project_path) / ".ai"
    home = Space(name=space, root=root)
    before = _resolve_or_none(item_id, resolver)
    by_stem = _resolve_or_none(item_id.rpartition("/")[2], resolver)
    path = home.tools / f"{item_id}{template.extension}"
    _refuse_existing(item_id, path)
    text = render(template, item_id, description or template.does)
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
    cache = cache_of(context.user_space)
    keep_signed(path, signed, format_of(path).comment, cache)
    cache.flush()
    higher = [one for one in (before,) if one and one.space.precedence > home.precedence]
    others = [one for one in (before, by_stem) if one and one.space.precedence <= home.precedence]
    return NewTool(
        item_id=item_id,
        path=path,
        template=template,
        fingerprint=signer.fingerprint,
        replaces=next(iter(others), None),
        hidden_by=next(iter(higher), None),
        problem="" if higher else _problem(item_id, context),
    )


def _problem(item_id: str, context: Context) -> str:
    from rye.authoring.check import Checker

    return next(iter(Checker(context).check(item_id).errors), "")


def _template_of_item(runtime: str, resolver: Resolver, extension: str | None) -> Template:
    names = ", ".join(each.name for each in TEMPLATES)
    try:
        found = resolver.resolve(runtime)
    except (ItemNotFoundError, ItemIdError):
        if (script := script_template(runtime)) is not None:
            return script
        raise ParameterError(
            f"unknown runtime {runtime!r}",
            [f"expected one of {names}, an interpreter such as perl, or the id of a runtime"],
            hint="see `rye new --help`",
        ) from None
    shipped = template_for(found.item_id)
    if shipped is not None and found.space.name == "system":
        return shipped
    if found.path is None:
        return bare_template(found.item_id, extension or ".yaml")
    metadata = parse_metadata(read_item(found.path, found.space.root))
    if metadata.tool_type not in ("runtime", "primitive"):
        raise ParameterError(
            f"invalid runtime {runtime!r}",
            [f"{found.path} is a tool, not a runtime"],
            hint=f"use one of {names}, or the id of a runtime",
        )
    return bare_template(found.item_id, _extension_of_tools(found, metadata, extension))


def _extension_of_tools(found: Resolution, metadata: Metadata, given: str | None) -> str:
    """Return the extension of a runtime's tools: the given one, or that of its interpreter."""
    interpreter = (metadata.env_config or {}).get("interpreter")
    rules = interpreter if isinstance(interpreter, Mapping) else {}
    programs = [rules.get("binary"), rules.get("fallback")]
    guesses = [extension_for(one) for one in programs if isinstance(one, str)]
    chosen = given or next(filter(None, guesses), None)
    if chosen is None:
        raise ParameterError(
            f"missing extension for the runtime {found.item_id!r}",
            ["it does not declare which files it runs"],
            hint="pass one, for example: --extension .rb",
        )
    if chosen not in known_extensions() and not (chosen[0] == "." and may_be_item(chosen)):
        raise ParameterError(
            f"invalid extension {chosen!r}",
            ["a tool cannot have it"],
            hint="pass one with a dot, for example .rb",
        )
    return chosen


def _check_name(item_id: str) -> None:
    check_item_id(item_id)
    if item_id.startswith("-"):
        raise ItemIdError(
            f"item id '{item_id}' begins with a dash, like an option",
            hint="choose a name without the dash",
        )
    reserved = primitive_ids()
    if item_id in reserved or item_id in {one.rpartition("/")[2] for one in reserved}:
        raise ItemIdError(
            f"item id '{item_id}' is reserved for a primitive", hint="choose another name"
        )
    stem, extension = os.path.splitext(item_id)  # noqa: PTH122 - an id is not a path
    if extension in known_extensions():
        raise ItemIdError(f"item id '{item_id}' has a file extension", hint=f"use {stem}")


def _check_description(description: str) -> None:
    if not description.isprintable() or len(description) > MAX_DESCRIPTION:
        raise ParameterError(
            "invalid description",
            [f"expected one line of at most {MAX_DESCRIPTION} printable characters"],
            hint="shorten it; longer text can go into the file",
        )


def _resolve_or_none(item_id: str, resolver: Resolver) -> Resolution | None:
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
        f"'{item_id}' already exists: {path}", hint="choose another name, or remove that file"
    )


def _make_folder(folder: Path, space: Space) -> None:
    # A symbolic link among the parents could place the file outside of the space.
    if not is_in_space(f"{os.path.realpath(folder)}/", str(space.root)):
        raise outside_space_error(folder, space.root)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ItemFormatError(
            folder, "is not a directory", hint="choose another name, or move that file"
        ) from None
