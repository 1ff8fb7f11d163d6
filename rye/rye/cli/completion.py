"""Completion of arguments in a shell, for ``shell_complete=`` in the commands.

Errors are ignored: where something cannot be read, nothing is completed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from rye.cli.invocation import Invocation
from rye.cli.output.printing import plain
from rye.errors import RyeError

if TYPE_CHECKING:
    from rye.catalogue.entry import Summary
    from rye.cli.run.parameter_types import ParameterType, SchemaParameters
    from rye.context import Context

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _ignoring_errors(find: Callable[[click.Context, str], Iterable[CompletionItem]]) -> Completer:
    @wraps(find)
    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            return list(find(ctx, incomplete))
        except (RyeError, OSError):
            return []

    return complete


@_ignoring_errors
def complete_tool(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Complete the id of a tool."""
    return _ids(_context(ctx), incomplete, lambda one: one.is_tool)


@_ignoring_errors
def complete_item(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Complete the id of any item, including runtimes and primitives."""
    return _ids(_context(ctx), incomplete, lambda _: True)


@_ignoring_errors
def complete_target(ctx: click.Context, incomplete: str) -> Iterable[CompletionItem]:
    """Complete the id of an item or, if none matches, the name of a file."""
    found = list(_ids(_context(ctx), incomplete, lambda _: True))
    return found or [CompletionItem(incomplete, type="file")]


@_ignoring_errors
def complete_fingerprint(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Complete the fingerprint of a key that ``rye trust remove`` can remove."""
    from rye.trust.operations import trust_list

    for entry in trust_list(_context(ctx)):
        removable = entry.trusted and entry.space != "system" and not entry.own
        if removable and entry.fingerprint.startswith(incomplete):
            yield CompletionItem(entry.fingerprint, help=_one_line(entry.owner))


@_ignoring_errors
def complete_parameter(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Complete ``key=`` for the tool on the command line, and values such as ``true``."""
    from rye.catalogue.catalogue import Catalogue
    from rye.cli.run.parameter_types import SchemaParameters

    entry = Catalogue(_context(ctx)).entry(ctx.params["item_id"])
    parameters = SchemaParameters(entry.schema)
    key, equals, text = incomplete.partition("=")
    if equals:
        for value in _values(parameters.type_of(key)):
            if value.startswith(text):
                yield CompletionItem(f"{key}={value}")
        return
    given = {str(pair).partition("=")[0] for pair in ctx.params.get("pairs") or ()}
    yield from _keys(parameters, incomplete, given)


def _keys(
    parameters: SchemaParameters, incomplete: str, given: set[str]
) -> Iterator[CompletionItem]:
    for name in parameters.names():
        kind = parameters.type_of(name)
        if name.startswith(incomplete) and (name not in given or "array" in kind.types):
            yield CompletionItem(f"{name}=", help=_one_line(kind.description))


def _values(kind: ParameterType) -> list[str]:
    import json

    if kind.choices:
        return [one if isinstance(one, str) else json.dumps(one) for one in kind.choices]
    return ["true", "false"] if "boolean" in kind.types else []


def _ids(
    context: Context, incomplete: str, wanted: Callable[[Summary], bool]
) -> Iterator[CompletionItem]:
    """Yield full ids and, for a text without a slash, also short ids that are unambiguous."""
    from rye.catalogue.catalogue import Catalogue

    by_stem: dict[str, list[Summary]] = {}
    for one in Catalogue(context).summaries():
        by_stem.setdefault(one.item_id.rpartition("/")[2], []).append(one)
        if wanted(one) and one.item_id.startswith(incomplete):
            yield CompletionItem(one.item_id, help=_one_line(one.description))
    if not incomplete or "/" in incomplete:
        return
    for stem, found in by_stem.items():
        full = found[0].item_id
        unique = len(found) == 1 and stem != full
        if unique and stem.startswith(incomplete) and wanted(found[0]):
            yield CompletionItem(stem, help=full)


def _context(ctx: click.Context) -> Context:
    # For a completion click parses the arguments, but does not call the group, which sets ctx.obj.
    return Invocation(ctx.find_root().params.get("project")).context


def _one_line(text: str) -> str | None:
    return plain(" ".join(text.split())) or None
