"""The command group: which commands there are, and what each is for."""

from __future__ import annotations

import os
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from rye import __version__
from rye.cli.invocation import Surroundings
from rye.cli.output.errors import INTERRUPTED, TellingFailures, tell

# Shells ask for completions through it.
COMPLETION_VARIABLE = "_RYE_COMPLETE"

_COMMANDS: dict[str, tuple[str, str]] = {
    # name: (module below rye.cli.commands, what `rye --help` says of it)
    "run": ("run", "Run a tool."),
    "list": ("list_items", "List the tools that there are."),
    "search": ("search", "Find tools by words."),
    "show": ("show", "Show what a tool does, its parameters and an example call."),
    "chain": ("chain", "Show what a tool runs on, who signed it, and whether it is pinned."),
    "init": ("init", "Set up a project: folders, a key, a first tool."),
    "new": ("new", "Write a new tool from a template, signed and ready to run."),
    "sign": ("sign", "Sign tools with your key."),
    "verify": ("verify", "Check who signed what."),
    "trust": ("trust", "See and change whose signatures count."),
    "lock": ("lock", "Pin a tool's chain, or check all pins."),
    "unlock": ("unlock", "Remove a tool's pin."),
    "doctor": ("doctor", "Find what is missing on this machine, and how to get it."),
    "tools": ("tools", "Print tool definitions for an agent framework."),
    "mcp": ("mcp", "Serve the tools over MCP."),
    "completion": ("completion", "Print the completion script for a shell."),
}


class LazyGroup(click.Group):
    """A group that knows the names of its commands, and imports one when it is called."""

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

            near = closest(name, _COMMANDS)
            ctx.fail(
                f"no such command {name!r}" + (f" (did you mean {near[0]!r}?)" if near else "")
            )
        return super().resolve_command(ctx, args)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in _COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        # Not by way of the commands themselves, all of which would be imported.
        found = [
            CompletionItem(name, help=summary)
            for name, (_, summary) in _COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> object:
        with TellingFailures():
            return super().invoke(ctx)


def main(arguments: list[str]) -> int:
    """Run the command that the arguments name, and give its exit code."""
    if os.environ.get(COMPLETION_VARIABLE):
        from rye.cli.completion.shells import answer_shell

        return answer_shell(app, os.environ[COMPLETION_VARIABLE])
    try:
        with app.make_context("rye", arguments) as ctx:
            app.invoke(ctx)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.Abort:
        tell("interrupted")
        return INTERRUPTED
    except click.ClickException as error:
        return _told_usage(error, arguments)
    return 0


def _told_usage(error: click.ClickException, arguments: list[str]) -> int:
    """Misuse in the same form as any other error; a bare `rye` is answered with the help."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return error.exit_code
    context = getattr(error, "ctx", None)
    if context is not None:
        path = context.command_path
    else:
        path = " ".join(["rye", *[name for name in arguments if name in _COMMANDS][:1]])
    message = error.format_message().rstrip(".")
    message = f"{message[:1].lower()}{message[1:]}"
    tell(message + (" See" if message.endswith("?") else "; see") + f" `{path} --help`")
    return error.exit_code


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rye", message="%(prog)s %(version)s")
@click.option(
    "--project",
    "-C",
    metavar="DIR",
    help="The project's folder. By default the nearest one upwards that has an .ai folder.",
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
    ctx.obj = Surroundings(project)
