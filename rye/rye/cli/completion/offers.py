"""What could come next on the command line; for ``shell_complete=`` of click's arguments.

A completion never complains: where something cannot be read there is nothing to offer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from rye.cli.invocation import Surroundings
from rye.cli.output.printing import plain
from rye.errors import RyeError

if TYPE_CHECKING:
    from rye.catalogue.entry import Summary
    from rye.cli.run.shapes import Parameters, Shape
    from rye.context import Context

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _quietly(offer: Callable[[click.Context, str], Iterable[CompletionItem]]) -> Completer:
    @wraps(offer)
    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            return list(offer(ctx, incomplete))
        except (RyeError, OSError):
            return []

    return complete


@_quietly
def tools(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Ids of what there is to run."""
    return _ids(_context(ctx), incomplete, lambda one: one.is_tool)


@_quietly
def items(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Ids of all items, also of runtimes and primitives."""
    return _ids(_context(ctx), incomplete, lambda _: True)


@_quietly
def targets(ctx: click.Context, incomplete: str) -> Iterable[CompletionItem]:
    """Ids of items, or else files."""
    found = list(_ids(_context(ctx), incomplete, lambda _: True))
    return found or [CompletionItem(incomplete, type="file")]


@_quietly
def fingerprints(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Keys that the user has given a word for, and can take it back."""
    from rye.trust.operations import trust_list

    for entry in trust_list(_context(ctx)):
        given = entry.trusted and entry.space != "system" and not entry.own
        if given and entry.fingerprint.startswith(incomplete):
            yield CompletionItem(entry.fingerprint, help=_line(entry.owner))


@_quietly
def pairs(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """``key=`` for the parameters of the item that was named before, and the values after it."""
    from rye.catalogue.catalogue import Catalogue
    from rye.cli.run.shapes import Parameters

    entry = Catalogue(_context(ctx)).entry(ctx.params["item_id"])
    parameters = Parameters(entry.schema)
    key, equals, text = incomplete.partition("=")
    if equals:
        for value in _values(parameters.shape(key)):
            if value.startswith(text):
                yield CompletionItem(f"{key}={value}")
        return
    given = {str(pair).partition("=")[0] for pair in ctx.params.get("pairs") or ()}
    yield from _keys(parameters, incomplete, given)


def _keys(parameters: Parameters, begun: str, given: set[str]) -> Iterator[CompletionItem]:
    for name in parameters.names():
        shape = parameters.shape(name)
        if name.startswith(begun) and (name not in given or "array" in shape.types):
            yield CompletionItem(f"{name}=", help=_line(shape.description))


def _values(shape: Shape) -> list[str]:
    if shape.choices:
        return [one if isinstance(one, str) else _spelled(one) for one in shape.choices]
    return ["true", "false"] if "boolean" in shape.types else []


def _spelled(value: object) -> str:
    import json

    return json.dumps(value)


def _ids(
    context: Context, incomplete: str, wanted: Callable[[Summary], bool]
) -> Iterator[CompletionItem]:
    """Full ids; of a name that was begun also the short ones, where they lead to one item."""
    from rye.catalogue.catalogue import Catalogue

    bearers: dict[str, list[Summary]] = {}
    for one in Catalogue(context).summaries():
        bearers.setdefault(one.item_id.rpartition("/")[2], []).append(one)
        if wanted(one) and one.item_id.startswith(incomplete):
            yield CompletionItem(one.item_id, help=_line(one.description))
    if not incomplete or "/" in incomplete:
        return
    for stem, bearing in bearers.items():
        full = bearing[0].item_id
        unique = len(bearing) == 1 and stem != full
        if unique and stem.startswith(incomplete) and wanted(bearing[0]):
            yield CompletionItem(stem, help=full)


def _context(ctx: click.Context) -> Context:
    # While completing, click parses the arguments but calls nothing.
    return Surroundings(ctx.find_root().params.get("project")).context


def _line(text: str) -> str | None:
    return plain(" ".join(text.split())) or None
