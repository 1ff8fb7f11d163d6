"""Add and update tools from elsewhere: what is shown, what is asked, and what is left to do."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence

import click

from rye.authoring.sources.fetch import Fetched, fetch
from rye.authoring.sources.reference import Reference
from rye.authoring.sources.store import Source, Sources, changed_files, content_hash, tool_files
from rye.authoring.sources.survey import SurveyedTool, survey
from rye.cli.output.printing import display, plain, print_json, print_table, style
from rye.context import Context
from rye.errors import RyeError

_DIGITS = 12


def add_source(
    reference: Reference, name: str, context: Context, *, yes: bool, as_json: bool
) -> None:
    """Fetch a source, show it, ask, and install it."""
    sources = Sources(context)
    sources.check_free(name)
    fetched = fetch(reference)
    tools = _surveyed(reference, fetched, name, context)
    if not as_json:
        click.echo(f"{plain(str(reference))} at {fetched.revision[:_DIGITS]}")
        _show(tools)
    _ask(f"copy these tools to {display(sources.folder(name))}?", yes=yes)
    source = sources.install(name, reference, fetched)
    _report("added", source, tools, sources, [], as_json=as_json)


def update_source(
    source: Source, context: Context, *, yes: bool, as_json: bool
) -> dict[str, object] | None:
    """Fetch a source again; show, ask and install what changed. Nothing for the same revision."""
    sources = Sources(context)
    fetched = fetch(source.reference)
    if fetched.revision == source.revision:
        if not as_json:
            click.echo(f"{plain(source.name)} is up to date ({source.revision[:_DIGITS]})")
        return None
    sources.refuse_local_changes(source)
    tools = _surveyed(source.reference, fetched, source.name, context)
    folder = sources.folder(source.name)
    files = tool_files(fetched.files)
    new = [(one, content_hash(content, folder / one)) for one, content in files.items()]
    lines = changed_files(source.files, new)
    if not as_json:
        old, now = source.revision[:_DIGITS], fetched.revision[:_DIGITS]
        click.echo(f"{plain(source.name)}: {old} → {now}")
        for line in lines:
            click.echo(f"  {plain(line)}")
        touched = {line.partition(" ")[2] for line in lines}
        _show([one for one in tools if _file_of(one, source.name, files) in touched])
    _ask(f"replace the tools in {display(folder)}?", yes=yes)
    made = sources.install(source.name, source.reference, fetched, source)
    return _report("updated", made, tools, sources, lines, as_json=as_json, quiet=as_json)


def _surveyed(
    reference: Reference, fetched: Fetched, name: str, context: Context
) -> list[SurveyedTool]:
    tools = survey(tool_files(fetched.files), name, context)
    if not tools:
        raise RyeError(
            f"{reference} contains no tools",
            hint="name the folder that contains them after #, or add its scripts one by one",
        )
    return tools


def _show(tools: Sequence[SurveyedTool]) -> None:
    print_table(
        [
            (one.item_id, _signed(one), f"may do: {one.may}" if one.may else "", one.description)
            for one in tools
        ]
    )
    for one in tools:
        if one.problem:
            click.echo(f"note: {plain(one.problem)}", err=True)


def _signed(tool: SurveyedTool) -> str:
    if tool.trusted:
        return f"signed by {tool.owner} ({tool.signer})"
    if not tool.signer:
        return "not signed"
    what = {"untrusted": "you do not trust", "changed": "changed after the signature of"}
    return f"{what.get(tool.standing, tool.standing)} {tool.signer}"


def _ask(question: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise RyeError("nothing was changed", hint="read what would be added, then pass --yes")
    if not click.confirm(question, default=False):
        raise click.Abort


def _report(
    verb: str,
    source: Source,
    tools: Sequence[SurveyedTool],
    sources: Sources,
    changes: Sequence[str],
    *,
    as_json: bool,
    quiet: bool = False,
) -> dict[str, object]:
    steps = list(_next(source, tools, sources))
    values: dict[str, object] = {
        "name": source.name,
        "source": str(source.reference),
        "revision": source.revision,
        "tools": [one._asdict() for one in tools],
        "changes": list(changes),
        "next": steps,
    }
    if as_json and not quiet:
        print_json(values)
    elif not as_json:
        count = "1 tool" if len(tools) == 1 else f"{len(tools)} tools"
        click.echo(f"\n{style(verb, fg='green')} {count} as {plain(source.name)}/…")
        click.echo("\nNext:")
        for step in steps:
            click.echo(f"  {style(plain(step), bold=True)}")
    return values


def _next(source: Source, tools: Sequence[SurveyedTool], sources: Sources) -> Iterator[str]:
    """What the user has to decide before the tools run: whose keys to trust, what to sign."""
    for key in dict.fromkeys([one.signer for one in tools if one.standing == "untrusted"]):
        path = sources.key_file(source.name, key)
        yield f"rye trust add {shlex.quote(str(path)) if path else 'PUBLIC_KEY.pem'}"
    if any(one.standing in ("unsigned", "changed", "forged") for one in tools):
        yield f"rye sign '{source.name}/**'   after you have read them"
    yield f"rye list {source.name}/"


def _file_of(tool: SurveyedTool, name: str, files: object) -> str:
    start = tool.item_id.removeprefix(f"{name}/")
    known = files if isinstance(files, dict) else {}
    return next((one for one in known if one.rpartition(".")[0] == start or one == start), "")
