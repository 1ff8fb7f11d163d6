"""The page of a call that is under way, or that only this page remembers."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from rye.live.seen import SeenRun
from rye.ui.page import render


def live_call(request: Request, seen: SeenRun) -> Response:
    """What the call is, its output as it comes, and what it asks."""
    request.state.section = "Live"
    return render(request, "live_call.html", title=seen.item, run=seen)
