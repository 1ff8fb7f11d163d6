"""All checks, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from lilux.primitives.errors import LiluxError

from rye.context import Context
from rye.doctor.checks import Finding, check_items, check_machine, check_trust, problem
from rye.doctor.fixes import fixes
from rye.doctor.runtimes import check_runtimes
from rye.doctor.tools import check_tools
from rye.errors import RyeError

_CHECKS = {
    "machine": check_machine,
    "trust": check_trust,
    "items": check_items,
    "runtimes": check_runtimes,
    "tools": check_tools,
}


def findings(context: Context, *, fix: bool = False) -> Iterator[Finding]:
    """Yield what each check found. A check that fails is a finding, too.

    With ``fix``, what can be fixed safely is fixed before the checks, which then see it.
    """
    yield from _fixes(context, fix=fix)
    for subject, check in _CHECKS.items():
        try:
            yield from check(context)
        except (RyeError, LiluxError, OSError) as error:
            yield problem(subject, f"the check failed: {error}")


def _fixes(context: Context, *, fix: bool) -> Iterator[Finding]:
    for one in list(fixes(context)):
        if not fix:
            if not one.is_usual:
                yield one.finding()
            continue
        try:
            one.apply()
        except OSError as error:
            yield problem(one.subject, f"{one.wrong}; cannot fix it: {error.strerror}")
        else:
            yield Finding("fixed", one.subject, one.done, one.after)
