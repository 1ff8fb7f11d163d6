"""The fingerprint of a key, and the names of the two files of a pair."""

from __future__ import annotations

from lilux.sha256 import sha256

PRIVATE_KEY_FILE = "private_key.pem"
PUBLIC_KEY_FILE = "public_key.pem"


def compute_key_fingerprint(public_key_pem: bytes | str) -> str:
    """Return the first 16 hex digits of the SHA256 of the PEM, byte for byte."""
    return sha256(as_bytes(public_key_pem)).hexdigest()[:16]


def as_bytes(pem: bytes | str) -> bytes:
    """Return a PEM as bytes."""
    # A lone surrogate is left to the key parser, whose error names the key.
    return pem.encode(errors="surrogatepass") if isinstance(pem, str) else pem
