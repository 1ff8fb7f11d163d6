"""One's own public key for a project to bring along."""

from __future__ import annotations

from pathlib import Path

from lilux.files.atomic import atomic_write

from rye.cli.new.tool import key_folder
from rye.context import Context
from rye.errors import KeyStoreError
from rye.trust.key_format import EntryFormatError, render_trusted_key, time_now, trusted_key
from rye.trust.signer import Signer


def share_key(context: Context, owner: str) -> tuple[str, Path]:
    """Write the user's public key into the project; gives its fingerprint and the file.

    It counts for others after they have approved it. Raises :class:`KeyStoreError`.
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
