"""``rye permissions``: what a tool may do, and what this machine can enforce of it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from rye.cli.completion import complete_item
from rye.cli.invocation import Invocation
from rye.cli.output.errors import TRUST, print_error
from rye.cli.output.printing import echo, field_list, plain, print_json, style


class PermissionsGroup(click.Group):
    """A group in which a tool may stand instead of a command: then it is explained."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not args[0].startswith("-"):
            args = ["explain", *args]
        return super().resolve_command(ctx, args)


@click.group(cls=PermissionsGroup)
def command() -> None:
    """Show what a tool may do, and what this machine can enforce of it.

    `rye permissions TOOL` explains the permissions that the tool, its runtimes and your own grants
    add up to.

    \b
    Examples:
      rye permissions rye/bash/bash
      rye permissions check rye/bash/bash
      rye permissions learn notes/add text=hello
    """


@command.command("explain")
@click.argument("item", shell_complete=complete_item)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def explain(invocation: Invocation, item: str, as_json: bool) -> None:
    """Explain in words what ITEM may do; the same as `rye permissions ITEM`.

    Nothing is run. What you grant in your own ~/.ai/config.yaml is included.

    \b
    Examples:
      rye permissions explain rye/git/git
      rye permissions rye/git/git --json
    """
    from rye.executor.permitted import permitted
    from rye.items.permissions import permissions_to_json
    from rye.permissions.words import UNCONFINED, explained, widened

    found = permitted(item, invocation.context)
    granted = widened(permissions_to_json(found.declared), found.permissions)
    if as_json:
        print_json(
            {
                "item_id": found.item_id,
                "confined": found.permissions is not None,
                "permissions": permissions_to_json(found.permissions),
                "granted_by_you": granted,
            }
        )
        return
    if found.permissions is None:
        echo(
            f"{style(plain(found.item_id), bold=True)} is {UNCONFINED}: it declares no permissions "
            "and can do everything that you can do"
        )
        return
    echo(style(plain(found.item_id), bold=True))
    echo(field_list([(name, plain(text)) for name, text in explained(found.permissions)]))
    if granted:
        echo(f"  granted by you: {plain(', '.join(granted))}")


@command.command("check")
@click.argument("item", shell_complete=complete_item)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def check(invocation: Invocation, item: str, as_json: bool) -> None:
    """Show what this machine can enforce of the permissions of ITEM.

    The exit code is 4 if something that the tool declares cannot be enforced. Agents are then
    refused. Your own `rye run` goes on and warns.

    \b
    Examples:
      rye permissions check rye/bash/bash
      rye permissions check rye/fs/write --json
    """
    from rye.executor.permitted import enforceable, permitted
    from rye.permissions.words import PARTS, UNCONFINED

    found = permitted(item, invocation.context)
    if found.permissions is None:
        if as_json:
            print_json({"item_id": found.item_id, "confined": False})
        else:
            echo(f"{plain(found.item_id)} is {UNCONFINED}: there is nothing to enforce")
        return
    parts = enforceable(found)
    refused = [one for one in parts if one.reason and one.required]
    if as_json:
        print_json(
            {
                "item_id": found.item_id,
                "confined": True,
                "enforced": {one.part: one.mechanism for one in parts if not one.reason},
                "missing": [
                    {"part": one.part, "reason": one.reason, "required": one.required}
                    for one in parts
                    if one.reason
                ],
            }
        )
    else:
        for one in parts:
            state = style("missing", fg="yellow") if one.reason else style("enforced", fg="green")
            text = f"not possible: {one.reason}" if one.reason else f"by {one.mechanism}"
            echo(f"{state}  {PARTS.get(one.part, one.part)}: {plain(text)}")
        if refused:
            echo("\nagents may not call this tool here; your own `rye run` warns")
            echo("to accept this everywhere: permissions: {unenforced: allow} in ~/.ai/config.yaml")
    if refused:
        raise click.exceptions.Exit(TRUST)


@command.command("learn", context_settings={"ignore_unknown_options": True})
@click.argument("item", shell_complete=complete_item)
@click.argument("pairs", metavar="[KEY=VALUE|--KEY VALUE]...", nargs=-1)
@click.pass_obj
def learn(invocation: Invocation, item: str, pairs: tuple[str, ...]) -> None:
    """Run ITEM with your own rights, watch it, and print the permissions that it needs.

    The declaration is the smallest one that would have sufficed for this call, with what was seen
    for each entry as a comment. Another call may need more: review it before you paste it and sign
    the tool. The output of the tool goes to stderr. The exit code is 1 if the tool failed.

    \b
    Examples:
      rye permissions learn notes/add text=hello
      rye permissions learn rye/git/git 'args=["status"]'
    """
    from rye.cli.run.parameters import parse_pairs
    from rye.cli.run.words import plain_pairs
    from rye.executor.learning import learn_call
    from rye.executor.run.blocking import BlockingExecutor
    from rye.formats import format_of
    from rye.permissions.declaration import declaration_lines

    context = invocation.context
    schema = BlockingExecutor(context, start_helper=False).declared_schema(item)
    words = plain_pairs(pairs, schema, item_id=item)
    parameters = parse_pairs(words, schema, item_id=item) if pairs else None
    lesson = learn_call(item, parameters, context, _to_stderr)
    for note in lesson.notes:
        print_error(note)
    for line in declaration_lines(lesson.learned, format_of(Path(lesson.path)).kind):
        echo(line)
    if lesson.notes:
        raise click.exceptions.Exit(1)


def _to_stderr(_stream: str, text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
