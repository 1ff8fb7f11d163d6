"""Text that Rye did not write, made harmless for whoever shows it."""

from __future__ import annotations

import re

# Characters that move the cursor, change colours or reorder text. Tabs and newlines are allowed.
_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def escaped(text: str) -> str:
    """Return the text with escapes in place of characters that control a terminal or a page."""
    return _UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], text)
