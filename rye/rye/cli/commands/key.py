"""``rye key``: your own key, a new one, and keys that nobody may use any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rye.cli.completion import complete_fingerprint
from rye.cli.invocation import Invocation
from rye.cli.output.errors import exit_code, print_error
from rye.cli.output.printing import display, echo, field_list, plain, print_json, short_list

if TYPE_CHECKING:
    from rye.trust.rotation import RevokedKey, Rotation


@click.group()
def command() -> None:
    """Show, replace or revoke the key that you sign with.

    The keys of others are managed with `rye trust`.

    \b
    Examples:
      rye key show
      rye key rotate
      rye key revoke 4be1c20d9a7f3358 --reason 'the laptop was stolen'
    """


@command.command("show")
@click.option("--fingerprint", is_flag=True, help="Print only the fingerprint.")
@click.option("--pem", is_flag=True, help="Print only the public key.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def show(invocation: Invocation, fingerprint: bool, pem: bool, as_json: bool) -> None:
    """Show your key: its fingerprint, where it is, and where it is shared.

    \b
    Examples:
      rye key show
      rye key show --pem > alice.pem
    """
    from rye.errors import KeyStoreError
    from rye.trust.operations import trust_list

    entries = trust_list(invocation.context)
    own = next((one for one in entries if one.own), None)
    if own is None:
        raise KeyStoreError("you have no key", hint="create one with: rye init")
    if own.problem:
        raise KeyStoreError(own.problem)
    others = [one for one in entries if one.own and one is not own]
    if fingerprint:
        echo(own.fingerprint)
    elif pem:
        echo(own.public_key.decode().rstrip("\n"))
    elif as_json:
        print_json(
            {
                "fingerprint": own.fingerprint,
                "path": str(own.path),
                "revoked": None if own.revoked is None else str(own.revoked),
                "public_key": own.public_key.decode(),
                "shared": [{"owner": one.owner, "path": str(one.path)} for one in others],
            }
        )
    else:
        shared = [f"as {plain(one.owner)} in {display(one.path)}" for one in others]
        fields = [("fingerprint", own.fingerprint), ("public key", display(own.path))]
        if own.revoked is not None:
            fields.append(
                ("revoked", f"by {display(own.revoked)}; replace it with: rye key rotate")
            )
        fields += [("shared", text) for text in shared or ["not in this project"]]
        echo(field_list(fields, ""))


@command.command("rotate")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def rotate(invocation: Invocation, as_json: bool) -> None:
    """Make a new key, and sign with it what your old key has signed.

    This applies to the tools of this project and to those in your user space. Files that were
    changed after you signed them are left alone. If the project lists your old key, it then lists
    the new one too. The old key stays trusted until you revoke it; its private half is removed. In
    your other projects, sign again with `rye sign '**'` before you revoke it.

    \b
    Examples:
      rye key rotate
    """
    from rye.trust.rotation import rotate_key

    done = rotate_key(invocation.context)
    if as_json:
        print_json(
            {
                "old": done.old,
                "new": done.new,
                "signed": list(done.signed),
                "left": list(done.left),
                "shared": None if done.shared is None else str(done.shared),
                "errors": [str(error) for error in done.failed],
            }
        )
    else:
        _print_rotation(done)
    for error in done.failed:
        print_error(str(error))
    if done.failed:
        raise click.exceptions.Exit(exit_code(type(done.failed[0])))


def _print_rotation(done: Rotation) -> None:
    state = "is revoked" if done.revoked else "stays trusted until you revoke it"
    echo(f"your key is now {done.new}; {done.old} {state}")
    if done.signed:
        echo(f"signed again: {plain(short_list(done.signed))}")
    if done.left:
        echo(f"left alone: {plain(short_list(done.left))}; read them, then run: rye sign ITEM...")
    if done.shared is not None:
        echo(f"added it to the project: {display(done.shared)}")
        echo(f"others approve it with: rye trust add {done.new}")
    if not done.revoked:
        echo(f"when nobody needs the old one: rye key revoke {done.old}")


@command.command("revoke")
@click.argument("fingerprint", shell_complete=complete_fingerprint)
@click.option("--reason", default="", help="Why, in one line, for those who read it.")
@click.option("--only-me", is_flag=True, help="Do not write into the project.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def revoke(
    invocation: Invocation, fingerprint: str, reason: str, only_me: bool, as_json: bool
) -> None:
    """Refuse every signature by a key, yours or that of somebody else.

    Writes .ai/revoked_keys/FINGERPRINT.toml into the project, for everybody who uses it, and into
    your user space, for all your projects. To undo it, remove these files.

    \b
    Examples:
      rye key revoke 4be1c20d9a7f3358 --reason 'the laptop was stolen'
    """
    from rye.trust.rotation import revoke_key

    done = revoke_key(fingerprint, invocation.context, reason=reason, only_user=only_me)
    if as_json:
        print_json(
            {
                "fingerprint": fingerprint,
                "revoked_in": [str(one.path) for one in done.revocations],
                "removed": [str(path) for path in done.removed],
                "items": list(done.items),
            }
        )
    else:
        _print_revocation(fingerprint, done)


def _print_revocation(fingerprint: str, done: RevokedKey) -> None:
    echo(f"revoked key {fingerprint}")
    for one in done.revocations:
        echo(f"  {display(one.path)}")
    for path in done.removed:
        echo(f"  removed {display(path)}")
    if done.items:
        echo(f"signed by it, and refused from now on: {plain(short_list(done.items))}")
        echo("if you have read them and trust them, sign them with: rye sign ITEM...")
