"""Ed25519 keys and signatures."""

from lilux.exports import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lilux.primitives.signing.identity import (
        PRIVATE_KEY_FILE,
        PUBLIC_KEY_FILE,
        compute_key_fingerprint,
    )
    from lilux.primitives.signing.key_files import ensure_keypair, load_keypair, save_keypair
    from lilux.primitives.signing.signatures import (
        generate_keypair,
        sign_hash,
        verify_signature,
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

__getattr__ = lazy_exports(
    __name__,
    {
        "PRIVATE_KEY_FILE": "lilux.primitives.signing.identity",
        "PUBLIC_KEY_FILE": "lilux.primitives.signing.identity",
        "compute_key_fingerprint": "lilux.primitives.signing.identity",
        "ensure_keypair": "lilux.primitives.signing.key_files",
        "generate_keypair": "lilux.primitives.signing.signatures",
        "load_keypair": "lilux.primitives.signing.key_files",
        "save_keypair": "lilux.primitives.signing.key_files",
        "sign_hash": "lilux.primitives.signing.signatures",
        "verify_signature": "lilux.primitives.signing.signatures",
    },
)
