"""``rye trust``: whose signatures count."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rye.cli.completion import offers
from rye.cli.invocation import Surroundings
from rye.cli.output.errors import tell
from rye.cli.output.paths import near, shown
from rye.cli.output.printing import plain, print_json, print_table

if TYPE_CHECKING:
    from rye.trust.key_source import KeyEntry


@click.group()
def command() -> None:
    """See and change whose signatures count.

    Your own key counts, and what you add here counts in all your projects. A key that a project
    brings counts only after you have approved it.

    \b
    Examples:
      rye trust list
      rye trust add alice.pem --owner alice@example.org
      rye trust share --owner bob@example.org
      rye trust remove 4be1c20d9a7f3358
    """


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_keys(surroundings: Surroundings, as_json: bool) -> None:
    """List the keys that there are, and which of them count.

    \b
    Examples:
      rye trust list
      rye trust list --json
    """
    from rye.trust.store import TrustStore

    store = TrustStore(surroundings.context)
    entries = store.entries()
    if as_json:
        print_json([_as_json(entry) for entry in entries])
    elif entries:
        print_table([_row(entry) for entry in entries])
        if any(not entry.trusted and not entry.problem for entry in entries):
            click.echo(
                "\nif you know whose a key is, approve it with: rye trust add FINGERPRINT", err=True
            )
    else:
        click.echo("no keys; make yours with: rye init")
    for problem in (*store.problems(), *(entry.problem for entry in entries if entry.problem)):
        tell(problem)


@command.command("add")
@click.argument("key", metavar="PATH|FINGERPRINT")
@click.option("--owner", help="Whose key it is, for a file that does not say so.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def add(surroundings: Surroundings, key: str, owner: str | None, as_json: bool) -> None:
    """Let signatures by a key count.

    PATH is the public_key.pem of its owner, or the .toml of another trust store. FINGERPRINT
    approves a key that this project brings in .ai/trusted_keys. Make sure whose key it is: what
    its owner signs may run with all your rights.

    \b
    Examples:
      rye trust add alice.pem --owner alice@example.org
      rye trust add 4be1c20d9a7f3358
    """
    import re

    from rye.trust.key_format import FINGERPRINT
    from rye.trust.operations import trust_add, trust_list

    context = surroundings.context
    path = Path.cwd() / key
    by_name = re.fullmatch(FINGERPRINT, key) is not None and not path.exists()
    if by_name and owner is not None:
        raise click.UsageError("a key that the project brings says itself whose it is")
    counted = {entry.fingerprint for entry in trust_list(context) if entry.is_trusted_in(())}
    entry = trust_add(key if by_name else path, context, owner=owner)
    if as_json:
        print_json(_as_json(entry))
        return
    whose = f"of {plain(repr(entry.owner))}" if entry.owner else "of an owner who is not named"
    word = "counted already" if entry.fingerprint in counted else "counts from now on"
    click.echo(f"key {entry.fingerprint} {whose} {word}")
    click.echo(f"  {shown(entry.path)}")


@command.command("share")
@click.option("--owner", required=True, help="Your name or address, for others to read.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def share(surroundings: Surroundings, owner: str, as_json: bool) -> None:
    """Put your public key into the project, for others to approve.

    Commit the file; tell the others the fingerprint by another way than the repository.

    \b
    Examples:
      rye trust share --owner bob@example.org
    """
    from rye.cli.sign.key_sharing import share_key

    fingerprint, path = share_key(surroundings.context, owner)
    if as_json:
        print_json({"fingerprint": fingerprint, "owner": owner, "path": str(path)})
        return
    click.echo(f"your public key {fingerprint} is in the project as that of {plain(repr(owner))}")
    click.echo(f"  {shown(path)}")
    click.echo(f"others approve it with: rye trust add {fingerprint}")


@command.command("remove")
@click.argument("fingerprint", shell_complete=offers.fingerprints)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def remove(surroundings: Surroundings, fingerprint: str, as_json: bool) -> None:
    """Take back your trust in a key, or your approval of one.

    \b
    Examples:
      rye trust remove 4be1c20d9a7f3358
    """
    from rye.trust.operations import trust_remove

    removed = trust_remove(fingerprint, surroundings.context)
    if as_json:
        print_json({"fingerprint": fingerprint, "removed": [str(path) for path in removed]})
        return
    click.echo(f"key {fingerprint} does not count any more")
    for path in removed:
        click.echo(f"  removed {shown(path)}")


def _row(entry: KeyEntry) -> tuple[str, str, str, str, str]:
    where = f"bundle {entry.bundle}" if entry.bundle else entry.space
    owner = entry.owner or ("" if entry.problem else "(not named)")
    return entry.fingerprint or "?", owner, where, _counts(entry), near(str(entry.path))


def _counts(entry: KeyEntry) -> str:
    if entry.problem:
        return "unusable"
    if not entry.trusted:
        return "not approved"
    return "counts" if entry.within is None else "counts for its bundle"


def _as_json(entry: KeyEntry) -> dict[str, object]:
    return {
        "fingerprint": entry.fingerprint or None,
        "owner": entry.owner or None,
        "space": entry.space,
        "bundle": entry.bundle or None,
        "path": str(entry.path),
        "created": entry.created or None,
        "own": entry.own,
        "counts": entry.trusted,
        "within": None if entry.within is None else str(entry.within),
        "problem": entry.problem or None,
    }
