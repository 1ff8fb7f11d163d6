"""The style sheet and the script: files of the package, with their hash in the address."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rye.ui.guard import STATIC_PATH

_FOLDER = Path(__file__).parent / "static"
_TYPES = {
    "rye.css": "text/css; charset=utf-8",
    "rye.js": "text/javascript; charset=utf-8",
    "rye.svg": "image/svg+xml",
}


@cache
def static_address(name: str) -> str:
    """Return the address of a file; it changes with the content, so that it may be cached."""
    return f"{STATIC_PATH}{name}?v={hashlib.sha256(_content(name)).hexdigest()[:12]}"


@cache
def _content(name: str) -> bytes:
    return (_FOLDER / name).read_bytes()


def static_route() -> Route:
    """The route of these files, and of no others."""

    async def endpoint(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _TYPES:
            return Response("no such file\n", 404, media_type="text/plain")
        kept = {"Cache-Control": "private, max-age=86400, immutable"}
        return Response(_content(name), headers=kept, media_type=_TYPES[name])

    return Route(f"{STATIC_PATH}{{name}}", endpoint, methods=["GET"])
