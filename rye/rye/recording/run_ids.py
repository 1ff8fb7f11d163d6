"""The ids of runs: 20 characters, in the order of time."""

from __future__ import annotations

import os

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
"""Without i, l, o and u, which are easily misread. In the order of ASCII."""
_TO_PYTHON = str.maketrans(_DIGITS, "0123456789abcdefghijklmnopqrstuv")
"""To the digits that ``int`` reads."""
_PAIRS = [high + low for high in _DIGITS for low in _DIGITS]
LENGTH = 20
_TIME_DIGITS = 10


def new_run_id(milliseconds: int) -> str:
    """Return an id for a run that starts now: the time, then 50 random bits.

    The random bits keep ids apart also if the clock goes back.
    """
    random = int.from_bytes(os.urandom(7), "big") >> 6
    return _ten_digits(milliseconds) + _ten_digits(random)


def first_run_id(milliseconds: int) -> str:
    """Return the beginning of the ids of that time: the ids of all later runs are greater."""
    return _ten_digits(max(milliseconds, 0))


def _ten_digits(number: int) -> str:
    return (
        _PAIRS[number >> 40 & 1023]
        + _PAIRS[number >> 30 & 1023]
        + _PAIRS[number >> 20 & 1023]
        + _PAIRS[number >> 10 & 1023]
        + _PAIRS[number & 1023]
    )


def milliseconds_of(run_id: str) -> int:
    """Return the time in an id, in milliseconds since 1970."""
    return int(run_id[:_TIME_DIGITS].translate(_TO_PYTHON), 32)


def is_run_id(text: str) -> bool:
    """True if the text has the form of an id."""
    return len(text) == LENGTH and all(digit in _DIGITS for digit in text)
