"""A vault in the system's keychain, through ``keyring``."""

import importlib
from typing import Any, Protocol, cast

from lilux.primitives.errors import ConfigurationError


class Keychain(Protocol):
    """The methods of a ``keyring`` backend that are used."""

    def get_password(self, service: str, username: str, /) -> str | None: ...

    def set_password(self, service: str, username: str, password: str, /) -> None: ...

    def delete_password(self, service: str, username: str, /) -> None: ...


def find_keychain() -> Keychain | None:
    """Return the system's keychain, or ``None`` without ``keyring`` or a recommended backend."""
    try:
        keyring = importlib.import_module("keyring")
    except ImportError:
        return None
    try:
        backend = keyring.get_keyring()
    except Exception:  # noqa: BLE001 - a misconfigured backend can raise anything
        return None
    return cast("Keychain", backend) if is_recommended(backend) else None


def is_recommended(backend: Any) -> bool:
    """Return true if ``keyring`` recommends ``backend``.

    Backends below priority 1 always fail, store nothing, or write plain text.
    """
    try:
        return bool(backend.priority >= 1)
    except Exception:  # noqa: BLE001 - a backend that cannot work here raises from its priority
        return False


class KeychainVault:
    """Stores secrets in a keychain, under the names of the store and the service."""

    def __init__(self, keychain: Keychain, store_name: str) -> None:
        self._keychain = keychain
        self._store_name = store_name

    @property
    def identity(self) -> object:
        return (id(self._keychain), self._store_name)

    def contains(self, service: str) -> bool:
        return self.read(service) is not None

    def read(self, service: str) -> bytes | None:
        try:
            secret = self._keychain.get_password(self._store_name, service)
        except Exception as error:  # noqa: BLE001 - each backend raises different errors
            raise self._refused("read", service, error) from None
        return None if secret is None else secret.encode()

    def write(self, service: str, secret: bytes) -> None:
        try:
            self._keychain.set_password(self._store_name, service, secret.decode())
        except Exception as error:  # noqa: BLE001 - each backend raises different errors
            raise self._refused("store", service, error) from None

    def remove(self, service: str) -> None:
        if not self.contains(service):
            return
        try:
            self._keychain.delete_password(self._store_name, service)
        except Exception as error:  # noqa: BLE001 - each backend raises different errors
            raise self._refused("remove", service, error) from None

    @staticmethod
    def _refused(verb: str, service: str, error: Exception) -> ConfigurationError:
        return ConfigurationError(
            f"the keychain did not {verb} the token of {service!r} ({type(error).__name__})",
            hint="unlock it, or pass keychain=None and a storage_dir to AuthStore",
        )
