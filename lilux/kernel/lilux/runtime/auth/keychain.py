"""Secrets in the keychain of the system, through ``keyring``."""

import importlib
from typing import Any, Protocol, cast

from lilux.primitives.errors import ConfigurationError


class Keychain(Protocol):
    """The part of a ``keyring`` backend that is used."""

    def get_password(self, service: str, username: str, /) -> str | None: ...

    def set_password(self, service: str, username: str, password: str, /) -> None: ...

    def delete_password(self, service: str, username: str, /) -> None: ...


def find_keychain() -> Keychain | None:
    """The keychain of this system, or ``None`` without ``keyring`` or a backend to recommend."""
    try:
        keyring = importlib.import_module("keyring")
    except ImportError:
        return None
    try:
        backend = keyring.get_keyring()
    except Exception:  # noqa: BLE001 - a backend named in a broken set-up can raise anything
        return None
    return cast("Keychain", backend) if is_recommended(backend) else None


def is_recommended(backend: Any) -> bool:
    """Whether ``keyring`` itself recommends ``backend``.

    Below priority 1 are those that fail, that forget, and that write plain text.
    """
    try:
        return bool(backend.priority >= 1)
    except Exception:  # noqa: BLE001 - a backend that cannot work here raises from its priority
        return False


class KeychainVault:
    """Secrets in a keychain, under the store's name and the service's."""

    def __init__(self, keychain: Keychain, store_name: str) -> None:
        self._keychain = keychain
        self._store_name = store_name

    @property
    def identity(self) -> object:
        return (id(self._keychain), self._store_name)

    def holds(self, service: str) -> bool:
        return self.read(service) is not None

    def read(self, service: str) -> bytes | None:
        try:
            secret = self._keychain.get_password(self._store_name, service)
        except Exception as error:  # noqa: BLE001 - each backend has errors of its own
            raise self._refused("read", service, error) from None
        return None if secret is None else secret.encode()

    def write(self, service: str, secret: bytes) -> None:
        try:
            self._keychain.set_password(self._store_name, service, secret.decode())
        except Exception as error:  # noqa: BLE001 - each backend has errors of its own
            raise self._refused("store", service, error) from None

    def remove(self, service: str) -> None:
        if not self.holds(service):
            return
        try:
            self._keychain.delete_password(self._store_name, service)
        except Exception as error:  # noqa: BLE001 - each backend has errors of its own
            raise self._refused("remove", service, error) from None

    @staticmethod
    def _refused(verb: str, service: str, error: Exception) -> ConfigurationError:
        return ConfigurationError(
            f"the keychain did not {verb} the token of {service!r} ({type(error).__name__})"
            ": unlock it, or pass keychain=None and a storage_dir to AuthStore"
        )
