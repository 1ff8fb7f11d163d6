"""Which template ``--runtime`` means: a short name, or the id of a runtime."""

from __future__ import annotations

from collections.abc import Mapping

from rye.cli.new.templates import (
    TEMPLATES,
    Template,
    bare_template,
    extension_for,
    template_for,
    template_named,
)
from rye.errors import ItemIdError, ItemNotFoundError, ParameterError
from rye.formats import known_extensions, may_be_item
from rye.items.element import Metadata
from rye.items.metadata import parse_metadata
from rye.items.reader import read_item
from rye.spaces.model import Resolution
from rye.spaces.resolver import Resolver


def find_template(runtime: str, resolver: Resolver, extension: str | None = None) -> Template:
    """The template that is meant.

    A runtime that Rye has no template for gives a bare one, if the extension is given or known
    from its interpreter. Raises :class:`ParameterError` that lists what could have been meant.
    """
    template = template_named(runtime) or _template_of_item(runtime, resolver, extension)
    if extension is not None and extension != template.extension:
        raise ParameterError(
            f"wrong extension {extension!r}",
            [f"a tool from the template {template.name!r} is a {template.extension} file"],
            hint="leave it out",
        )
    return template


def _template_of_item(runtime: str, resolver: Resolver, extension: str | None) -> Template:
    names = ", ".join(each.name for each in TEMPLATES)
    try:
        found = resolver.resolve(runtime)
    except (ItemNotFoundError, ItemIdError):
        raise ParameterError(
            f"wrong runtime {runtime!r}",
            [f"expected one of {names}, or the id of a runtime"],
            hint="see what each is for with: rye new --help",
        ) from None
    shipped = template_for(found.item_id)
    if shipped is not None and found.space.name == "system":
        return shipped
    if found.path is None:
        return bare_template(found.item_id, extension or ".yaml")
    metadata = parse_metadata(read_item(found.path, found.space.root))
    if metadata.tool_type not in ("runtime", "primitive"):
        raise ParameterError(
            f"wrong runtime {runtime!r}",
            [f"{found.path} is a {metadata.tool_type or 'tool'}, and runs no other"],
            hint=f"use one of {names}, or the id of a runtime",
        )
    return bare_template(found.item_id, _extension_of_tools(found, metadata, extension))


def _extension_of_tools(found: Resolution, metadata: Metadata, given: str | None) -> str:
    """The extension of the files that a runtime runs: as given, or guessed by its interpreter."""
    interpreter = (metadata.env_config or {}).get("interpreter")
    rules = interpreter if isinstance(interpreter, Mapping) else {}
    programs = [rules.get("binary"), rules.get("fallback")]
    guesses = [extension_for(one) for one in programs if isinstance(one, str)]
    chosen = given or next(filter(None, guesses), None)
    if chosen is None:
        raise ParameterError(
            f"wrong call of the runtime {found.item_id!r}",
            ["nothing says which files it runs"],
            hint="add for example: --extension .rb",
        )
    if chosen not in known_extensions() and not (chosen[0] == "." and may_be_item(chosen)):
        raise ParameterError(
            f"wrong extension {chosen!r}",
            ["no item has it"],
            hint="write one with its dot, like .rb",
        )
    return chosen
