"""``rye mcp``: the tools for agents."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

import click

from rye.cli.invocation import Surroundings
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
    help="Offer only tools whose full id matches, for example 'notes/*'. May be repeated.",
)
@click.option(
    "--allow-sign",
    is_flag=True,
    help="Offer the tool `sign`. An agent that can sign can approve its own code.",
)
@click.option(
    "--http",
    metavar="HOST:PORT",
    help="Serve Streamable HTTP at /mcp, not stdio. Any host but a loopback one needs a token.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    help="A private file with the bearer token that HTTP clients must show; else RYE_MCP_TOKEN.",
)
@click.option(
    "--allow-origin",
    "origins",
    metavar="ORIGIN",
    multiple=True,
    help="Let pages of this origin in, for example http://localhost:6274. May be repeated.",
)
@click.option(
    "--print-config",
    "client",
    type=click.Choice(CLIENTS),
    help="Print the configuration for a client instead of serving.",
)
@click.pass_obj
def command(  # noqa: PLR0917 - click passes by name
    surroundings: Surroundings,
    all_tools: bool,
    only: tuple[str, ...],
    allow_sign: bool,
    http: str | None,
    token_file: str | None,
    origins: tuple[str, ...],
    client: str | None,
) -> None:
    """Serve the tools over MCP.

    An agent gets three tools: search, show and execute. Tools that the project features in
    .ai/config.yaml (mcp: {featured: [ids or globs]}) are listed beside them. It can run all
    that is signed, rye/bash/bash among it, unless --only says what it may see and run.

    \b
    Examples:
      rye mcp
      rye mcp --print-config claude-code
      rye mcp --only 'notes/*' --only rye/fs/read
      rye mcp --http 127.0.0.1:8321 --all-tools
    """
    settings = ServerSettings(all_tools=all_tools, allow_sign=allow_sign, only=only)
    context = surroundings.context
    if http is None and (token_file or origins):
        raise click.UsageError("--token-file and --allow-origin belong to --http")
    if client is not None:
        _print_config(client, context, settings, http, token_file)
        return
    ended_by = (
        _serve_stdio(context, settings)
        if http is None
        else _serve_http(context, settings, http, token_file, origins)
    )
    if ended_by is not None:
        _end(ended_by)


def _serve_stdio(context: Context, settings: ServerSettings) -> signal.Signals | None:
    from rye.mcp.stdio_streams import claim_standard_streams

    if sys.stdin is not None and sys.stdin.isatty():
        told = "rye: waiting for an MCP client on stdin; agents start this by themselves, see "
        click.echo(f"{told}`rye mcp --help`", err=True)
    # First of all, so that nothing that is imported can write to the wire.
    wire = claim_standard_streams()
    _require_sdk()
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
        read_token,
        require_token,
        without_token,
    )

    token = read_token(context.environ, token_file)
    allowed = tuple([parse_origin(one) for one in origins])
    listener = open_listener(parse_address(http))
    with listener.socket:
        require_token(listener, token)
        _require_sdk()
        import asyncio

        from rye.mcp.http import Access, serve_http

        return asyncio.run(
            serve_http(
                without_token(context),
                settings,
                listener,
                Access(token, allowed),
                lambda: _tell_where(listener.url, has_token=token is not None),
            )
        )


def _tell_where(url: str, *, has_token: bool) -> None:
    click.echo(f"rye: serving MCP at {url}", err=True)
    if not has_token:
        told = "every user and program of this machine can run your tools there"
        click.echo(f"rye: {told}; set RYE_MCP_TOKEN to keep it to yourself", err=True)


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


def _require_sdk() -> None:
    from rye.mcp.process import log_to_stderr, require_packages

    require_packages()
    log_to_stderr()


def _end(ended_by: signal.Signals) -> NoReturn:
    """The code that a shell gives to a program that a signal ended."""
    raise click.exceptions.Exit(128 + ended_by)
