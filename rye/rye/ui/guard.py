"""Which requests reach the page, and the headers that every response has.

Only a browser that was given the link may read the page, and only the page itself may send
requests: not another site, not a name that was rebound to this machine, and not a server of another
user on another port.
"""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from typing import NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rye.mcp.http_connections import CONNECTION, IDLE_SECONDS
from rye.ui.access import Access

ENTER_PATH = "/enter"
STATIC_PATH = "/static/"
SESSION = "rye.session"
"""The key under which a request's scope has its session."""

_POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
_HEADERS = {
    "Content-Security-Policy": "; ".join(_POLICY),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # Nothing for other sites. With `no-referrer`, browsers would hide the origin of our own forms.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Rules(NamedTuple):
    """What a request must have."""

    host: str
    """The only ``Host`` header that names this server."""
    access: Access

    def refusal(self, scope: Scope) -> Response | None:
        """Return the response to a request that may not pass, else ``None``."""
        headers = Headers(scope=scope)
        refused = self._foreign(headers, scope["path"], scope["method"])
        if refused is not None or scope["path"] == ENTER_PATH:
            return refused
        if scope["path"].startswith(STATIC_PATH):
            return None
        session = self.access.session(self._cookie(headers))
        if session is None:
            return _refused(403, "this page needs the link that `rye ui` opens or prints")
        scope[SESSION] = session
        return None

    def _foreign(self, headers: Headers, path: str, method: str) -> Response | None:
        """Refuse a request that was not sent by this page, or by a person who opens it."""
        if headers.getlist("host") != [self.host]:
            return _refused(421, "the Host header does not name this page")
        if method not in ("GET", "HEAD", "POST"):
            return _refused(405, "use GET or POST", {"Allow": "GET, HEAD, POST"})
        origins = headers.getlist("origin")
        # A link that is opened from elsewhere is a request of another site; its token is the proof.
        own_site = headers.get("sec-fetch-site", "none") in ("same-origin", "none")
        if any(one != f"http://{self.host}" for one in origins) or not (
            own_site or path == ENTER_PATH
        ):
            return _refused(403, "another site may not use this page")
        if method == "POST" and not origins:
            return _refused(403, "a form must be sent by this page")
        return None

    def _cookie(self, headers: Headers) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.access.cookie_name)
        except CookieError:
            return ""
        return "" if found is None else found.value


class Guard:
    """Refuses requests by the rules, and adds the headers of the page to every response."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        refusal = self._rules.refusal(scope)
        if refusal is None and not scope["state"][CONNECTION].accept_request():
            later = {"Retry-After": str(IDLE_SECONDS), "Connection": "close"}
            refusal = _refused(503, "too many connections; try again later", later)
        await (refusal or self._app)(scope, receive, send_with_headers)


def _refused(status: int, reason: str, headers: dict[str, str] | None = None) -> Response:
    return PlainTextResponse(f"rye: {reason}\n", status, headers=headers)
