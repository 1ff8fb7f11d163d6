"""``rye import mcp``: tools of other people's MCP servers, signed and pinned by you."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rye.cli.imports.items import Imported, fault_of, require_signed, space_of
from rye.cli.imports.servers import Server, servers_in
from rye.cli.invocation import Invocation
from rye.cli.output.printing import plain, style
from rye.context import Context
from rye.errors import ParameterError, RyeError
from rye.spaces.ids import check_item_id

if TYPE_CHECKING:
    from rye.spaces.model import SpaceName
    from rye.upstream.definition import ToolDefinition

_MCP_JSON = ("--from", "source")
_MAX_FIRST_LINE = 80
# Of the changes of one tool; what is not shown is counted.
_MAX_LINES = 1000


@click.group(name="import")
def command() -> None:
    """Import what others offer.

    \b
    Examples:
      rye import mcp time -- uvx mcp-server-time
      rye import mcp --from mcp.json
    """


@command.command(name="mcp")
@click.argument("name", required=False)
@click.argument("words", nargs=-1)
@click.option("--url", metavar="URL", help="The server's URL, for Streamable HTTP.")
@click.option(
    *_MCP_JSON, metavar="FILE", type=click.Path(path_type=Path), help="Take servers of an mcp.json."
)
@click.option("--update", is_flag=True, help="Accept what the server offers now.")
@click.option(
    "--env", "variables", multiple=True, metavar="NAME", help="A variable that the server gets."
)
@click.option(
    "--allow",
    multiple=True,
    metavar="net|read=PATH|write=PATH|run=NAME|env=NAME",
    help="Confine the server to these permissions. Repeatable.",
)
@click.option(
    "--token-file",
    type=click.File(),
    metavar="FILE",
    help="Keep the server's token, read from FILE or -, in your token store.",
)
@click.option(
    "--space",
    type=click.Choice(["project", "user"]),
    default="project",
    show_default=True,
    help="Import for this project, or for all your projects.",
)
@click.option("--yes", is_flag=True, help="Answer every question with yes.")
@click.pass_obj
def import_mcp(
    invocation: Invocation,
    *,
    name: str | None,
    words: tuple[str, ...],
    url: str | None,
    source: Path | None,
    update: bool,
    variables: tuple[str, ...],
    allow: tuple[str, ...],
    token_file: Any,
    space: SpaceName,
    yes: bool,
) -> None:
    """Make the tools of an MCP server items of yours.

    The server is started once and says which tools it has. What it says about them is written to
    signed files: NAME, the server, and NAME/TOOL for each tool. If the server later says something
    else about a tool, that tool is refused until you accept the change with --update.

    \b
    Examples:
      rye import mcp time -- uvx mcp-server-time
      rye import mcp files --allow read=. -- npx -y @modelcontextprotocol/server-filesystem .
      rye import mcp search --url https://example.org/mcp --token-file token.txt
      rye import mcp --from mcp.json
      rye import mcp time --update
    """
    context = invocation.context
    where = space_of(space, context)
    if source is not None:
        chosen = servers_in(source, [one for one in (name, *words) if one])
    elif name is None:
        raise click.UsageError("name the server, or pass --from")
    elif update:
        # Its command is about to run.
        require_signed(where.tools / f"{name}.yaml", context)
        chosen = [_known_server(name, where.tools / f"{name}.yaml", where.root)]
    elif bool(words) == bool(url):
        raise click.UsageError("pass a command after --, or --url")
    else:
        chosen = [Server(name, words, url or "", tuple(variables))]
    permissions = _permissions(allow) if allow else None
    token = token_file.read().strip() if token_file is not None else ""
    for server in chosen:
        check_item_id(server.name)
        if source is not None and not _confirmed(f"Run {plain(server.shown)}?", yes):
            continue
        if token:
            _keep_token(server.name, token, context)
        given = Imported(where, server, permissions, token=bool(token))
        if update:
            given = _with_known_choices(given)
        elif given.server_path.exists():
            raise RyeError(
                f"{given.server_path} exists", hint=f"rye import mcp {server.name} --update"
            )
        elif taken := given.occupied(given.server_path, {}):
            raise RyeError(taken, hint="import the server under another name")
        _import(given, context, yes=yes)


def _import(given: Imported, context: Context, *, yes: bool) -> None:
    name = given.server.name
    known = given.pinned(context)
    offered = _offered(given, context)
    tools: dict[str, ToolDefinition] = {}
    for tool in offered.values():
        fault = fault_of(tool, name) or given.occupied(given.tool_path(tool.name), known)
        if fault:
            click.echo(
                f"{style('skipped', fg='yellow')} {plain(tool.name)}: {plain(fault)}", err=True
            )
            continue
        tools[tool.name] = tool
        state = "new" if tool.name not in known else "same"
        if state == "same" and known[tool.name] != tool.digest:
            state = "changed"
        click.echo(f"{state:<8} {plain(name)}/{plain(tool.name)}  {plain(_first_line(tool))}")
    for gone in sorted(known.keys() - tools.keys()):
        click.echo(f"{'gone':<8} {plain(name)}/{plain(gone)}")
    for changed in (one for one in tools.values() if known.get(one.name, one.digest) != one.digest):
        _show_change(given, changed)
    if {one: tool.digest for one, tool in tools.items()} == known:
        click.echo("nothing has changed")
        return
    if not _confirmed(f"Sign these tools of {name!r} with your key?", yes):
        click.echo("nothing was signed", err=True)
        raise click.exceptions.Exit(1)
    given.write(tools, context)
    _pin(given, tools, context)
    click.echo(f"{style('signed and pinned', fg='green')} {plain(name)} and {len(tools)} tools")
    if given.permissions is None and not given.server.url:
        click.echo(
            f"note: {plain(name)} is not confined and may do what you can; declare what it needs "
            "with --allow",
            err=True,
        )
    if given.server.has_headers and not given.token:
        click.echo("note: its headers were not copied; pass a token with --token-file", err=True)
    for variable in given.server.variables:
        click.echo(f"note: set {variable} in the environment or in .env", err=True)


def _offered(given: Imported, context: Context) -> Mapping[str, ToolDefinition]:
    from rye.executor.run.interruptible_loop import run_interruptibly
    from rye.upstream.session import TokenError, UpstreamError, open_session

    async def ask() -> Mapping[str, ToolDefinition]:
        async with open_session(await _address(given, context)) as session:
            return await session.definitions()

    try:
        return run_interruptibly(ask())
    except UpstreamError as error:
        raise RyeError(
            f"the MCP server {given.server.name!r} ({given.server.shown}) failed: {error}",
            hint="pass it with --token-file"
            if isinstance(error, TokenError)
            else "check that it runs by itself",
        ) from None


async def _address(given: Imported, context: Context) -> dict[str, Any]:
    server = given.server
    if server.url:
        from rye.executor.run.upstream import auth_store

        headers = {}
        if given.token:
            token = await auth_store(context.user_space).get_token(server.name)
            headers["Authorization"] = f"Bearer {token}"
        return {"url": server.url, "headers": headers}
    command, *arguments = server.command
    process = {
        "command": command,
        "args": arguments,
        "cwd": str(context.project_path),
        "env": dict(os.environ),
        "env_mode": "exact",
        "render": False,
    }
    if given.permissions is None:
        return process
    from rye.executor.run.confine import confined_process
    from rye.items.permissions import permissions_from

    permissions, fault = permissions_from(dict(given.permissions), "permissions")
    if fault:
        raise ParameterError("invalid --allow", [fault], hint="correct it")
    return confined_process(server.name, process, permissions, server.variables, context)


def _show_change(given: Imported, offered: ToolDefinition) -> None:
    from rye.items.metadata import parse_metadata
    from rye.items.reader import read_item
    from rye.upstream.definition import differences

    metadata = parse_metadata(read_item(given.tool_path(offered.name), given.space.root))
    for line in differences(metadata, offered, _MAX_LINES):
        click.echo(f"         {plain(line)}")


def _known_server(name: str, path: Path, root: Path) -> Server:
    from rye.items.metadata import parse_metadata
    from rye.items.reader import read_item

    config = parse_metadata(read_item(path, root)).config
    variables = config.get("env")
    names = tuple(variables) if isinstance(variables, Mapping) else ()
    if "url" in config:
        return Server(name, url=str(config["url"]), variables=names)
    return Server(
        name, (str(config.get("command")), *map(str, config.get("args") or ())), "", names
    )


def _with_known_choices(given: Imported) -> Imported:
    """Keep the permissions and the token of the earlier import, unless new ones are given."""
    from lilux.record import replaced

    from rye.items.strict_yaml import load_mapping

    text = given.server_path.read_text(encoding="utf-8")
    content = load_mapping(text, given.server_path)[0]
    permissions = given.permissions
    if permissions is None:
        permissions = content.get("permissions")
    token = given.token or "token_of" in (content.get("config") or {})
    return replaced(given, permissions=permissions, token=token)


def _pin(given: Imported, tools: Mapping[str, ToolDefinition], context: Context) -> None:
    """Pin the tools in this project: what the user has just seen is what may run."""
    from rye.executor.pinning import Locking

    locking = Locking(context)
    for name in tools:
        locking.pin(f"{given.server.name}/{name}", update=True)


def _permissions(allow: Sequence[str]) -> dict[str, Any]:
    from rye.cli.run.allow import allowed_fields

    fields, unenforced = allowed_fields(allow)
    if unenforced:
        raise ParameterError(
            "invalid --allow", ["unenforced is for one call"], hint="pass it to rye run"
        )
    return {"run": ["system"], **fields}


def _keep_token(name: str, token: str, context: Context) -> None:
    from rye.executor.run.upstream import auth_store

    auth_store(context.user_space).set_token(name, token, expires_in=None)


def _confirmed(question: str, yes: bool) -> bool:
    return yes or click.confirm(question, err=True)


def _first_line(tool: ToolDefinition) -> str:
    whole = tool.description.strip()
    line = whole.partition("\n")[0][:_MAX_FIRST_LINE]
    rest = len(whole) - len(line)
    return f"{line} … ({rest:,} more characters)" if rest else line
