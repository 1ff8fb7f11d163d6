"""Pages and actions: from a function to a route, and from values to a response."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from inspect import iscoroutinefunction
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from rye.errors import ItemNotFoundError, ParameterError, RunNotFoundError, RyeError
from rye.ui.access import form_token, is_form_token
from rye.ui.guard import SESSION
from rye.ui.site import site_of
from rye.ui.templating import environment

FORM_TOKEN = "csrf"  # noqa: S105 - the name of a field
_MAX_BODY = 1024 * 1024
_MAX_FIELDS = 1000
_FORM_TYPE = "application/x-www-form-urlencoded"

View = Callable[[Request], Response | Awaitable[Response]]


class Form:
    """The fields of a form that was sent."""

    def __init__(self, fields: Mapping[str, list[str]]) -> None:
        self._fields = fields

    def get(self, name: str, default: str = "") -> str:
        """Return the first value of a field."""
        return self._fields.get(name, [default])[0]

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    def names(self) -> list[str]:
        """Return the names of the fields, without the token of the session."""
        return [name for name in self._fields if name != FORM_TOKEN]


Act = Callable[[Request, Form], Response | Awaitable[Response]]


class Page(NamedTuple):
    """An address that shows something."""

    path: str
    view: View
    section: str = ""
    """The entry of the navigation that the page belongs to."""

    def route(self) -> Route:
        """The route that answers GET; an error of Rye becomes a page."""

        async def endpoint(request: Request) -> Response:
            request.state.section = self.section
            return await _answer(request, self.view, request)

        return Route(self.path, endpoint, methods=["GET"])


class Action(NamedTuple):
    """An address that does something, if the page was started with ``--run``."""

    path: str
    act: Act
    section: str = ""

    def route(self) -> Route:
        """The route that answers POST, after the token of the form was checked."""

        async def endpoint(request: Request) -> Response:
            request.state.section = self.section
            form = await _read_form(request)
            if form is None:
                return refuse(request, 413, "the form is too large, or is not a form")
            if not is_form_token(form.get(FORM_TOKEN), request.scope[SESSION]):
                return refuse(request, 403, "the form was not made by this page; load it again")
            if not site_of(request).may_run:
                return refuse(request, 403, "this page only shows; to act, start: rye ui --run")
            return await _answer(request, self.act, request, form)

        return Route(self.path, endpoint, methods=["POST"])


def render(request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
    """Return a page from a template; ``values`` are its variables."""
    site = site_of(request)
    shared = {
        "request": request,
        "site": site,
        "may_run": site.may_run,
        "section": getattr(request.state, "section", ""),
        "sections": request.app.state.sections,
        "form_token": form_token(request.scope.get(SESSION, "")),
    }
    text = environment().get_template(template).render({**shared, **values})
    return HTMLResponse(text, status)


def refuse(request: Request, status: int, reason: str) -> Response:
    """Return an error page that says why, and what to do."""
    return render(request, "error.html", status=status, title="Not possible", reason=reason)


def redirect(path: str) -> Response:
    """Return the response to an action: the browser loads ``path`` with GET."""
    return RedirectResponse(path, 303)


class Event(NamedTuple):
    """One server-sent event."""

    name: str
    data: str
    place: str = ""
    """How much the reader has with it: sent back by one who lost the stream and opens it again."""


def stream(request: Request, events: AsyncIterator[Event]) -> Response:
    """Return server-sent events until ``events`` ends, the reader leaves or the server stops."""
    from rye.ui.streams import EventStream

    return EventStream(events, site_of(request).stopping)


async def _answer(request: Request, function: Callable[..., Any], *arguments: Any) -> Response:
    try:
        response: Response = (
            await function(*arguments)
            if iscoroutinefunction(function)
            else await run_in_threadpool(function, *arguments)
        )
    except RyeError as error:
        return refuse(request, _status_of(error), str(error))
    return response


def _status_of(error: RyeError) -> int:
    if isinstance(error, ItemNotFoundError | RunNotFoundError):
        return 404
    return 400 if isinstance(error, ParameterError) else 409


async def _read_form(request: Request) -> Form | None:
    """Return the fields, ``None`` for a body that is too large or not a form."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != _FORM_TYPE:
        return None
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MAX_BODY:
            return None
    try:
        fields = parse_qs(
            body.decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict"
        )
    except ValueError:
        return None
    return Form(fields)
