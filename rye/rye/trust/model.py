"""What the third station hands on."""

from __future__ import annotations

from enum import Enum

from lilux.record import Record


class Standing(Enum):
    """The five things that can be said of an item."""

    TRUSTED = "trusted"
    UNSIGNED = "unsigned"
    CHANGED = "changed"
    FORGED = "forged"
    UNTRUSTED = "untrusted"


class Verdict(Record, frozen=True, kw_only=True):
    """What the bytes of an item, its signature line and the trust store say together."""

    standing: Standing
    content_hash: str
    """SHA-256 of the content without the signature line, whatever the standing."""
    fingerprint: str = ""
    """The key that the signature line names."""
    signed_at: str = ""
    """The timestamp of the signature line."""

    @property
    def trusted(self) -> bool:
        """Whether the item may run."""
        return self.standing is Standing.TRUSTED
