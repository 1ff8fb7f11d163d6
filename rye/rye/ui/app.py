"""The application: its pages, its files, and the link that opens it."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from importlib import import_module

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from rye.ui.access import Access
from rye.ui.guard import ENTER_PATH, Guard, Rules
from rye.ui.page import Action, Page, refuse, render
from rye.ui.site import Site
from rye.ui.static_files import static_route

MODULES = ("tools", "live", "history", "trust", "batches", "machine")
"""The modules of :mod:`rye.ui.pages`, in the order of the navigation."""


def create_app(site: Site, access: Access, host: str) -> ASGIApp:
    """Return the guarded application for requests to ``host``, such as ``name.localhost:8000``."""
    routes: list[Page | Action] = []
    for name in MODULES:
        routes += import_module(f"rye.ui.pages.{name}").ROUTES
    app = Starlette(
        routes=[_enter_route(access), static_route(), *[one.route() for one in routes]],
        exception_handlers={HTTPException: _http_error, Exception: _unexpected},  # type: ignore[dict-item]  # as Starlette declares it
    )
    app.router.redirect_slashes = False
    app.state.site = site
    app.state.sections = sections_of(routes)
    return Guard(app, Rules(host, access))


def sections_of(routes: Sequence[Page | Action]) -> dict[str, str]:
    """Return the navigation: the name of each section, and the path of its first page."""
    sections: dict[str, str] = {}
    for one in routes:
        if isinstance(one, Page) and one.section and "{" not in one.path:
            sections.setdefault(one.section, one.path)
    return sections


def _enter_route(access: Access) -> Route:
    async def enter(request: Request) -> Response:
        if request.method == "HEAD":  # of a preview
            raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED)
        session = access.enter(request.query_params.get("token", ""))
        if session is None:
            return refuse(
                request,
                403,
                "this link has been used or is too old; press Enter where rye ui runs for another",
            )
        # Not a redirect: a browser withholds a strict cookie while it follows a link of another
        # place, such as the private file that opens the page.
        response = render(request, "entered.html", title="Opening", sections={})
        response.set_cookie(access.cookie_name, session, httponly=True, samesite="strict", path="/")
        return response

    return Route(ENTER_PATH, enter, methods=["GET"])


async def _http_error(request: Request, error: HTTPException) -> Response:
    phrase = HTTPStatus(error.status_code).phrase.lower()
    return refuse(request, error.status_code, f"{request.url.path}: {phrase}")


async def _unexpected(request: Request, error: Exception) -> Response:  # noqa: ARG001 - the log has its type and place
    return refuse(request, 500, "an unexpected error; where rye ui runs, a line says where")
