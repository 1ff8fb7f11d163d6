"""A vault in a folder: each secret in one encrypted file."""

import os
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from lilux.files.atomic import atomic_write
from lilux.primitives.errors import AuthError, ConfigurationError, KeyFileError
from lilux.runtime.auth.files import (
    joined_names,
    name_digest,
    prepare_folder,
    read_token_file,
)

_KEY_BYTES = 32
_NONCE_BYTES = 12
_FORMAT = b"lilux-token-1\n"
_MAX_FILE_BYTES = 1024 * 1024


class FolderVault:
    """Stores each secret in one file, encrypted with the folder's random key.

    A file is bound to its store and service: a changed or swapped file is refused.
    """

    def __init__(self, folder: Path, store_name: str) -> None:
        self._folder = folder
        self._store_name = store_name
        self._key_path = folder / "key"

    @property
    def identity(self) -> object:
        return (os.path.realpath(self._folder), self._store_name)

    def contains(self, service: str) -> bool:
        return os.path.lexists(self._path(service))

    def read(self, service: str) -> bytes | None:
        path = self._path(service)
        sealed = read_token_file(path, limit=_MAX_FILE_BYTES)
        if sealed is None:
            return None
        key = self._read_key()
        hint = f"clear it with clear_token({service!r}) and authenticate again"
        if key is None:
            raise AuthError(
                f"the token of {service!r} cannot be read: {self._key_path} is missing", hint=hint
            )
        body = sealed.removeprefix(_FORMAT)
        try:
            if len(body) != len(sealed) - len(_FORMAT):
                raise InvalidTag
            nonce, ciphertext = body[:_NONCE_BYTES], body[_NONCE_BYTES:]
            return AESGCM(key).decrypt(nonce, ciphertext, self._bound_to(service))
        except (InvalidTag, ValueError):
            raise AuthError(
                f"the token of {service!r} in {path} was changed, belongs to another service"
                " or was written with another key",
                hint=hint,
            ) from None

    def write(self, service: str, secret: bytes) -> None:
        prepare_folder(self._folder)
        key = self._read_or_make_key()
        nonce = os.urandom(_NONCE_BYTES)
        ciphertext = AESGCM(key).encrypt(nonce, secret, self._bound_to(service))
        path = self._path(service)
        try:
            atomic_write(path, _FORMAT + nonce + ciphertext, mode=0o600)
        except OSError as error:
            raise self._unwritable(path, error) from None

    def remove(self, service: str) -> None:
        path = self._path(service)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise self._unwritable(path, error) from None

    def _path(self, service: str) -> Path:
        # A digest is never a path or too long, and does not show the name in a listing.
        return self._folder / f"{name_digest(self._store_name, service)}.token"

    def _bound_to(self, service: str) -> bytes:
        return _FORMAT + joined_names(self._store_name, service)

    def _read_key(self) -> bytes | None:
        key = read_token_file(self._key_path, limit=_KEY_BYTES)
        if key is not None and len(key) != _KEY_BYTES:
            raise KeyFileError(
                f"{self._key_path} is not a key of {_KEY_BYTES} bytes",
                hint="restore it, or remove it and authenticate again",
            )
        return key

    def _read_or_make_key(self) -> bytes:
        while True:
            key = self._read_key()
            if key is not None:
                return key
            key = os.urandom(_KEY_BYTES)
            try:
                atomic_write(self._key_path, key, mode=0o600, create_only=True)
            except FileExistsError:
                # Another process created one at the same time, and may already have used it.
                continue
            except OSError as error:
                raise self._unwritable(self._key_path, error) from None
            return key

    @staticmethod
    def _unwritable(path: Path, error: OSError) -> ConfigurationError:
        reason = (error.strerror or type(error).__name__).lower()
        return ConfigurationError(
            f"cannot write {path} ({reason})", hint="pass a storage_dir that you can write to"
        )
