"""The DSSE envelope of a receipt: a statement, signed with Ed25519. No I/O, no trust.

An envelope has exactly one spelling: canonical JSON on one line. A file in which a single bit was
changed is therefore never valid, wherever that bit is.
"""

from __future__ import annotations

import base64
import json
from typing import Any, NamedTuple

from lilux.primitives.errors import IntegrityError
from lilux.primitives.integrity import canonical_json
from lilux.primitives.signing import ed25519
from lilux.sha256 import sha256

from rye.errors import ReceiptError
from rye.history.statement import predicate_of
from rye.trust.signer import Signer

PAYLOAD_TYPE = "application/vnd.in-toto+json"
MAX_BYTES = 1024 * 1024
USE_AS_PRINTED = "use the line that `rye receipt` printed, as it is"
_CHANGED = "the receipt was changed"


class Envelope(NamedTuple):
    """A receipt whose signature is not verified yet."""

    line: str
    statement: dict[str, Any]
    predicate: dict[str, Any]
    fingerprint: str
    """Of the key that the receipt names."""
    payload: bytes
    signature: bytes

    @property
    def digest(self) -> str:
        """What the next entry of the log names."""
        return digest_of(self.line)

    def is_signed_by(self, public_key: bytes) -> bool:
        """True if this key made the signature. Raises ``ValueError`` for a key of another kind."""
        return ed25519.verify(_signed_bytes(self.payload), self.signature, public_key)


def sealed(statement: dict[str, Any], signer: Signer) -> str:
    """Return the statement in a signed envelope, as one line."""
    payload = canonical_json(statement).encode("ascii")
    signature = ed25519.sign(_signed_bytes(payload), signer.private_key)
    return canonical_json(
        {
            "payload": _encoded(payload),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"keyid": signer.fingerprint, "sig": _encoded(signature)}],
        }
    )


def opened(line: str) -> Envelope:
    """Parse an envelope. Raises :class:`ReceiptError` if it is not one, or is spelled otherwise."""
    try:
        values = json.loads(line)
        payload = base64.b64decode(values["payload"], validate=True)
        statement = json.loads(payload)
        ((entry),) = values["signatures"]
        fingerprint, signature = entry["keyid"], base64.b64decode(entry["sig"], validate=True)
        if values["payloadType"] != PAYLOAD_TYPE or not isinstance(fingerprint, str):
            raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ReceiptError(
            "this is not a receipt, or it was changed", hint=USE_AS_PRINTED
        ) from None
    again = {
        "payload": _encoded(payload),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"keyid": fingerprint, "sig": _encoded(signature)}],
    }
    try:
        same = canonical_json(again) == line
        same = same and canonical_json(statement).encode("ascii") == payload
    except IntegrityError:
        same = False
    if not same:
        raise ReceiptError(_CHANGED, hint=USE_AS_PRINTED)
    return Envelope(line, statement, predicate_of(statement), fingerprint, payload, signature)


def digest_of(line: str) -> str:
    """Return the digest of an envelope."""
    return sha256(line.encode("ascii")).hexdigest()


def _signed_bytes(payload: bytes) -> bytes:
    """The pre-authentication encoding of DSSE: lengths before contents, so nothing can shift."""
    kind = PAYLOAD_TYPE.encode("ascii")
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
