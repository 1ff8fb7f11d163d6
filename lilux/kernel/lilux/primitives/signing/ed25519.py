"""The only module that uses the cryptography library for signatures: PEM keys, raw signatures.

The library takes milliseconds to import, so this module is imported on use.
"""

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

_PRIME = 2**255 - 19


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
    """Return true if the signature is valid; raises ``ValueError`` for a PEM of another kind.

    No signature is valid for a key for which anyone could have made it.
    """
    key = _parse_public(public_pem)
    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return not _has_small_order(key)


def is_pair(private_pem: bytes, public_pem: bytes) -> bool:
    """Return true if the keys are a pair; raises ``ValueError`` for a PEM of another kind."""
    derived = _parse_private(private_pem).public_key()
    return derived.public_bytes_raw() == _parse_public(public_pem).public_bytes_raw()


def has_small_order(public_pem: bytes) -> bool:
    """Return true if anyone can sign for the key; raises ``ValueError`` as :func:`verify` does.

    The curve has eight points of small order. X25519 refuses exactly these, because each private
    key gives the same empty secret for them. So the point is mapped to its counterpart on that
    curve, u = (1 + y) / (1 - y), and used once.
    """
    return _has_small_order(_parse_public(public_pem))


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


def _has_small_order(key: Ed25519PublicKey) -> bool:
    y = int.from_bytes(key.public_bytes_raw(), "little") & (2**255 - 1)
    u = (1 + y) * pow(1 - y, -1, _PRIME) % _PRIME if (1 - y) % _PRIME else 0
    peer = X25519PublicKey.from_public_bytes(u.to_bytes(32, "little"))
    try:
        X25519PrivateKey.from_private_bytes(b"\1" * 32).exchange(peer)
    except ValueError:
        return True
    return False
