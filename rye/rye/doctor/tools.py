"""The summary of ``rye check`` for the tools and settings of the project."""

from __future__ import annotations

from collections.abc import Iterator

from rye.authoring.check import Checker
from rye.authoring.settings_file import check_settings
from rye.catalogue.catalogue import Catalogue
from rye.context import Context
from rye.doctor.checks import Finding, ok, problem


def check_tools(context: Context) -> Iterator[Finding]:
    """Return one finding about all tools, and one for each file of settings with errors."""
    for report in check_settings(context):
        for error in report.errors:
            yield problem("settings", error)
    checker = Checker(context)
    # Reported by the check of all items.
    unreadable = {entry.item_id for entry in Catalogue(context).entries() if entry.fault}
    items = [item_id for item_id in checker.project_items() if item_id not in unreadable]
    reports = [checker.check(item_id) for item_id in items]
    wrong = [one.item_id for one in reports if one.errors]
    warned = sum(bool(one.warnings) for one in reports if not one.errors)
    if wrong:
        shown = ", ".join(wrong[:3]) + (f" and {len(wrong) - 3} more" if wrong[3:] else "")
        yield problem("tools", f"{len(wrong)} of {len(reports)} have errors: {shown}", "rye check")
    elif reports:
        with_warnings = f", {warned} with warnings; see `rye check`" if warned else ""
        yield ok("tools", f"all {len(reports)} of the project would run{with_warnings}")
