"""The list of tools."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from rye.catalogue.entry import CatalogueEntry, Summary
from rye.ui.page import Action, Form, Page, redirect, render
from rye.ui.paging import page_of
from rye.ui.site import site_of


def tool_list(request: Request) -> Response:
    """Every tool, or those that a search finds."""
    words = request.query_params.get("q", "").strip()
    with site_of(request).catalogue() as catalogue:
        found: Sequence[CatalogueEntry | Summary]
        if words:
            found = [hit.entry for hit in catalogue.search(words, limit=500)]
        else:
            found = [one for one in catalogue.summaries() if one.is_tool]
    shown, pager = page_of(request, found)
    return render(request, "tools.html", title="Tools", words=words, tools=shown, pager=pager)


def tool_page(request: Request) -> Response:
    """One tool."""
    with site_of(request).catalogue() as catalogue:
        entry = catalogue.entry(request.path_params["item_id"])
    return render(request, "tool.html", title=entry.item_id, tool=entry)


def run_tool(request: Request, form: Form) -> Response:  # noqa: ARG001 - comes next
    """Run a tool with the values of its form."""
    return redirect(request.url.path)


ROUTES = (
    Page("/", tool_list, section="Tools"),
    Page("/tools/{item_id:path}", tool_page, section="Tools"),
    Action("/tools/{item_id:path}", run_tool, section="Tools"),
)
