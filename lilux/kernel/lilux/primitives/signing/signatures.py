"""Ed25519 key pairs and signatures of SHA256 digests, as text. Without I/O."""

from __future__ import annotations

import base64
import re

from lilux.primitives.signing.identity import as_bytes

_SHA256_HEX = r"[0-9a-fA-F]{64}"
_SIGNATURE = r"([A-Za-z0-9_-]{86})(?:==)?"  # 64 bytes in base64url


def generate_keypair() -> tuple[bytes, bytes]:
    """Generate a new key pair: ``(private_pem, public_pem)``."""
    from lilux.primitives.signing import ed25519

    return ed25519.generate()


def sign_hash(content_hash: str, private_key_pem: bytes | str) -> str:
    """Sign the ASCII text of a SHA256 hex digest; returns the signature in padded base64url.

    Raises ``ValueError`` for a hash that is not 64 hex digits or a key that is not Ed25519.
    """
    from lilux.primitives.signing import ed25519

    if not re.fullmatch(_SHA256_HEX, content_hash):
        raise ValueError("content_hash is not a SHA256 hex digest; pass its 64 hex digits")
    signature = ed25519.sign(content_hash.encode("ascii"), as_bytes(private_key_pem))
    return base64.urlsafe_b64encode(signature).decode("ascii")


def verify_signature(content_hash: str, sig_b64: str, public_key_pem: bytes | str) -> bool:
    """Return true if ``sig_b64`` (padded or not) is the key's signature of ``content_hash``.

    A malformed hash, signature or key gives ``False``; nothing is raised.
    """
    from lilux.primitives.signing import ed25519

    if not isinstance(content_hash, str) or not re.fullmatch(_SHA256_HEX, content_hash):
        return False
    signature = _decode_signature(sig_b64)
    if signature is None:
        return False
    try:
        return ed25519.verify(content_hash.encode("ascii"), signature, as_bytes(public_key_pem))
    except ValueError:
        return False


def _decode_signature(text: str) -> bytes | None:
    match = re.fullmatch(_SIGNATURE, text) if isinstance(text, str) else None
    if match is None:
        return None
    padded = match[1] + "=="
    signature = base64.urlsafe_b64decode(padded)
    # The last character has four unused bits; only one spelling of a signature is valid.
    return signature if base64.urlsafe_b64encode(signature).decode("ascii") == padded else None
