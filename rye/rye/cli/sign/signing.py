"""Many files signed with the user's key; one that cannot be signed does not stop the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rye.cli.new.tool import key_folder
from rye.cli.sign.targets import Target
from rye.cli.sign.verification import Verification, verify_targets
from rye.context import Context
from rye.errors import RyeError
from rye.trust.signer import SignedItem, Signer
from rye.trust.verify import Standing


class Signing(NamedTuple):
    """What became of one file: a signature, or a reason why not."""

    target: Target
    signed: SignedItem | None
    error: RyeError | None
    before: Verification
    """What was to be said of it until now."""

    @property
    def state(self) -> str:
        """``signed``, ``already`` (by this key, as it is) or ``failed``."""
        if self.signed is None:
            return "failed"
        return "signed" if self.signed.changed else "already"

    @property
    def replaced(self) -> str:
        """The other key whose signature made room for the new one; empty if there was none.

        That the other had signed it is certain only of a key that is trusted here.
        """
        stood = self.before.state in (Standing.TRUSTED.value, Standing.UNTRUSTED.value)
        return self.before.signer if self.state == "signed" and stood else ""


def sign_targets(targets: Sequence[Target], context: Context) -> Iterator[Signing]:
    """Sign one by one. Raises :class:`KeyStoreError` at once if the key cannot be used."""
    signer = Signer.of_user(key_folder(context))
    for target, before in zip(targets, verify_targets(targets, context), strict=True):
        try:
            signed = signer.sign_file(target.path, target.root)
        except RyeError as error:
            yield Signing(target, None, error, before)
        else:
            yield Signing(target, signed, None, before)
