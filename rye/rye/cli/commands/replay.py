"""``rye replay``: run a recorded call again, and name the first difference."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rye.cli.invocation import Invocation
from rye.cli.output.errors import OTHER
from rye.cli.output.printing import echo, is_terminal, plain, print_json
from rye.errors import ReceiptError

if TYPE_CHECKING:
    from rye.history.comparison import Difference
    from rye.history.replay import Recorded, Replay


@click.command
@click.argument("run", metavar="RUN|RECEIPT")
@click.argument("pairs", metavar="[KEY=VALUE]...", nargs=-1)
@click.option("--params", metavar="JSON|@FILE|-", help="Parameters as a JSON object.")
@click.option("--dry-run", is_flag=True, help="Only compare; run nothing.")
@click.option("--anyway", is_flag=True, help="Run also if something already differs.")
@click.option("--yes", is_flag=True, help="Run also a tool that may change something again.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(  # noqa: PLR0917 - click passes the arguments by their names
    invocation: Invocation,
    run: str,
    pairs: tuple[str, ...],
    params: str | None,
    dry_run: bool,
    anyway: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Run a recorded call again, and name the first difference.

    The same closure runs with the same parameters: those that were kept, or those that you give
    again, which must have the same digest. What can be compared before is compared before: the
    closure, the parameters, the permissions, the interpreter, the names in the environment. Then
    nothing runs, unless --anyway is given.

    A tool that does not declare `idempotent` or `read_only` asks first; --yes answers.

    Exit codes: 0 if everything is the same, 1 if something differs; those of `rye run` if the call
    is refused.

    \b
    Examples:
      rye replay last
      rye replay 01m7p5egdt4qtekj5pmt text=hello
      rye replay receipt.json --dry-run --json
    """
    from rye.history.replay import Replay

    with Replay(_recorded(run, invocation), invocation.context) as replay:
        replay.give(_parameters(replay, pairs, params))
        difference = replay.before()
        runs = not dry_run and (difference is None or anyway)
        if runs:
            if not yes and not replay.may_repeat:
                _ask(replay.recorded.item)
            after = replay.run(None if as_json else _print_output)
            difference = difference or after
        _report(replay, difference, as_json=as_json)
        code = _refusal(replay)
    if code:
        raise SystemExit(code)
    if difference is not None:
        raise SystemExit(OTHER)


def _recorded(run: str, invocation: Invocation) -> Recorded:
    from rye.history.replay import recorded_receipt, recorded_run
    from rye.history.store import opened
    from rye.history.verification import Keys, verify_receipt

    context = invocation.context
    if Path(run).is_file():
        from rye.cli.commands.receipt import receipt_lines

        line, *others = receipt_lines(run)
        if others:
            raise ReceiptError(
                f"{run} has {1 + len(others)} receipts, and one can be replayed",
                hint="pass a file with one line of it",
            )
        return recorded_receipt(verify_receipt(line, Keys(context), context).receipt)
    with opened(context) as history:
        return recorded_run(history, history.find(run))


def _parameters(
    replay: Replay, pairs: tuple[str, ...], params: str | None
) -> dict[str, Any] | None:
    if not pairs and params is None:
        return None
    from rye.cli.run.request import RunRequest
    from rye.cli.run.run import given_parameters

    request = RunRequest(replay.recorded.item, pairs, params=params)
    return dict(given_parameters(request, replay.executor) or {})


def _ask(item: str) -> None:
    if not is_terminal(sys.stdin):
        raise click.UsageError(
            f"{item!r} may change something again, and nobody can be asked; pass --yes"
        )
    click.confirm(f"{plain(item)} may change something again; run it?", abort=True, err=True)


def _print_output(stream: str, text: str) -> None:
    target = sys.stderr if stream == "stderr" else sys.stdout
    target.write(text)
    target.flush()


def _report(replay: Replay, difference: Difference | None, *, as_json: bool) -> None:
    result = replay.result
    if as_json:
        print_json(
            {
                "run": replay.recorded.run_id,
                "item": replay.recorded.item,
                "same": difference is None,
                "difference": None if difference is None else difference._asdict(),
                "ran": result is not None,
                "replayed_as": None if result is None else result.metadata.get("run_id"),
            }
        )
    elif difference is not None:
        echo(plain(difference.text), err=result is not None)
    else:
        done = "would run as before" if result is None else "the same"
        echo(
            f"{done}: {plain(replay.recorded.item)}, run {replay.recorded.run_id}",
            err=result is not None,
        )


def _refusal(replay: Replay) -> int:
    """The exit code of a call that was refused after all; 0 if it ran."""
    from rye.cli.output.errors import exit_code_of_name, print_error

    result = replay.result
    if result is None or result.success or "return_code" in result.metadata:
        return 0
    code = exit_code_of_name(str(result.metadata.get("error_type")))
    if code == OTHER:
        return 0
    print_error(result.error or "refused")
    return code
