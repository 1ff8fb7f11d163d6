"""The page of a call that is under way, or that only this page remembers."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from rye.live.seen import SeenRun
from rye.ui.page import render


def live_call(request: Request, seen: SeenRun, *, under_way: bool) -> Response:
    """What the call is, its output as it comes, and what it asks.

    ``under_way`` was true when it was looked up. A call may end while the page is made; that page
    still follows the call, and loads itself again.
    """
    request.state.section = "Live"
    return render(request, "live_call.html", title=seen.item, run=seen, under_way=under_way)
