"""``rye trust``: the keys whose signatures are trusted, and the approval of a project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rye.cli.commands.trust_project import project_command
from rye.cli.completion import complete_fingerprint
from rye.cli.invocation import Invocation
from rye.cli.output.errors import print_error
from rye.cli.output.printing import display, plain, print_json, print_table, shorten_paths

if TYPE_CHECKING:
    from rye.trust.key_source import KeyEntry


@click.group()
def command() -> None:
    """Manage the keys and projects that you trust.

    A tool runs only if a trusted key signed it. Your own key is trusted, and the keys that you add
    are trusted in all your projects. A key that a project lists is trusted only after you approve
    it. The unsigned parts of a project are used only after you approve the project.

    \b
    Examples:
      rye trust list
      rye trust add alice.pem --owner alice@example.org
      rye trust share --owner bob@example.org
      rye trust remove 4be1c20d9a7f3358
      rye trust project
    """


command.add_command(project_command)


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_keys(invocation: Invocation, as_json: bool) -> None:
    """List all known keys, and whether each is trusted.

    \b
    Examples:
      rye trust list
      rye trust list --json
    """
    from rye.trust.store import TrustStore

    store = TrustStore(invocation.context)
    entries = store.entries()
    if as_json:
        print_json([_as_json(entry) for entry in entries])
    elif entries:
        print_table([_row(entry) for entry in entries])
        if any(not entry.trusted and not entry.problem for entry in entries):
            click.echo(
                "\nif you know the owner of a key, approve it with: rye trust add FINGERPRINT",
                err=True,
            )
    else:
        click.echo("no keys; create yours with: rye init")
    for problem in (*store.problems(), *(entry.problem for entry in entries if entry.problem)):
        print_error(problem)


@command.command("add")
@click.argument("key", metavar="PATH|FINGERPRINT")
@click.option("--owner", help="The owner of the key, if the file does not name one.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def add(invocation: Invocation, key: str, owner: str | None, as_json: bool) -> None:
    """Trust a key.

    PATH is the owner's public_key.pem, or a .toml file from another trust store. FINGERPRINT
    approves a key that this project lists in .ai/trusted_keys. Make sure that you know the owner:
    what they sign can run with all your permissions.

    \b
    Examples:
      rye trust add alice.pem --owner alice@example.org
      rye trust add 4be1c20d9a7f3358
    """
    import re

    from rye.errors import KeyStoreError
    from rye.trust.key_format import FINGERPRINT
    from rye.trust.operations import trust_add, trust_list

    context = invocation.context
    path = Path.cwd() / key
    by_name = re.fullmatch(FINGERPRINT, key) is not None and not path.exists()
    if not by_name and not path.exists():
        raise KeyStoreError(
            f"cannot trust {key!r}: there is no such file",
            hint="pass a public key file, or the fingerprint of a key that the project lists",
        )
    if by_name and owner is not None:
        raise click.UsageError("--owner is only for a key file; the project names the owner")
    trusted = {entry.fingerprint for entry in trust_list(context) if entry.is_trusted_in(())}
    entry = trust_add(key if by_name else path, context, owner=owner)
    if as_json:
        print_json(_as_json(entry))
        return
    owner_text = plain(entry.owner) if entry.owner else "owner not named"
    verb = "Already" if entry.fingerprint in trusted else "Now"
    click.echo(f"{verb} trusting key {entry.fingerprint} ({owner_text})")
    click.echo(f"  {display(entry.path)}")


@command.command("share")
@click.option("--owner", required=True, help="Your name or email address.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def share(invocation: Invocation, owner: str, as_json: bool) -> None:
    """Add your public key to the project, so that others can approve it.

    Commit the file, and send the fingerprint to the others outside of the repository, so that they
    can compare it.

    \b
    Examples:
      rye trust share --owner bob@example.org
    """
    from rye.cli.sign.signing import share_key

    fingerprint, path = share_key(invocation.context, owner)
    if as_json:
        print_json({"fingerprint": fingerprint, "owner": owner, "path": str(path)})
        return
    click.echo(f"added your public key {fingerprint} ({plain(owner)}) to the project")
    click.echo(f"  {display(path)}")
    click.echo(f"others approve it with: rye trust add {fingerprint}")


@command.command("remove")
@click.argument("fingerprint", shell_complete=complete_fingerprint)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def remove(invocation: Invocation, fingerprint: str, as_json: bool) -> None:
    """Stop trusting a key.

    \b
    Examples:
      rye trust remove 4be1c20d9a7f3358
    """
    from rye.trust.operations import trust_remove

    removed = trust_remove(fingerprint, invocation.context)
    if as_json:
        print_json({"fingerprint": fingerprint, "removed": [str(path) for path in removed]})
        return
    click.echo(f"No longer trusting key {fingerprint}")
    for path in removed:
        click.echo(f"  removed {display(path)}")


def _row(entry: KeyEntry) -> tuple[str, str, str, str, str]:
    where = f"bundle {entry.bundle}" if entry.bundle else entry.space
    owner = entry.owner or ("" if entry.problem else "(not named)")
    return entry.fingerprint or "?", owner, where, _state(entry), shorten_paths(str(entry.path))


def _state(entry: KeyEntry) -> str:
    if entry.problem:
        return "unusable"
    if not entry.trusted:
        return "not approved"
    return "trusted" if entry.within is None else "trusted for its bundle"


def _as_json(entry: KeyEntry) -> dict[str, object]:
    return {
        "fingerprint": entry.fingerprint or None,
        "owner": entry.owner or None,
        "space": entry.space,
        "bundle": entry.bundle or None,
        "path": str(entry.path),
        "created": entry.created or None,
        "own": entry.own,
        "trusted": entry.trusted,
        "within": None if entry.within is None else str(entry.within),
        "problem": entry.problem or None,
    }
