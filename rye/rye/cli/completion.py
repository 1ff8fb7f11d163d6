"""Completion of arguments in a shell, for ``shell_complete=`` in the commands.

Errors are ignored: where something cannot be read, nothing is completed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from rye.cli.invocation import Invocation
from rye.cli.output.printing import plain
from rye.errors import RyeError

if TYPE_CHECKING:
    from rye.catalogue.entry import Summary
    from rye.catalogue.parameter_types import ParameterType, SchemaParameters
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
def complete_unapproved(ctx: click.Context, incomplete: str) -> Iterable[CompletionItem]:
    """Complete the fingerprint of a key that the project lists, or the name of a file."""
    from rye.trust.operations import trust_list

    found = [
        CompletionItem(entry.fingerprint, help=_one_line(entry.owner))
        for entry in trust_list(_context(ctx))
        if not entry.trusted and not entry.problem and entry.fingerprint.startswith(incomplete)
    ]
    return found or [CompletionItem(incomplete, type="file")]


@_ignoring_errors
def complete_parameter(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Complete ``key=`` for the tool on the command line, and values such as ``true``.

    After ``--key``, the value of that parameter is completed.
    """
    parameters = _parameters(ctx)
    pairs = [str(pair) for pair in ctx.params.get("pairs") or ()]
    before = pairs[-1] if pairs else ""
    if before.startswith("--") and "=" not in before:
        kind = parameters.type_of(_name_of(before, parameters))
        if "boolean" not in kind.types:
            yield from [CompletionItem(one) for one in _values(kind) if one.startswith(incomplete)]
            return
    key, equals, text = incomplete.partition("=")
    if equals:
        for value in _values(parameters.type_of(key)):
            if value.startswith(text):
                yield CompletionItem(f"{key}={value}")
        return
    for name, about in _free_keys(parameters, pairs):
        if name.startswith(incomplete):
            yield CompletionItem(f"{name}=", help=about)


def complete_option_of_tool(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Complete ``--key`` for the tool on the command line."""
    if not ctx.params.get("item_id"):
        return []
    try:
        parameters = _parameters(ctx)
    except (RyeError, OSError):
        return []
    pairs = [str(pair) for pair in ctx.params.get("pairs") or ()]
    return [
        CompletionItem(f"--{name}", help=about)
        for name, about in _free_keys(parameters, pairs)
        if f"--{name}".startswith(incomplete)
    ]


@_ignoring_errors
def complete_runtime(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Complete the name of a template for ``rye new``, or the id of a runtime."""
    from rye.cli.new.templates import TEMPLATES

    for template in TEMPLATES:
        if template.name.startswith(incomplete):
            yield CompletionItem(template.name, help=template.summary)
    if incomplete:
        yield from _ids(_context(ctx), incomplete, lambda one: one.tool_type == "runtime")


@_ignoring_errors
def complete_help(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Complete the words after ``rye help``: a command, or the id of a tool."""
    root = ctx.find_root()
    given = tuple(ctx.params.get("words") or ())
    group: click.Command | None = root.command
    for word in given:
        group = group.get_command(root, word) if isinstance(group, click.Group) else None
    if isinstance(group, click.Group):
        names = group.list_commands(root)
        yield from [CompletionItem(name) for name in names if name.startswith(incomplete)]
    if not given:
        yield from _ids(_context(ctx), incomplete, lambda one: one.is_tool)


def _parameters(ctx: click.Context) -> SchemaParameters:
    from rye.catalogue.catalogue import Catalogue
    from rye.catalogue.parameter_types import SchemaParameters

    return SchemaParameters(Catalogue(_context(ctx)).entry(ctx.params["item_id"]).schema)


def _name_of(option: str, parameters: SchemaParameters) -> str:
    given = option.removeprefix("--")
    names = parameters.names()
    return next((one for one in (given, given.replace("-", "_")) if one in names), given)


def _free_keys(
    parameters: SchemaParameters, pairs: Sequence[str]
) -> Iterator[tuple[str, str | None]]:
    """The names of parameters that are not given yet or may be repeated, with descriptions."""
    given = {_name_of(pair.partition("=")[0], parameters) for pair in pairs}
    for name in parameters.names():
        kind = parameters.type_of(name)
        if name not in given or "array" in kind.types:
            yield name, _one_line(kind.description)


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
