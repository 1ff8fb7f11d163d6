"""``rye mcp``: serve the tools to agents over MCP."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NoReturn

import click

from rye.cli.invocation import Invocation
from rye.mcp.settings import CLIENTS, ServerSettings

if TYPE_CHECKING:
    import signal

    from rye.context import Context


@click.command()
@click.option("--all-tools", is_flag=True, help="List every tool under its own name.")
@click.option(
    "--only",
    metavar="GLOB",
    multiple=True,
    help="Offer only tools whose full id matches, such as 'notes/*'. Repeatable.",
)
@click.option(
    "--confined",
    is_flag=True,
    help="Offer only tools that declare permissions; see `rye permissions`.",
)
@click.option(
    "--allow-sign",
    is_flag=True,
    help="Offer the tool `sign`. An agent that can sign can approve its own code.",
)
@click.option(
    "--ask",
    metavar="GLOB",
    multiple=True,
    help="Ask you before an agent runs these tools. Repeatable; overrides `agents` in your config.",
)
@click.option(
    "--allow",
    metavar="GLOB",
    multiple=True,
    help="Run these tools without asking. Of several globs, the longest that matches decides.",
)
@click.option("--deny", metavar="GLOB", multiple=True, help="Let no agent run these tools.")
@click.option(
    "--http",
    metavar="HOST:PORT",
    help="Serve HTTP at /mcp instead of stdio. Hosts other than loopback require a token.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    help="A private file with the bearer token for HTTP clients, or with lines `name: token`. "
    "Default: RYE_MCP_TOKEN.",
)
@click.option(
    "--allow-origin",
    "origins",
    metavar="ORIGIN",
    multiple=True,
    help="Accept browser requests from this origin, such as http://localhost:6274. Repeatable.",
)
@click.option(
    "--receipts",
    type=click.Choice(["signed"]),
    help="Sign a receipt of every call with your key; see `rye receipt`.",
)
@click.option(
    "--max-calls",
    metavar="N",
    type=click.IntRange(1),
    help="Run at most N calls at once. As many again wait; more are refused.",
)
@click.option(
    "--log",
    metavar="FILE",
    help="Append one line of JSON for each call: who, what and how it ended; no values.",
)
@click.option(
    "--print-config",
    "client",
    type=click.Choice(CLIENTS),
    help="Print the configuration for a client instead of serving.",
)
@click.pass_obj
def command(  # noqa: PLR0917 - click passes by name
    invocation: Invocation,
    all_tools: bool,
    only: tuple[str, ...],
    confined: bool,
    allow_sign: bool,
    ask: tuple[str, ...],
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    http: str | None,
    token_file: str | None,
    origins: tuple[str, ...],
    receipts: str | None,
    max_calls: int | None,
    log: str | None,
    client: str | None,
) -> None:
    """Serve the tools to agents over MCP.

    An agent gets three tools: search, show and execute. Tools that the project features in
    .ai/config.yaml (mcp: {featured: [ids or globs]}) are listed as well. The agent can run every
    trusted tool, including rye/bash/bash, unless --only or --confined restricts it. A tool that
    declares permissions is confined to them; an agent cannot widen them. What it may run without
    asking you is in ~/.ai/config.yaml (agents: [{tools: [globs], allow: ask}]).

    \b
    Examples:
      rye mcp
      rye mcp --print-config claude-code
      rye mcp --only 'notes/*' --only rye/fs/read
      rye mcp --ask '*' --allow 'rye/fs/*'
      rye mcp --http 127.0.0.1:8321 --all-tools
    """
    settings = ServerSettings(
        all_tools=all_tools,
        allow_sign=allow_sign,
        only=only,
        confined=confined,
        receipts=receipts is not None,
        ask=ask,
        allow=allow,
        deny=deny,
        max_calls=max_calls,
        log=None if log is None else os.path.abspath(log),  # noqa: PTH100 - keeps links
    )
    context = invocation.context
    if http is None and (token_file or origins):
        raise click.UsageError("--token-file and --allow-origin require --http")
    if client is not None:
        _print_config(client, context, settings, http, token_file)
        return
    ended_by = (
        _serve_stdio(context, settings)
        if http is None
        else _serve_http(context, settings, http, token_file, origins)
    )
    if ended_by is not None:
        _exit_after(ended_by)


def _serve_stdio(context: Context, settings: ServerSettings) -> signal.Signals | None:
    from rye.mcp.stdio_streams import claim_standard_streams

    if sys.stdin is not None and sys.stdin.isatty():
        message = "rye: waiting for an MCP client on stdin; this command is meant to be started by "
        click.echo(f"{message}an agent, see `rye mcp --help`", err=True)
    # Before all imports, so that no imported module can write to the connection.
    wire = claim_standard_streams()
    _prepare("watchfiles")
    import asyncio

    from rye.mcp.stdio import serve_stdio

    return asyncio.run(serve_stdio(context, settings, wire))


def _serve_http(
    context: Context,
    settings: ServerSettings,
    http: str,
    token_file: str | None,
    origins: tuple[str, ...],
) -> signal.Signals | None:
    from rye.mcp.http_options import (
        open_listener,
        parse_address,
        parse_origin,
        read_tokens,
        require_token,
        without_token,
    )

    tokens = read_tokens(context.environ, token_file)
    allowed = tuple([parse_origin(one) for one in origins])
    listener = open_listener(parse_address(http))
    with listener.socket:
        require_token(listener, tokens)
        _prepare("mcp", "watchfiles")
        import asyncio

        from rye.mcp.http import Access, serve_http

        return asyncio.run(
            serve_http(
                without_token(context),
                settings,
                listener,
                Access(tokens, allowed),
                lambda: _print_address(listener.url, has_token=bool(tokens)),
            )
        )


def _print_address(url: str, *, has_token: bool) -> None:
    click.echo(f"rye: serving MCP at {url}", err=True)
    if not has_token:
        warning = "every user and program on this machine can run your tools there"
        click.echo(f"rye: {warning}; set RYE_MCP_TOKEN to require a token", err=True)


def _print_config(
    client: str,
    context: Context,
    settings: ServerSettings,
    http: str | None,
    token_file: str | None,
) -> None:
    from rye.cli.output.printing import plain, print_json
    from rye.mcp.client_config import HttpServer, http_config, rye_command, stdio_config
    from rye.mcp.http_options import MCP_PATH, TOKEN_VARIABLE, fixed_address

    if http is None:
        config = stdio_config(client, context, settings, rye_command())
    else:
        has_token = token_file is not None or TOKEN_VARIABLE in context.environ
        url = f"http://{fixed_address(http)}{MCP_PATH}"
        config = http_config(client, HttpServer(url, has_token))
    print_json(config.content)
    click.echo(plain(config.advice), err=True)


def _prepare(*packages: str) -> None:
    from rye.mcp.process import log_to_stderr, require_packages

    require_packages(*packages)
    log_to_stderr()


def _exit_after(ended_by: signal.Signals) -> NoReturn:
    """Exit with the code that a shell reports for the signal."""
    raise click.exceptions.Exit(128 + ended_by)
