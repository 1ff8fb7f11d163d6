"""The two files of a key pair.

::

    {key_dir}/               mode 0700
        private_key.pem      mode 0600, PKCS8 without encryption
        public_key.pem       mode 0644, SubjectPublicKeyInfo
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lilux.files.atomic import atomic_write
from lilux.files.private import make_private_folder, read_own_file
from lilux.primitives.errors import KeyFileError
from lilux.primitives.signing.identity import PRIVATE_KEY_FILE, PUBLIC_KEY_FILE, as_bytes

_MAX_KEY_BYTES = 16 * 1024  # an Ed25519 PEM has about a hundred
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_DERIVE_IT = "remove it, and ensure_keypair() derives it from the private key"


def save_keypair(
    private_pem: bytes | str, public_pem: bytes | str, key_dir: str | os.PathLike[str]
) -> None:
    """Write a pair to ``key_dir``, which is created if necessary and set to mode 0700.

    An existing pair is replaced. Raises ``ValueError`` if the two keys are not an Ed25519 pair,
    and :class:`KeyFileError` if the files cannot be written.
    """
    from lilux.primitives.signing import ed25519

    private_pem, public_pem = as_bytes(private_pem), as_bytes(public_pem)
    if not ed25519.is_pair(private_pem, public_pem):
        raise ValueError("public_pem does not belong to private_pem; pass both keys of one pair")
    folder = Path(key_dir)
    _prepare_folder(folder)
    with _locked(folder, exclusive=True):
        # If this is interrupted, a private key may remain alone, from which ensure_keypair
        # derives the public one, but never two halves of different pairs.
        _remove(folder / PUBLIC_KEY_FILE)
        _write(folder / PRIVATE_KEY_FILE, private_pem, mode=0o600)
        _write(folder / PUBLIC_KEY_FILE, public_pem, mode=0o644)


def load_keypair(key_dir: str | os.PathLike[str]) -> tuple[bytes, bytes]:
    """Read ``(private_pem, public_pem)`` from ``key_dir``.

    Raises :class:`KeyFileError` if a file is missing, unreadable or not an Ed25519 key, if group
    or others can access the private key, or if the two are not a pair.
    """
    folder = Path(key_dir)
    with _locked(folder, exclusive=False):
        return _read_pair(folder)


def ensure_keypair(key_dir: str | os.PathLike[str]) -> tuple[bytes, bytes]:
    """Load the pair in ``key_dir``, or generate and save one if there is none.

    Concurrent callers, in this process or another, get the same pair. A missing public key is
    derived from the private one. Raises :class:`KeyFileError` if only the private key is missing,
    and as :func:`load_keypair` does.
    """
    folder = Path(key_dir)
    _prepare_folder(folder)
    with _locked(folder, exclusive=True):
        _complete_pair(folder / PRIVATE_KEY_FILE, folder / PUBLIC_KEY_FILE)
        return _read_pair(folder)


def _complete_pair(private_path: Path, public_path: Path) -> None:
    from lilux.primitives.signing import ed25519

    private_pem = _read(private_path, private=True)
    public_pem = _read(public_path, private=False)
    if private_pem is None and public_pem is None:
        private_pem, public_pem = ed25519.generate()
        _write(private_path, private_pem, mode=0o600)
        _write(public_path, public_pem, mode=0o644)
    elif private_pem is None:
        raise KeyFileError(
            f"{public_path} has no {PRIVATE_KEY_FILE} next to it",
            hint="restore the private key, or remove the public key to start with a new pair",
        )
    elif public_pem is None:
        _write(public_path, _derive_public(private_path, private_pem), mode=0o644)


def _read_pair(folder: Path) -> tuple[bytes, bytes]:
    from lilux.primitives.signing import ed25519

    private_path, public_path = folder / PRIVATE_KEY_FILE, folder / PUBLIC_KEY_FILE
    private_pem = _read(private_path, private=True)
    if private_pem is None:
        raise KeyFileError(
            f"no private key at {private_path}", hint="ensure_keypair() creates a pair"
        )
    public_pem = _read(public_path, private=False)
    if public_pem is None:
        raise KeyFileError(
            f"no public key at {public_path}",
            hint="ensure_keypair() derives it from the private key",
        )
    _derive_public(private_path, private_pem)
    try:
        belongs = ed25519.is_pair(private_pem, public_pem)
    except ValueError:
        raise KeyFileError(
            f"{public_path} is not the PEM of an Ed25519 public key", hint=_DERIVE_IT
        ) from None
    if not belongs:
        raise KeyFileError(f"{public_path} does not belong to {private_path}", hint=_DERIVE_IT)
    return private_pem, public_pem


def _derive_public(path: Path, private_pem: bytes) -> bytes:
    from lilux.primitives.signing import ed25519

    try:
        return ed25519.derive_public(private_pem)
    except ValueError:
        raise KeyFileError(
            f"{path} is not the PKCS8 PEM of an Ed25519 private key without a password",
            hint="restore it from a backup, or remove both key files to start with a new pair",
        ) from None


def _prepare_folder(folder: Path) -> None:
    """Create ``folder`` if it does not exist, and make it private to its owner.

    Raises :class:`KeyFileError`, also if other users could have written to it.
    """
    try:
        make_private_folder(folder)
    except OSError as error:
        raise _cannot("prepare", folder, error) from error


@contextmanager
def _locked(folder: Path, *, exclusive: bool) -> Iterator[None]:
    """Lock ``folder`` against other processes, or only against writers if not ``exclusive``.

    For a missing folder the body runs without a lock, and finds no files.
    """
    try:
        fd = os.open(folder, _OPEN_FOLDER)
    except FileNotFoundError:
        yield
        return
    except OSError as error:
        raise _cannot("open", folder, error) from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        except OSError as error:
            raise _cannot("lock", folder, error) from error
        yield
    finally:
        os.close(fd)


def _write(path: Path, data: bytes, *, mode: int) -> None:
    """Write a key file atomically, with ``mode`` from its first byte on."""
    try:
        atomic_write(path, data, mode=mode)
    except OSError as error:
        raise _cannot("write", path, error) from error


def _remove(path: Path) -> None:
    """Remove a key file if it exists."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise _cannot("remove", path, error) from error


def _read(path: Path, *, private: bool) -> bytes | None:
    """Return the bytes of a key file, or ``None`` if there is none.

    Raises :class:`KeyFileError`, for a private key also if group or others can access the opened
    file.
    """
    name = f"{'private' if private else 'public'} key {path}"
    remedy = "replace it with the key file"
    return read_own_file(path, limit=_MAX_KEY_BYTES, remedy=remedy, name=name, secret=private)


def _cannot(action: str, path: Path, error: OSError) -> KeyFileError:
    return KeyFileError(
        f"cannot {action} {path}: {error.strerror}",
        hint="use a key folder that you own and can write to",
    )
