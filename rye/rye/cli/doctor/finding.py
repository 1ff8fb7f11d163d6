"""One line of a diagnosis."""

from __future__ import annotations

from typing import Literal, NamedTuple

State = Literal["ok", "warning", "problem"]


class Finding(NamedTuple):
    """What was looked at, and how it is."""

    state: State
    subject: str
    message: str
    hint: str = ""
    """What to do; empty if there is nothing to do, or the message ends in it."""


def ok(subject: str, message: str) -> Finding:
    """All is well."""
    return Finding("ok", subject, message)


def warning(subject: str, message: str, hint: str = "") -> Finding:
    """Something will not work, but nothing that is used."""
    return Finding("warning", subject, message, hint)


def problem(subject: str, message: str, hint: str = "") -> Finding:
    """Something does not work."""
    return Finding("problem", subject, message, hint)
