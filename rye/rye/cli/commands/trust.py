"""``rye trust``: the keys whose signatures are trusted, and the approval of a project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rye.cli.commands.trust_project import project_command
from rye.cli.completion import complete_fingerprint, complete_unapproved
from rye.cli.invocation import Invocation
from rye.cli.output.errors import exit_code, print_error
from rye.cli.output.printing import display, plain, print_json, print_table, shorten_paths
from rye.errors import KeyStoreError, RyeError

if TYPE_CHECKING:
    from rye.context import Context
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
      rye trust export > team-keys.toml
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
    from rye.trust.overview import NOT_APPROVED, key_state
    from rye.trust.store import TrustStore

    store = TrustStore(invocation.context)
    entries = store.entries()
    if as_json:
        print_json([_as_json(entry) for entry in entries])
    elif entries:
        states = [key_state(entry, store) for entry in entries]
        print_table([_row(entry, state) for entry, state in zip(entries, states, strict=True)])
        if NOT_APPROVED in states:
            click.echo(
                "\nif you know the owner of a key, approve it with: rye trust add FINGERPRINT",
                err=True,
            )
    else:
        click.echo("no keys; create yours with: rye init")
    for problem in (*store.problems(), *(entry.problem for entry in entries if entry.problem)):
        print_error(problem)


@command.command("add")
@click.argument(
    "keys",
    metavar="PATH|FINGERPRINT...",
    nargs=-1,
    required=True,
    shell_complete=complete_unapproved,
)
@click.option("--owner", help="The owner of the key, if the file does not name one.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def add(invocation: Invocation, keys: tuple[str, ...], owner: str | None, as_json: bool) -> None:
    """Trust keys.

    PATH is the owner's public_key.pem, a .toml file from another trust store, or what `rye trust
    export` printed. FINGERPRINT approves a key that this project lists in .ai/trusted_keys. Make
    sure that you know the owners: what they sign can run with all your permissions.

    A key that cannot be trusted is reported, and the others are added.

    \b
    Examples:
      rye trust add alice.pem --owner alice@example.org
      rye trust add 4be1c20d9a7f3358 9c02e6a1b35d7f40
      rye trust add team-keys.toml
    """
    if owner is not None and len(keys) > 1:
        raise click.UsageError("--owner is only for a single key")
    from rye.trust.operations import trust_list

    context = invocation.context
    trusted = {entry.fingerprint for entry in trust_list(context) if entry.is_trusted_in(())}
    added: list[KeyEntry] = []
    errors: list[RyeError] = []
    for key in keys:
        try:
            added += _add(key, context, owner)
        except RyeError as error:
            errors.append(error)
    if as_json:
        shown = [_as_json(entry) for entry in added]
        print_json(shown[0] if len(keys) == 1 and len(shown) == 1 else shown)
    else:
        for entry in added:
            owner_text = plain(entry.owner) if entry.owner else "owner not named"
            verb = "Already" if entry.fingerprint in trusted else "Now"
            click.echo(f"{verb} trusting key {entry.fingerprint} ({owner_text})")
            click.echo(f"  {display(entry.path)}")
    for failed in errors:
        print_error(str(failed))
    if errors:
        raise click.exceptions.Exit(exit_code(type(errors[0])))


def _add(key: str, context: Context, owner: str | None) -> list[KeyEntry]:
    import re

    from rye.trust.key_format import FINGERPRINT
    from rye.trust.operations import trust_add, trust_add_file

    path = Path.cwd() / key
    if path.exists():
        return trust_add_file(path, context, owner=owner)
    if re.fullmatch(FINGERPRINT, key) is None:
        raise KeyStoreError(
            f"cannot trust {key!r}: there is no such file",
            hint="pass a public key file, or the fingerprint of a key that the project lists",
        )
    if owner is not None:
        raise click.UsageError("--owner is only for a key file; the project names the owner")
    return [trust_add(key, context)]


@command.command("export")
@click.option("--owner", default="", help="Your name in the file, if the project does not list it.")
@click.pass_obj
def export(invocation: Invocation, owner: str) -> None:
    """Print the keys that you trust, for `rye trust add` on another machine or in CI.

    The file contains public keys only. Whoever can change it decides what may run there: keep it in
    the settings of the CI system, not in the repository that it checks.

    \b
    Examples:
      rye trust export --owner alice@example.org > team-keys.toml
      rye trust add team-keys.toml
    """
    from rye.trust.operations import trust_export

    click.echo(trust_export(invocation.context, owner).decode(), nl=False)


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
    """Stop trusting a key, in all your projects.

    To refuse a key for others too, use `rye key revoke`.

    \b
    Examples:
      rye trust remove 4be1c20d9a7f3358
    """
    from rye.trust.operations import trust_remove

    removed = trust_remove(fingerprint, invocation.context)
    if as_json:
        print_json({"fingerprint": fingerprint, "removed": [str(path) for path in removed]})
        return
    click.echo(f"No longer trusting key {fingerprint}; what it signed does not run any more")
    for path in removed:
        click.echo(f"  removed {display(path)}")
    click.echo(f"to refuse it for everybody who uses this project: rye key revoke {fingerprint}")


def _row(entry: KeyEntry, state: str) -> tuple[str, str, str, str, str]:
    from rye.trust.overview import owner_words

    where = f"bundle {entry.bundle}" if entry.bundle else entry.space
    path = shorten_paths(str(entry.path))
    return entry.fingerprint or "?", owner_words(entry), where, state, path


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
        "revoked": None if entry.revoked is None else str(entry.revoked),
        "within": None if entry.within is None else str(entry.within),
        "problem": entry.problem or None,
    }
