"""Who signed which files: the reports of ``rye verify``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rye.cli.sign.targets import Target
from rye.context import Context
from rye.trust.operations import ItemReport, trust_list, verify_paths
from rye.trust.verify import Standing

UNREADABLE = "unreadable"
_AT_ONCE = 64


class Verification(NamedTuple):
    """One file, judged."""

    report: ItemReport
    owner: str
    """Whose the key is said to be; empty if nobody here knows it."""

    @property
    def state(self) -> str:
        """The standing, or ``unreadable``."""
        verdict = self.report.verdict
        return UNREADABLE if verdict is None else verdict.standing.value

    @property
    def label(self) -> str:
        """The state in words."""
        return "untrusted key" if self.state == Standing.UNTRUSTED.value else self.state

    @property
    def signer(self) -> str:
        """The fingerprint that the signature line names; empty if there is none."""
        return "" if self.report.verdict is None else self.report.verdict.fingerprint

    @property
    def whose(self) -> str:
        """The same with the owner, for people."""
        return f"{self.signer} ({self.owner})" if self.owner else self.signer


def verify_targets(targets: Sequence[Target], context: Context) -> Iterator[Verification]:
    """Judge one by one; nothing is run, and no error is raised for what a file is."""
    owners = {entry.fingerprint: entry.owner for entry in reversed(trust_list(context))}
    for start in range(0, len(targets), _AT_ONCE):
        paths = [target.path for target in targets[start : start + _AT_ONCE]]
        for report in verify_paths(paths, context):
            fingerprint = "" if report.verdict is None else report.verdict.fingerprint
            yield Verification(report, owners.get(fingerprint, ""))
