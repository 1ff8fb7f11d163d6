"""The only module that uses the cryptography library for signatures: PEM keys, raw signatures.

The library takes milliseconds to import, so this module is imported on use.
"""

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)


def generate() -> tuple[bytes, bytes]:
    """Generate a pair: PKCS8 PEM without encryption, and SubjectPublicKeyInfo PEM."""
    key = Ed25519PrivateKey.generate()
    private_pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private_pem, _public_pem(key.public_key())


def derive_public(private_pem: bytes) -> bytes:
    """Return the PEM of the public key; raises ``ValueError`` as :func:`sign` does."""
    return _public_pem(_parse_private(private_pem).public_key())


def sign(message: bytes, private_pem: bytes) -> bytes:
    """Sign ``message``; raises ``ValueError`` if the PEM is not an Ed25519 private key."""
    return _parse_private(private_pem).sign(message)


def verify(message: bytes, signature: bytes, public_pem: bytes) -> bool:
    """Return true if the signature is valid; raises ``ValueError`` for a PEM of another kind."""
    try:
        _parse_public(public_pem).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def is_pair(private_pem: bytes, public_pem: bytes) -> bool:
    """Return true if the keys are a pair; raises ``ValueError`` for a PEM of another kind."""
    derived = _parse_private(private_pem).public_key()
    return derived.public_bytes_raw() == _parse_public(public_pem).public_bytes_raw()


def _public_pem(key: Ed25519PublicKey) -> bytes:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def _parse_private(pem: bytes) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(pem, password=None)
    except (TypeError, ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(
            "not the PKCS8 PEM of an Ed25519 private key without a password; "
            "generate one with generate_keypair()"
        )
    return key


def _parse_public(pem: bytes) -> Ed25519PublicKey:
    try:
        key = load_pem_public_key(pem)
    except (TypeError, ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError(
            "not the PEM of an Ed25519 public key; generate a pair with generate_keypair()"
        )
    return key
