"""What a tool may do, shown instead of run: its permissions, and what can be enforced of them."""

from __future__ import annotations

from typing import NamedTuple

from lilux.primitives.subprocess.blocking import BlockingSubprocess
from lilux.primitives.subprocess.confinement import PARTS, ConfinementReport

from rye.context import Context
from rye.executor.run.confine import NOT_REQUIRED
from rye.executor.run.prepare import CallOptions, Preparation, Preparer
from rye.executor.run.primitives import PRIMITIVE_MAP
from rye.items.permissions import Permissions
from rye.permissions.chain import chain_permissions
from rye.spaces.ids import SUBPROCESS

_ALWAYS = ("fs", "net", "unix", "signals", "privileges", "syscalls", "attributes")
_PROTECTION = ("read_only", "hidden")


class Permitted(NamedTuple):
    """What a tool may do."""

    item_id: str
    primitive: str
    declared: Permissions | None
    """What its signed files allow; ``None`` if it is not confined."""
    permissions: Permissions | None
    """The same, with the grants of the user."""


class Enforceable(NamedTuple):
    """A part of a confinement on this machine."""

    part: str
    mechanism: str
    reason: str
    """Why it cannot be enforced; empty if it can."""
    required: bool
    """True if agents are refused without it."""


def permitted(item_id: str, context: Context) -> Permitted:
    """What the tool may do. Raises the errors of a call of it, except for those of its lock."""
    preparer = Preparer(context, PRIMITIVE_MAP)
    options = CallOptions(use_lockfile=False)
    chain = Preparation(preparer, item_id, options).verify().chain
    declared = chain_permissions(chain)
    granted = None if declared is None else preparer.confining.permissions(chain, None)
    return Permitted(chain[0].item_id, chain[-1].item_id, declared, granted)


def enforceable(found: Permitted) -> list[Enforceable]:
    """What this machine can enforce of the permissions of a confined tool."""
    permissions = found.permissions or Permissions()
    if found.primitive != SUBPROCESS:
        return [Enforceable("net", "http_client", "", required=True)]
    report = probe()
    reasons = {one.part: one.reason for one in report.missing}
    if permissions.hosts and report.enforced.get("net") != "namespace":
        reasons.setdefault("net", "a list of hosts needs a network namespace")
    wanted = [*_ALWAYS, *(_PROTECTION if permissions.write else ()), *permissions.limits]
    return [
        Enforceable(
            part,
            report.enforced.get(part, ""),
            reasons.get(part, ""),
            required=part not in NOT_REQUIRED,
        )
        for part in wanted
        if part in report.enforced or part in reasons
    ]


def enforceable_here() -> list[Enforceable]:
    """Every part of a confinement on this machine. Raises what :func:`probe` raises."""
    report = probe()
    reasons = {one.part: one.reason for one in report.missing}
    return [
        Enforceable(
            part,
            report.enforced.get(part, ""),
            "" if part in report.enforced else reasons.get(part, "not known here"),
            required=part not in NOT_REQUIRED,
        )
        for part in PARTS
    ]


def probe() -> ConfinementReport:
    """What this machine can enforce."""
    client = BlockingSubprocess()
    try:
        return client.probe_confinement()
    finally:
        client.close()
