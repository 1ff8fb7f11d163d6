"""Sign and verify many files, and share the user's public key. Nothing is printed here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from lilux.files.atomic import atomic_write

from rye.authoring.signing import Signed, SigningRoom
from rye.cli.sign.targets import Target
from rye.context import Context
from rye.errors import KeyStoreError, RyeError
from rye.trust.key_format import EntryFormatError, render_trusted_key, time_now, trusted_key
from rye.trust.operations import ItemReport, trust_list, verify_paths
from rye.trust.signer import Signer
from rye.trust.verify import Standing

UNREADABLE = "unreadable"
_BATCH = 64


class Verification(NamedTuple):
    """The result of the verification of one file."""

    report: ItemReport
    owner: str
    """The owner of the key according to the trust store; empty if the key is unknown."""

    @property
    def state(self) -> str:
        """The standing of the signature, or ``unreadable``."""
        verdict = self.report.verdict
        return UNREADABLE if verdict is None else verdict.standing.value

    @property
    def label(self) -> str:
        """The state for people."""
        keys = (Standing.UNTRUSTED.value, Standing.REVOKED.value)
        return f"{self.state} key" if self.state in keys else self.state

    @property
    def signer(self) -> str:
        """The fingerprint in the signature line; empty if there is none."""
        return "" if self.report.verdict is None else self.report.verdict.fingerprint

    @property
    def signer_and_owner(self) -> str:
        """The fingerprint and the owner, for people."""
        return f"{self.signer} ({self.owner})" if self.owner else self.signer


class Signing(NamedTuple):
    """The result of signing one file: a signature or an error."""

    target: Target
    signed: Signed | None
    error: RyeError | None
    before: Verification
    """The state of the file before."""

    @property
    def state(self) -> str:
        """``signed``, ``already`` (signed by this key, and unchanged) or ``failed``."""
        if self.signed is None:
            return "failed"
        return "signed" if self.signed.item.changed else "already"

    @property
    def replaced(self) -> str:
        """The fingerprint of the replaced signature; empty if there was none or it was invalid.

        If that key is not trusted here, nothing proves that its owner signed the file.
        """
        standings = (Standing.TRUSTED, Standing.UNTRUSTED, Standing.REVOKED)
        valid = self.before.state in [one.value for one in standings]
        return self.before.signer if self.state == "signed" and valid else ""


def verify_targets(targets: Sequence[Target], context: Context) -> Iterator[Verification]:
    """Verify one file after the other. A bad file is a result, not an exception."""
    owners = {entry.fingerprint: entry.owner for entry in reversed(trust_list(context))}
    for start in range(0, len(targets), _BATCH):
        paths = [target.path for target in targets[start : start + _BATCH]]
        for report in verify_paths(paths, context):
            fingerprint = "" if report.verdict is None else report.verdict.fingerprint
            yield Verification(report, owners.get(fingerprint, ""))


def sign_targets(targets: Sequence[Target], context: Context) -> Iterator[Signing]:
    """Sign one file after the other; a file that cannot be signed does not stop the rest.

    A tool that would be refused when it is called is not signed.
    Raises :class:`KeyStoreError` at once if the user's key cannot be used.
    """
    room = SigningRoom(context, Signer.of_user(key_folder(context)))
    for target, before in zip(targets, verify_targets(targets, context), strict=True):
        try:
            signed = room.sign(target.item_id, target.path, target.root)
        except RyeError as error:
            yield Signing(target, None, error, before)
        else:
            yield Signing(target, signed, None, before)


def key_folder(context: Context) -> Path:
    """The directory of the user's key pair; it may not exist yet."""
    return context.user_space / ".ai" / "keys"


def share_key(context: Context, owner: str) -> tuple[str, Path]:
    """Write the user's public key into the project; return its fingerprint and the file.

    Others trust it only after they approve it. Raises :class:`KeyStoreError`.
    """
    signer = Signer.of_user(key_folder(context))
    try:
        key = trusted_key(signer.public_key, owner, time_now())
    except EntryFormatError as error:
        raise KeyStoreError(f"cannot share your key: {error}", hint="pass a plain name") from None
    folder = context.project_path / ".ai" / "trusted_keys"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{key.fingerprint}.toml"
    atomic_write(path, render_trusted_key(key))
    return key.fingerprint, path
