"""What a job may touch, as data: the kernel of the operating system holds it to that.

``lilux-proc`` enforces it and reports what was enforced; ``docs/adr/0020`` says how.
"""

from __future__ import annotations

import os

from lilux.primitives.errors import HelperError
from lilux.primitives.subprocess.wire import Encoded
from lilux.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

PARTS = (
    "fs",
    "net",
    "unix",
    "signals",
    "privileges",
    "syscalls",
    "attributes",
    "read_only",
    "hidden",
    "memory",
    "cpu",
    "processes",
    "file_size",
)
"""The parts of a confinement that are enforced, or missing, independently of each other."""
_PATHS = ("read", "write", "execute", "read_only", "hidden")
_MAX_SENT = 64


class ConfinementLimits(Record, frozen=True, kw_only=True):
    """Limits of a job with everything that it starts. ``None`` means no limit."""

    memory: int | None = None
    """Bytes."""
    cpu: int | None = None
    """Seconds of processor time."""
    processes: int | None = None
    file_size: int | None = None
    """Bytes of each file that is written."""


class Confinement(Record, frozen=True, kw_only=True):
    """What a job may touch. What is not named is not allowed.

    Paths are absolute and contain no symbolic link: a link that one job has put into a folder that
    it may write would otherwise widen what the next job may touch.
    """

    read: tuple[str | os.PathLike[str], ...] = ()
    """Files and folders to read. One that does not exist is skipped."""
    write: tuple[str | os.PathLike[str], ...] = ()
    """Files and folders to read and write, but not to execute. They must exist."""
    execute: tuple[str | os.PathLike[str], ...] = ()
    """Programs, and folders of programs, to read and execute. One that does not exist is skipped.
    A dynamically linked program also needs its loader."""
    read_only: tuple[str | os.PathLike[str], ...] = ()
    """Files and folders inside ``write`` that are read-only. One that does not exist is reported as
    missing: the job could create it."""
    hidden: tuple[str | os.PathLike[str], ...] = ()
    """Files and folders inside ``read`` or ``write`` that look empty."""
    net: Literal["none", "all"] | tuple[str, ...] = "none"
    """A tuple lists the hosts that can be reached, each with its port: ``api.example.org:443``,
    ``*.example.org:443`` (all names below it), ``localhost:8080``, ``[::1]:8080``. The job reaches
    them through a proxy, which its environment names; it cannot resolve names by itself. A name
    that leads to this machine or to a private network is refused unless the address is listed,
    too. ``docs/adr/0023`` has the rules."""
    unix: bool = False
    """Unix sockets may be created and connected."""
    tmp: tuple[str, ...] = ()
    """Environment variables (``TMPDIR``, ``HOME``) that each get the path of an empty folder. It
    belongs to the job alone, and is removed afterwards."""
    limits: ConfinementLimits = ConfinementLimits()
    require: tuple[str, ...] | None = None
    """The :data:`PARTS` without which the job is not started; ``None`` means all."""


class MissingPart(Record, frozen=True):
    """A part of a confinement that cannot be enforced."""

    part: str
    reason: str


class ConfinementReport(Record, frozen=True):
    """What was enforced for a job, or what this machine can enforce."""

    enforced: Mapping[str, str]
    """The mechanism of each part: ``{"fs": "landlock 7", "net": "namespace"}``."""
    missing: tuple[MissingPart, ...]
    """The other parts that were asked for."""


_sent: dict[int, tuple[Confinement, Encoded]] = {}
"""By the id of the confinement, which is kept alive here."""


def confinement_fields(given: Any) -> Encoded:
    """Return a confinement as it is sent; the result must not be changed.

    Raises ``ValueError`` that names the invalid field. The jobs of a profile are started with the
    same confinement, so the last ones are remembered.
    """
    known = _sent.get(id(given))
    if known is not None and known[0] is given:
        return known[1]
    fields = Encoded(_checked_fields(given))
    # A list could change later.
    sequences = (*_PATHS, "net", "tmp", "require")
    if not any(isinstance(getattr(given, name), list) for name in sequences):
        if len(_sent) >= _MAX_SENT:
            _sent.clear()
        _sent[id(given)] = (given, fields)
    return fields


def _checked_fields(given: Any) -> dict[str, Any]:
    if not isinstance(given, Confinement):
        raise ValueError(f"confinement must be a Confinement, got {type(given).__name__}")
    fields: dict[str, Any] = {name: _paths(name, getattr(given, name)) for name in _PATHS}
    fields["net"] = _net(given.net)
    fields["unix"] = bool(given.unix)
    fields["tmp"] = _names("tmp", given.tmp)
    if not isinstance(given.limits, ConfinementLimits):
        raise ValueError("confinement.limits must be ConfinementLimits")
    fields["limits"] = {
        name: _limit(name, getattr(given.limits, name))
        for name in ("memory", "cpu", "processes", "file_size")
    }
    if given.require is not None:
        fields["require"] = required = _names("require", given.require)
        for part in required:
            if part not in PARTS:
                raise ValueError(
                    f"confinement.require: unknown part {part!r}; known are {', '.join(PARTS)}"
                )
    return fields


def probe_report(header: Mapping[str, Any]) -> ConfinementReport:
    """Return the report in the answer to a probe. Raises ``HelperError`` if it was refused."""
    if header["kind"] == "error":
        raise HelperError(f"this machine cannot be probed: {header['message']}")
    return confinement_report(header)


def confinement_report(header: Mapping[str, Any]) -> ConfinementReport:
    """Return the report in an answer."""
    missing = tuple([MissingPart(one["part"], one["reason"]) for one in header["missing"]])
    return ConfinementReport(header["enforced"], missing)


def _paths(name: str, given: Any) -> list[str]:
    if not isinstance(given, tuple | list):
        raise ValueError(f"confinement.{name} must be a tuple of paths, got {type(given).__name__}")
    for index, path in enumerate(given):
        if not isinstance(path, str | os.PathLike):
            raise ValueError(
                f"confinement.{name}[{index}] must be a path, got {type(path).__name__}"
            )
    return [os.fsdecode(path) for path in given]


def _net(given: Any) -> str | list[str]:
    if isinstance(given, tuple | list) and all(isinstance(host, str) for host in given):
        return list(given) or "none"
    if given in ("none", "all"):
        return str(given)
    raise ValueError("confinement.net must be 'none', 'all' or a tuple of hosts")


def _names(name: str, given: Any) -> list[str]:
    if not isinstance(given, tuple | list) or not all(isinstance(one, str) for one in given):
        raise ValueError(f"confinement.{name} must be a tuple of strings")
    return list(given)


def _limit(name: str, given: Any) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 0 < given < 2**63:
        raise ValueError(f"confinement.limits.{name} must be a positive integer below 2^63")
    return given
