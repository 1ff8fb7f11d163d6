"""The click group: the names of the commands, and what each is for."""

from __future__ import annotations

import os
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from rye import __version__
from rye.cli.invocation import Invocation
from rye.cli.output.errors import INTERRUPTED, print_error

# Completion scripts set it to ask for completions.
COMPLETION_VARIABLE = "_RYE_COMPLETE"

_COMMANDS: dict[str, tuple[str, str]] = {
    # name: (module below rye.cli.commands, summary in `rye --help`)
    "run": ("run", "Run a tool."),
    "batch": ("batch", "Call a tool many times, safe to interrupt."),
    "list": ("list_items", "List available tools."),
    "search": ("search", "Search for tools by keyword."),
    "show": ("show", "Show what a tool does, its parameters and an example."),
    "chain": ("chain", "Show what a tool runs on, with signatures and pins."),
    "init": ("init", "Set up a project, with a signing key and a first tool."),
    "add": ("add", "Turn a script, a program or a target into a signed tool."),
    "new": ("new", "Create a signed tool from a template."),
    "import": ("import_items", "Import the tools of another MCP server."),
    "edit": ("edit", "Edit a tool, then check, sign and pin it."),
    "sign": ("sign", "Sign tools with your key."),
    "test": ("test", "Run the examples of tools and compare the results."),
    "verify": ("verify", "Check the signatures of tools."),
    "check": ("check", "Check that tools would run, and what they should pin."),
    "trust": ("trust", "Manage the keys and projects that you trust."),
    "key": ("key", "Show, replace or revoke the key that you sign with."),
    "update": ("update", "Update tools that were added from a repository or an archive."),
    "rm": ("rm", "Remove tools, with their pins."),
    "lock": ("lock", "Pin tools to their current content, or check all pins."),
    "unlock": ("unlock", "Remove the pins of tools."),
    "permissions": ("permissions", "Show what a tool may do, and what is enforced."),
    "history": ("history", "Show what ran, by whom, and how it ended."),
    "output": ("output", "Print the output of a recorded run."),
    "receipt": ("receipt", "Print or verify a signed statement about a run."),
    "replay": ("replay", "Run a recorded call again, and compare."),
    "cache": ("cache", "Show the stored copies of what ran, and remove old ones."),
    "doctor": ("doctor", "Find problems with your setup, and how to fix them."),
    "config": ("config", "Show every setting, and where it comes from."),
    "tools": ("tools", "Print tool definitions for an agent framework."),
    "mcp": ("mcp", "Serve the tools to agents over MCP."),
    "ui": ("ui", "Open a page about your tools, what ran and who is trusted."),
    "completion": ("completion", "Print the completion script for a shell."),
    "help": ("help", "Show the help of a command or a tool."),
}


class LazyGroup(click.Group):
    """A group that knows the names of its commands, and imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"rye.cli.commands.{_COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in _COMMANDS and name[:1] != "-" and not ctx.resilient_parsing:
            from rye.suggestions import closest

            similar = closest(name, _COMMANDS)
            suggestion = f" (did you mean {similar[0]!r}?)" if similar else ""
            ctx.fail(f"no such command {name!r}{suggestion}")
        return super().resolve_command(ctx, args)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in _COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        # click.Group would import every command for its help text.
        found = [
            CompletionItem(name, help=summary)
            for name, (_, summary) in _COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)


def main(arguments: list[str]) -> int:
    """Run the command that the arguments name, and return its exit code."""
    if os.environ.get(COMPLETION_VARIABLE):
        from rye.cli.commands.completion import answer_shell

        return answer_shell(app, os.environ[COMPLETION_VARIABLE])
    try:
        with app.make_context("rye", arguments) as ctx:
            app.invoke(ctx)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.Abort:
        print_error("interrupted")
        return INTERRUPTED
    except click.ClickException as error:
        return _report_misuse(error, arguments)
    return 0


def _report_misuse(error: click.ClickException, arguments: list[str]) -> int:
    """Print click's error in the form of all other errors; for a bare `rye`, print the help."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return error.exit_code
    context = getattr(error, "ctx", None)
    if context is not None:
        path = context.command_path
    else:
        path = " ".join(["rye", *[name for name in arguments if name in _COMMANDS][:1]])
    # The metavar of an argument with choices already lists them.
    message = error.format_message().partition(". Choose from:")[0].rstrip(".")
    message = f"{message[:1].lower()}{message[1:]}"
    see = " See" if message.endswith("?") else "; see"
    print_error(f"{message}{see} `{path} --help`")
    return error.exit_code


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rye", message="%(prog)s %(version)s")
@click.option(
    "--project",
    "-C",
    metavar="DIR",
    help="Use this project. Default: the nearest directory upwards that contains .ai.",
)
@click.pass_context
def app(ctx: click.Context, project: str | None) -> None:
    """Run signed, pinned and supervised tools.

    \b
    Examples:
      rye run rye/bash/bash command='echo hello'
      rye search read file
      rye init
    """
    ctx.obj = Invocation(project)
