"""Token records in a vault, changed by one writer at a time."""

from pathlib import Path
from typing import Literal, Protocol

import msgspec

from lilux.primitives.errors import AuthError
from lilux.runtime.auth.files import (
    locked,
    name_digest,
    per_user_lock_folder,
    prepare_folder,
)
from lilux.runtime.auth.keychain import Keychain, KeychainVault, find_keychain
from lilux.runtime.auth.token import TokenRecord


class Vault(Protocol):
    """Keeps one secret text for each service; methods block, and are called off the loop."""

    @property
    def identity(self) -> object:
        """Equal for two vaults that hold the same secrets."""

    def holds(self, service: str) -> bool:
        """Whether there is a secret, be it whole or not."""

    def read(self, service: str) -> bytes | None:
        """The secret, or ``None``; raises ``AuthError`` if it was tampered with."""

    def write(self, service: str, secret: bytes) -> None:
        """Keep ``secret`` in place of the one before."""

    def remove(self, service: str) -> None:
        """Forget the secret; nothing happens if there is none."""


class TokenStorage:
    """Reads and writes the records of one store; methods block for a few file operations.

    ``lock_folder`` holds the locks, or ``None`` for the per-user one of the system.
    """

    def __init__(self, vault: Vault, *, store_name: str, lock_folder: Path | None) -> None:
        self._vault = vault
        self._store_name = store_name
        self._lock_folder = lock_folder

    @property
    def identity(self) -> object:
        """Equal for two storages that hold the same records."""
        return self._vault.identity

    def load(self, service: str) -> TokenRecord | None:
        """The record, or ``None``; raises ``AuthError`` if what is kept is not one."""
        secret = self._vault.read(service)
        return None if secret is None else _decode(service, secret)

    def save(self, record: TokenRecord) -> None:
        """Keep ``record`` in place of the one before, whatever that was."""
        with locked(self._lock_path(record.service, "write")):
            self._vault.write(record.service, _encode(record))

    def replace(self, old: TokenRecord, new: TokenRecord) -> bool:
        """Keep ``new`` if ``old`` is still what is kept; else change nothing and say ``False``."""
        with locked(self._lock_path(old.service, "write")):
            if self.load(old.service) != old:
                return False
            self._vault.write(new.service, _encode(new))
            return True

    def delete(self, service: str) -> None:
        """Forget the record; nothing happens if there is none."""
        if self._vault.holds(service):
            with locked(self._lock_path(service, "write")):
                self._vault.remove(service)

    def refresh_lock_path(self, service: str) -> Path:
        """The lock to hold while a refresh of ``service`` is under way."""
        return self._lock_path(service, "refresh")

    def _lock_path(self, service: str, purpose: str) -> Path:
        folder = self._lock_folder
        if folder is None:
            folder = per_user_lock_folder()
        else:
            prepare_folder(folder)
        return folder / f"{name_digest(self._store_name, service)}.{purpose}-lock"


def open_storage(
    store_name: str, folder: Path | None, keychain: Keychain | Literal["auto"] | None
) -> TokenStorage | None:
    """The storage that there is: the keychain before the folder, ``None`` with neither."""
    vault: Vault
    if keychain == "auto":
        keychain = find_keychain()
    if keychain is not None:
        vault = KeychainVault(keychain, store_name)
    elif folder is not None:
        # Who has a keychain needs no cryptography.
        from lilux.runtime.auth.folder import FolderVault

        vault = FolderVault(folder, store_name)
    else:
        return None
    return TokenStorage(vault, store_name=store_name, lock_folder=folder)


def _encode(record: TokenRecord) -> bytes:
    return msgspec.json.encode(record)


def _decode(service: str, secret: bytes) -> TokenRecord:
    try:
        record = msgspec.json.decode(secret, type=TokenRecord)
    except (msgspec.MsgspecError, UnicodeError):
        record = None
    if record is None or record.service != service:
        raise AuthError(
            f"what is stored for {service!r} is not its token"
            f": clear it with clear_token({service!r}) and authenticate again"
        )
    return record
