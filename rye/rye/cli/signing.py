"""Many files signed with the user's key; one that cannot be signed does not stop the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rye.cli.scaffold import key_folder
from rye.cli.targets import Target
from rye.context import Context
from rye.errors import RyeError
from rye.trust.signer import SignedItem, Signer


class Signing(NamedTuple):
    """What became of one file: a signature, or a reason why not."""

    target: Target
    signed: SignedItem | None
    error: RyeError | None

    @property
    def state(self) -> str:
        """``signed``, ``already`` (by this key, as it is) or ``failed``."""
        if self.signed is None:
            return "failed"
        return "signed" if self.signed.changed else "already"


def sign_targets(targets: Sequence[Target], context: Context) -> Iterator[Signing]:
    """Sign one by one. Raises :class:`KeyStoreError` at once if the key cannot be used."""
    signer = Signer.of_user(key_folder(context))
    for target in targets:
        try:
            signed = signer.sign_file(target.path, target.root)
        except RyeError as error:
            yield Signing(target, None, error)
        else:
            yield Signing(target, signed, None)
