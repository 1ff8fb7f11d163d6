"""``rye ui``: open a page about the tools, what ran and who is trusted."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from rye.cli.invocation import Invocation

if TYPE_CHECKING:
    from rye.ui.opening import LinkFile
    from rye.ui.server import Opened


@click.command()
@click.option("--run", "may_run", is_flag=True, help="Let the page run tools and answer questions.")
@click.option("--no-open", is_flag=True, help="Print the link instead of opening a browser.")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="Use this port, for example to reach the page through SSH. Default: any free port.",
)
@click.option(
    "--localhost",
    "plain_name",
    is_flag=True,
    help="Use the name localhost, for a browser that cannot find names such as rye-1f.localhost.",
)
@click.pass_obj
def command(
    invocation: Invocation, may_run: bool, no_open: bool, port: int | None, plain_name: bool
) -> None:
    """Open a page about your tools: what they may do, who signed them, what they did last.

    The page is served on this machine only, until Ctrl-C. It is opened with a link that works once;
    press Enter for another one. It only shows, unless --run lets it run tools.

    \b
    Examples:
      rye ui
      rye ui --run
      rye ui --no-open --port 8765
    """
    from rye.mcp.process import log_to_stderr, require_packages

    require_packages("jinja2", "starlette", "uvicorn", needed_by="the page", extra="ui")
    log_to_stderr("rye ui")
    from rye.ui.server import open_address, run_server

    context = invocation.context
    files: list[LinkFile] = []
    address = open_address(port or 0, plain_name=plain_name)
    try:
        ended_by = run_server(
            context,
            address,
            lambda opened: _show(opened, files, no_open=no_open),
            may_run=may_run,
        )
    finally:
        address.close()
        for file in files:
            file.remove()
    if ended_by is not None:
        raise click.exceptions.Exit(128 + ended_by)


def _show(opened: Opened, files: list[LinkFile], *, no_open: bool) -> None:
    """Open the browser, or print the link; then print another one for each Enter."""
    import os

    from rye.ui.opening import LinkFile, can_open_browser, open_browser

    if not no_open and can_open_browser(os.environ):
        files.append(LinkFile(opened.new_link()))
        if open_browser(files[-1]):
            click.echo(f"rye: serving {opened.url}, in your browser now; stop with Ctrl-C")
            _print_links_on_enter(opened)
            return
    click.echo(f"rye: open {opened.new_link()}")
    click.echo("rye: the link works once, for you only; stop with Ctrl-C")
    _print_links_on_enter(opened)


def _print_links_on_enter(opened: Opened) -> None:
    import asyncio

    if sys.stdin is None or not sys.stdin.isatty():
        return
    loop = asyncio.get_running_loop()

    def on_enter() -> None:
        if sys.stdin.readline():
            click.echo(f"rye: open {opened.new_link()}")
        else:
            loop.remove_reader(sys.stdin)

    loop.add_reader(sys.stdin, on_enter)
