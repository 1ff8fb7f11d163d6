"""The page of a call that is under way, or that only this page remembers."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from rye.live.processes import processes_of
from rye.live.seen import SeenRun
from rye.ui.page import render
from rye.ui.run_facts import values_text
from rye.ui.values import size


def live_call(request: Request, seen: SeenRun, *, under_way: bool) -> Response:
    """What the call is, its output as it comes, and what it asks.

    ``under_way`` was true when it was looked up. A call may end while the page is made; that page
    still follows the call, and loads itself again.
    """
    request.state.section = "Live"
    facts = [("Run", seen.run_id), ("Project", seen.project)]
    if seen.parameters:
        facts.append(("Parameters", values_text(seen.parameters)))
    processes = process_text(seen) if under_way else ""
    return render(
        request,
        "live_call.html",
        title=seen.item,
        run=seen,
        under_way=under_way,
        facts=facts,
        processes=processes,
    )


def process_text(run: SeenRun) -> str:
    """The processes of a call, each below its parent; empty if there are none, as of a request."""
    lines = [
        f"{'  ' * one.depth}{one.name}  pid {one.pid}, "
        f"{one.cpu_seconds:.1f} s CPU, {size(one.memory_bytes)}"
        for one in (processes_of(run.pid) if run.pid else ())
    ]
    return "\n".join(lines)
