"""Assertions about messages, word for word."""

from __future__ import annotations

import re


def exactly(message: str) -> str:
    """Return a pattern for ``pytest.raises(match=…)`` that matches the whole message only."""
    return f"^{re.escape(message)}$"
