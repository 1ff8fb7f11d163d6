"""Token records in a vault, written by one process at a time."""

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
    """Stores one secret for each service. Methods block, and are called outside the event loop."""

    @property
    def identity(self) -> object:
        """Equal for two vaults of the same secrets."""

    def contains(self, service: str) -> bool:
        """Return true if there is a secret, valid or not."""

    def read(self, service: str) -> bytes | None:
        """Return the secret, or ``None``; raises ``AuthError`` if it was tampered with."""

    def write(self, service: str, secret: bytes) -> None:
        """Store ``secret``, replacing the one before."""

    def remove(self, service: str) -> None:
        """Remove the secret, if there is one."""


class TokenStorage:
    """Reads and writes the records of one store; methods block for a few file operations.

    ``lock_folder`` contains the locks; ``None`` means a per-user folder of the system.
    """

    def __init__(self, vault: Vault, *, store_name: str, lock_folder: Path | None) -> None:
        self._vault = vault
        self._store_name = store_name
        self._lock_folder = lock_folder

    @property
    def identity(self) -> object:
        """Equal for two storages of the same records."""
        return self._vault.identity

    def load(self, service: str) -> TokenRecord | None:
        """Return the record, or ``None``; raises ``AuthError`` for stored data of another kind."""
        secret = self._vault.read(service)
        return None if secret is None else _decode(service, secret)

    def save(self, record: TokenRecord) -> None:
        """Store ``record``, replacing the one before."""
        with locked(self._lock_path(record.service, "write")):
            self._vault.write(record.service, _encode(record))

    def replace(self, old: TokenRecord, new: TokenRecord) -> bool:
        """Store ``new`` if ``old`` is still stored; else change nothing and return ``False``."""
        with locked(self._lock_path(old.service, "write")):
            if self.load(old.service) != old:
                return False
            self._vault.write(new.service, _encode(new))
            return True

    def delete(self, service: str) -> None:
        """Remove the record, if there is one."""
        if self._vault.contains(service):
            with locked(self._lock_path(service, "write")):
                self._vault.remove(service)

    def refresh_lock_path(self, service: str) -> Path:
        """Return the lock to hold during a refresh of ``service``."""
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
    """Open the keychain, or else the folder; ``None`` without either."""
    vault: Vault
    if keychain == "auto":
        keychain = find_keychain()
    if keychain is not None:
        vault = KeychainVault(keychain, store_name)
    elif folder is not None:
        # Imported on use: a keychain does not need cryptography.
        from lilux.runtime.auth.encrypted_folder import FolderVault

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
            f"the data stored for {service!r} is not a token",
            hint=f"clear it with clear_token({service!r}) and authenticate again",
        )
    return record
