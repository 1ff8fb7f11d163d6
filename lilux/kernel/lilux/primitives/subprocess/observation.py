"""What a job tried, whether or not it was allowed.

``observe: true`` in a config lets ``lilux-proc`` note which files a job opens, changes and
executes, and where it connects to. Each such call waits for the helper, so an observed job is
slower. A job can change a path in its memory after it was noted: this is a log, and nothing is
decided by it.
"""

from __future__ import annotations

from lilux.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Access(Record, frozen=True):
    """Something that a job tried."""

    what: str
    """``read``, ``write``, ``create``, ``remove``, ``change`` (mode, owner, times), ``execute``,
    ``socket`` (one is created), ``connect`` and ``bind`` (internet), or ``unix``."""
    target: str
    """A real path, an address with its port, or a family of sockets; ``@name`` is an abstract unix
    socket."""
    exists: bool
    """The path existed before."""
    count: int
    program: str
    """The program that tried it first."""


class Observation(Record, frozen=True):
    """What a job tried, in the order of the first attempts."""

    accesses: tuple[Access, ...]
    omitted: int
    """Attempts that are not listed, because the list is full."""
    unreadable: int
    """Attempts of processes whose memory the helper may not read."""
    missing: str | None
    """Why this machine cannot observe the job."""


def observation_of(header: Mapping[str, Any]) -> Observation:
    """Return the observation in an answer."""
    accesses = [
        Access(one["what"], one["target"], one["exists"], one["count"], one["program"])
        for one in header["accesses"]
    ]
    return Observation(
        tuple(accesses), header["omitted"], header["unreadable"], header.get("missing")
    )
