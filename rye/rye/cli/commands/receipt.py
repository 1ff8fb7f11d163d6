"""``rye receipt``: signed statements about runs, and their verification."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rye.cli.invocation import Invocation
from rye.cli.output.errors import TRUST, print_error
from rye.cli.output.printing import display, echo, field_list, plain, print_json
from rye.errors import ReceiptError

if TYPE_CHECKING:
    from rye.history.verification import LogReport, Verified

_MAX_FILE = 512 * 1024 * 1024


class ReceiptGroup(click.Group):
    """A group in which a run may stand instead of a command: then its receipt is printed."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not args[0].startswith("-"):
            args = ["print", *args]
        return super().resolve_command(ctx, args)


@click.group(cls=ReceiptGroup)
def command() -> None:
    """Print or verify a signed statement about a run.

    `rye receipt RUN` prints a receipt: an in-toto statement, signed with your key, about what ran,
    what it could touch, and the digests of its parameters and output.

    \b
    Examples:
      rye receipt last > receipt.json
      rye receipt verify receipt.json --key ada.pem
      rye receipt log --out receipts.jsonl
    """


@command.command("print")
@click.argument("run", metavar="RUN")
@click.pass_obj
def print_receipt(invocation: Invocation, run: str) -> None:
    """Print the receipt of RUN; the same as `rye receipt RUN`.

    It is signed with your key and added to your log of receipts when it is first asked for.

    \b
    Examples:
      rye receipt print last
      rye receipt 01m7p5egdt4qtekj5pmt > receipt.json
    """
    from rye.history.receipts import receipt_of, user_signer
    from rye.history.store import opened

    context = invocation.context
    with opened(context) as history:
        echo(receipt_of(history, history.find(run), user_signer(context)))


@command.command("log")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
@click.pass_obj
def log(invocation: Invocation, out: Path | None) -> None:
    """Print the receipts of all runs as lines of JSON, each naming the one before.

    \b
    Examples:
      rye receipt log --out receipts.jsonl
      rye receipt log | rye receipt verify -
    """
    from rye.history.receipts import issue_all, log_lines, user_signer
    from rye.history.store import opened

    context = invocation.context
    with opened(context) as history:
        issue_all(history, user_signer(context))
        if out is None:
            for line in log_lines(history):
                sys.stdout.write(f"{line}\n")
            return
        count = 0
        with out.open("w", encoding="ascii") as file:
            for line in log_lines(history):
                file.write(f"{line}\n")
                count += 1
    echo(f"wrote {count:,} {'receipt' if count == 1 else 'receipts'} to {display(out)}")


@command.command("verify")
@click.argument("file", type=click.Path(exists=True, allow_dash=True))
@click.option("--key", metavar="PEM|FINGERPRINT", help="The public key that must have signed.")
@click.option(
    "--closure", metavar="DIGEST|lock", default="", help="The closure that must have run."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def verify(invocation: Invocation, file: str, key: str | None, closure: str, as_json: bool) -> None:
    """Verify a receipt, or a log of receipts.

    Without --key, a key that you trust must have signed. `--closure lock` asks for the closure that
    the lockfile of this project pins. The exit code is 4 if a receipt is not valid, or if an entry
    of a log is missing, altered or out of order.

    \b
    Examples:
      rye receipt verify receipt.json
      rye receipt verify receipt.json --key ada.pem --closure lock
      rye receipt verify receipts.jsonl
    """
    from rye.history.verification import Keys, verify_log, verify_receipt

    context = invocation.context
    lines = receipt_lines(file)
    keys = Keys(context, _public_key(key, invocation))
    if len(lines) == 1:
        done = verify_receipt(lines[0], keys, context, closure)
        if as_json:
            print_json(
                {
                    "valid": True,
                    "key": done.receipt.fingerprint,
                    "statement": done.receipt.statement,
                }
            )
        else:
            echo(_page(done))
        return
    report = verify_log(lines, keys, context, closure)
    if as_json:
        print_json({**report._asdict(), "faults": [one._asdict() for one in report.faults]})
    else:
        _print_log(report)
    if report.faults:
        raise SystemExit(TRUST)


def receipt_lines(file: str) -> list[str]:
    """The lines of a file. A receipt has one spelling, so nothing is stripped or replaced."""
    with click.open_file(file, "rb") as source:
        data: bytes = source.read(_MAX_FILE + 1)
    if len(data) > _MAX_FILE:
        raise ReceiptError(f"{file} is larger than {_MAX_FILE} bytes")
    try:
        lines: list[str] = data.decode("ascii").removesuffix("\n").split("\n")
    except UnicodeDecodeError:
        raise ReceiptError(
            f"{file} is not a receipt, or it was changed", hint="use what `rye receipt` printed"
        ) from None
    if lines == [""]:
        raise ReceiptError(
            f"there is no receipt in {file}", hint="make one with: rye receipt RUN > FILE"
        )
    return lines


def _public_key(key: str | None, invocation: Invocation) -> bytes | None:
    if key is None:
        return None
    from rye.trust.key_format import is_public_key
    from rye.trust.store import TrustStore

    if re.fullmatch("[0-9a-f]{16}", key) and not Path(key).exists():
        entry = TrustStore(invocation.context).find(key)
        if entry is None or not entry.public_key:
            raise ReceiptError(f"no key {key} is known", hint="pass the file of the public key")
        return entry.public_key
    from lilux.files.bounded_read import FileTooLargeError, read_bounded

    try:
        data = read_bounded(key, 64 * 1024)
    except FileTooLargeError:
        data = b""
    if not is_public_key(data):
        raise ReceiptError(f"{key} is not an Ed25519 public key", hint="export it: rye trust share")
    return data


PROVES = "the holder of the key states what ran, how it ended, and the digests of its data"
PROVES_NOT = "that the machine was honest, what the values were, or that no run was left out"


def _page(done: Verified) -> str:
    receipt, predicate = done.receipt, done.receipt.predicate
    outcome = predicate["outcome"]
    ended = outcome["outcome"] + (f" (exit {outcome['exit']})" if "exit" in outcome else "")
    fields = [
        ("run", f"{predicate['run']}, {predicate['started_at']}, {ended}"),
        ("tool", f"{predicate['item']} {predicate.get('version', '')}"),
        ("signature", f"by {receipt.fingerprint}, {done.owner}"),
        ("closure", f"{predicate.get('closure', 'none')}: {done.remark}"),
        ("shown", _shown(predicate)),
        ("proves", PROVES),
        ("proves not", PROVES_NOT),
    ]
    return "valid\n" + field_list([(name, plain(text)) for name, text in fields if text])


def _shown(predicate: Mapping[str, Any]) -> str:
    shown, described = predicate.get("shown"), predicate.get("described")
    if not shown:
        return ""
    if shown == described:
        return "the agent read the signed description of what ran"
    return "the agent read another description than the one of what ran"


def _print_log(report: LogReport) -> None:
    receipts = "receipt" if report.entries == 1 else "receipts"
    echo(f"{report.valid} of {report.entries} {receipts} valid, signed by {', '.join(report.keys)}")
    if report.first > 1:
        echo(f"the file begins with entry {report.first}; earlier entries are not in it")
    for fault in report.faults:
        print_error(f"line {fault.line}: {fault.reason}")
    if not report.faults:
        echo("no entry is missing, altered or out of order; entries after the last are not known")
