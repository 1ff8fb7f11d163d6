"""Ed25519 keys and signatures. No policy, and no I/O beyond the two files of a key pair.

::

    {key_dir}/               mode 0700
        private_key.pem      mode 0600, PKCS8 without encryption
        public_key.pem       mode 0644, SubjectPublicKeyInfo
"""

from __future__ import annotations

import base64
import os
from pathlib import Path

from lilux.patterns import pattern
from lilux.primitives.errors import KeyFileError
from lilux.primitives.signing import key_files
from lilux.primitives.signing.identity import (
    PRIVATE_KEY_FILE,
    PUBLIC_KEY_FILE,
    as_bytes,
    compute_key_fingerprint,
)

__all__ = [
    "PRIVATE_KEY_FILE",
    "PUBLIC_KEY_FILE",
    "compute_key_fingerprint",
    "ensure_keypair",
    "generate_keypair",
    "load_keypair",
    "save_keypair",
    "sign_hash",
    "verify_signature",
]

_SHA256_HEX = pattern(r"[0-9a-fA-F]{64}")
_SIGNATURE = pattern(r"([A-Za-z0-9_-]{86})(?:==)?")  # 64 bytes in base64url
_DERIVE_IT = "remove it, and ensure_keypair() derives it from the private key"


def generate_keypair() -> tuple[bytes, bytes]:
    """Make a new key pair: ``(private_pem, public_pem)``."""
    from lilux.primitives.signing import ed25519

    return ed25519.generate()


def sign_hash(content_hash: str, private_key_pem: bytes | str) -> str:
    """Sign the ASCII text of a SHA256 hex digest; gives the signature in padded base64url.

    Raises ``ValueError`` for a hash that is not 64 hex digits or a key that is not Ed25519.
    """
    from lilux.primitives.signing import ed25519

    if not _SHA256_HEX.fullmatch(content_hash):
        raise ValueError("content_hash is not a SHA256 hex digest; pass its 64 hex digits")
    signature = ed25519.sign(content_hash.encode("ascii"), as_bytes(private_key_pem))
    return base64.urlsafe_b64encode(signature).decode("ascii")


def verify_signature(content_hash: str, sig_b64: str, public_key_pem: bytes | str) -> bool:
    """Tell whether ``sig_b64`` (padded or not) is the key's signature of ``content_hash``.

    Whatever is malformed, be it hash, signature or key, gives ``False``; nothing is raised.
    """
    from lilux.primitives.signing import ed25519

    if not isinstance(content_hash, str) or not _SHA256_HEX.fullmatch(content_hash):
        return False
    signature = _decode_signature(sig_b64)
    if signature is None:
        return False
    try:
        return ed25519.verify(content_hash.encode("ascii"), signature, as_bytes(public_key_pem))
    except ValueError:
        return False


def save_keypair(
    private_pem: bytes | str, public_pem: bytes | str, key_dir: str | os.PathLike[str]
) -> None:
    """Write a pair into ``key_dir``, which is created if need be and set to mode 0700.

    An existing pair is replaced. Raises ``ValueError`` if the two keys are not an Ed25519 pair,
    and :class:`KeyFileError` if the files cannot be written.
    """
    from lilux.primitives.signing import ed25519

    private_pem, public_pem = as_bytes(private_pem), as_bytes(public_pem)
    if not ed25519.is_pair(private_pem, public_pem):
        raise ValueError("public_pem does not belong to private_pem; pass both keys of one pair")
    folder = Path(key_dir)
    key_files.prepare_folder(folder)
    with key_files.locked(folder, exclusive=True):
        # Should this break off in the middle, what is left is a private key alone, whose public
        # half ensure_keypair can derive, and never two halves of different pairs.
        key_files.remove(folder / PUBLIC_KEY_FILE)
        key_files.write(folder / PRIVATE_KEY_FILE, private_pem, mode=0o600)
        key_files.write(folder / PUBLIC_KEY_FILE, public_pem, mode=0o644)


def load_keypair(key_dir: str | os.PathLike[str]) -> tuple[bytes, bytes]:
    """Read ``(private_pem, public_pem)`` from ``key_dir``.

    Raises :class:`KeyFileError` if a file is missing, unreadable or not an Ed25519 key, if the
    private key is open to group or others, or if the two do not belong together.
    """
    folder = Path(key_dir)
    with key_files.locked(folder, exclusive=False):
        return _read_pair(folder)


def ensure_keypair(key_dir: str | os.PathLike[str]) -> tuple[bytes, bytes]:
    """Load the pair in ``key_dir``, or make and save one if there is none.

    Callers that come at the same time, in whatever process, get the same pair. A public key that
    is missing is derived from the private one; a private key that is missing beside a public one
    is a :class:`KeyFileError`, as is everything that :func:`load_keypair` refuses.
    """
    folder = Path(key_dir)
    key_files.prepare_folder(folder)
    with key_files.locked(folder, exclusive=True):
        _complete_pair(folder / PRIVATE_KEY_FILE, folder / PUBLIC_KEY_FILE)
        return _read_pair(folder)


def _complete_pair(private_path: Path, public_path: Path) -> None:
    from lilux.primitives.signing import ed25519

    private_pem = key_files.read(private_path, private=True)
    public_pem = key_files.read(public_path, private=False)
    if private_pem is None and public_pem is None:
        private_pem, public_pem = ed25519.generate()
        key_files.write(private_path, private_pem, mode=0o600)
        key_files.write(public_path, public_pem, mode=0o644)
    elif private_pem is None:
        raise KeyFileError(
            f"{public_path} has no {PRIVATE_KEY_FILE} beside it; "
            "restore the private key, or remove the public key to start with a new pair"
        )
    elif public_pem is None:
        key_files.write(public_path, _derive_public(private_path, private_pem), mode=0o644)


def _read_pair(folder: Path) -> tuple[bytes, bytes]:
    from lilux.primitives.signing import ed25519

    private_path, public_path = folder / PRIVATE_KEY_FILE, folder / PUBLIC_KEY_FILE
    private_pem = key_files.read(private_path, private=True)
    if private_pem is None:
        raise KeyFileError(f"no private key at {private_path}; ensure_keypair() creates a pair")
    public_pem = key_files.read(public_path, private=False)
    if public_pem is None:
        raise KeyFileError(
            f"no public key at {public_path}; ensure_keypair() derives it from the private key"
        )
    _derive_public(private_path, private_pem)
    try:
        belongs = ed25519.is_pair(private_pem, public_pem)
    except ValueError:
        raise KeyFileError(
            f"{public_path} is not the PEM of an Ed25519 public key; {_DERIVE_IT}"
        ) from None
    if not belongs:
        raise KeyFileError(f"{public_path} does not belong to {private_path}; {_DERIVE_IT}")
    return private_pem, public_pem


def _derive_public(path: Path, private_pem: bytes) -> bytes:
    from lilux.primitives.signing import ed25519

    try:
        return ed25519.derive_public(private_pem)
    except ValueError:
        raise KeyFileError(
            f"{path} is not the PKCS8 PEM of an Ed25519 private key without a password; "
            "restore it from a backup, or remove both key files to start with a new pair"
        ) from None


def _decode_signature(text: str) -> bytes | None:
    match = _SIGNATURE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    padded = match[1] + "=="
    signature = base64.urlsafe_b64decode(padded)
    # The last character has four idle bits; only one spelling of a signature counts.
    return signature if base64.urlsafe_b64encode(signature).decode("ascii") == padded else None
