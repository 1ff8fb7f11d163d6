"""``rye completion``: completion scripts, and the answers to what they ask.

For fish click's own script is used. Bash splits words at ``=`` and ``:`` and adds a space after a
completion. So the script for bash sends the whole line, receives only the part that bash replaces,
and adds no space after ``key=``. The script for zsh adds none either.
"""

from __future__ import annotations

import os
import sys
from typing import Any, ClassVar

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    shell_complete,
    split_arg_string,
)

from rye.cli.app import COMPLETION_VARIABLE

_OTHER_NAME = "ryex"
_BASH_SCRIPT = """\
%(complete_func)s() {
    local response type value
    COMPREPLY=()
    response=$(COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" COMP_WORDBREAKS="$COMP_WORDBREAKS" \\
        %(complete_var)s=bash_complete "$1" 2>/dev/null)
    while IFS=, read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                [[ $value == *= ]] && compopt -o nospace
                printf -v value %%q "$value"
                COMPREPLY+=("$value")
                ;;
        esac
    done <<< "$response"
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


_ZSH_SCRIPT = """\
#compdef %(prog_name)s

%(complete_func)s() {
    local -a plain plain_open described described_open response
    local type key descr
    (( ! $+commands[%(prog_name)s] )) && return 1

    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) \\
        %(complete_var)s=zsh_complete %(prog_name)s 2>/dev/null)}")

    for type key descr in ${response}; do
        case $type in
            dir) _path_files -/ ;;
            file) _path_files -f ;;
            plain)
                if [[ $descr == _ && $key == *= ]]; then plain_open+=("$key")
                elif [[ $descr == _ ]]; then plain+=("$key")
                elif [[ $key == *= ]]; then described_open+=("$key:$descr")
                else described+=("$key:$descr")
                fi
                ;;
        esac
    done

    (( $#described )) && _describe -V rye described -U
    (( $#described_open )) && _describe -V rye_open described_open -U -S ''
    (( $#plain )) && compadd -U -V rye_plain -a plain
    (( $#plain_open )) && compadd -U -S '' -V rye_plain_open -a plain_open
    return 0
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""


class _WholeOptions(ShellComplete):
    """Completes ``--option=value`` as ``--option`` and ``value``, and returns the whole word."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        name, equals, value = incomplete.partition("=")
        if not equals or not name.startswith("--"):
            return super().get_completions(args, incomplete)
        found = super().get_completions([*args, name], value)
        for item in found:
            item.value = f"{name}={item.value}"
        return found


class WholeLineBash(_WholeOptions, BashComplete):
    """Bash completion that receives the whole line instead of bash's words."""

    source_template: ClassVar[str] = _BASH_SCRIPT

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ.get("COMP_LINE", "")
        point = os.environ.get("COMP_POINT", "")
        before_cursor = line[: int(point)] if point.isdecimal() else line
        words = split_arg_string(before_cursor)[1:]
        if not words or before_cursor[-1].isspace():
            return words, ""
        return words[:-1], words[-1]

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        found = super().get_completions(args, incomplete)
        breaks = os.environ.get("COMP_WORDBREAKS", "=:")
        kept = max((incomplete.rfind(mark) for mark in "=:" if mark in breaks), default=-1) + 1
        for item in found:
            item.value = str(item.value)[kept:]
        return found


class OpenZsh(_WholeOptions, ZshComplete):
    """Zsh completion that adds no space after ``key=``."""

    source_template: ClassVar[str] = _ZSH_SCRIPT


class WholeFish(_WholeOptions, FishComplete):
    """Fish completion; fish itself adds no space after ``=``."""


SHELLS: dict[str, type[ShellComplete]] = {
    "bash": WholeLineBash,
    "zsh": OpenZsh,
    "fish": WholeFish,
}


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
def command(shell: str) -> None:
    """Print the completion script for a shell.

    It completes commands, options, tool ids, and the names and values of parameters. For the
    second name of the command, use `ryex completion`.

    \b
    Examples:
      eval "$(rye completion bash)"
      rye completion zsh > "${fpath[1]}/_rye"
      rye completion fish > ~/.config/fish/completions/rye.fish
    """
    from rye.cli.app import app

    click.echo(SHELLS[shell](app, {}, program_name(), COMPLETION_VARIABLE).source(), nl=False)


def program_name() -> str:
    """The name that the user typed: ``ryex``, or ``rye`` for any other."""
    return _OTHER_NAME if os.path.basename(sys.argv[0]) == _OTHER_NAME else "rye"  # noqa: PTH119 - a text


def answer_shell(app: click.Command, instruction: str) -> int:
    """Print what a completion script asked for. ``instruction`` is, for example, bash_complete."""
    for one in SHELLS.values():
        add_completion_class(one)
    extra: dict[str, Any] = {}
    return shell_complete(app, extra, "rye", COMPLETION_VARIABLE, instruction)
