"""What a key is known by: its fingerprint, and the names of the files of a pair."""

from __future__ import annotations

from lilux.sha256 import sha256

PRIVATE_KEY_FILE = "private_key.pem"
PUBLIC_KEY_FILE = "public_key.pem"


def compute_key_fingerprint(public_key_pem: bytes | str) -> str:
    """Give the first 16 hex digits of the SHA256 of the PEM, byte for byte."""
    return sha256(as_bytes(public_key_pem)).hexdigest()[:16]


def as_bytes(pem: bytes | str) -> bytes:
    """A PEM as its bytes."""
    # A lone surrogate makes no key, which the parser of keys tells better than the codec.
    return pem.encode(errors="surrogatepass") if isinstance(pem, str) else pem
