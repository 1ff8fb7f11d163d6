"""Handling ``resources/*``: the outputs that are kept, in pages.

``rye://outputs/ID/STREAM?offset=BYTES&length=BYTES``. They are not listed: the address is in the
result of the call, and over HTTP other clients need not know it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from rye.errors import RyeError
from rye.mcp.outputs import MAX_PAGE, Outputs, Page
from rye.mcp.protocol.errors import INVALID_PARAMS, RESOURCE_NOT_FOUND, ProtocolError
from rye.mcp.protocol.types import (
    ListResourcesResult,
    ListTemplatesResult,
    ReadResourceResult,
    ResourceContents,
    ResourceTemplate,
)

if TYPE_CHECKING:
    from rye.mcp.protocol.types import ReadResourceParams
    from rye.mcp.request import Request

_TEMPLATE = ResourceTemplate(
    uri_template="rye://outputs/{id}/{stream}{?offset,length}",
    name="output",
    description="The whole output of a call whose result was cut. offset and length are bytes.",
)


class Resources:
    """The handlers."""

    def __init__(self, outputs: Outputs) -> None:
        self._outputs = outputs

    async def list(self, _request: Request, _params: object) -> ListResourcesResult:
        """Return nothing: no resource is always there."""
        return ListResourcesResult(resources=[])

    async def templates(self, _request: Request, _params: object) -> ListTemplatesResult:
        """Return what the addresses look like."""
        return ListTemplatesResult(resource_templates=[_TEMPLATE])

    async def read(self, request: Request, params: ReadResourceParams) -> ReadResourceResult:
        """Return one page. Raises ``ProtocolError`` if there is no such output."""
        try:
            place = urlsplit(params.uri)
            _, output_id, stream, *more = [*place.path.split("/"), "", ""]
            if (place.scheme, place.netloc) != ("rye", "outputs") or any(more):
                raise RyeError("the address is not one of an output", hint="use the one of a link")
            options = _numbers(place.query)
            page = self._outputs.page(output_id, stream, **options)
        except (RyeError, ValueError) as error:
            code = RESOURCE_NOT_FOUND if request.era == "handshake" else INVALID_PARAMS
            raise ProtocolError(code, str(error), {"uri": params.uri[:200]}) from None
        return ReadResourceResult([_contents(params.uri, page)])


def _numbers(query: str) -> dict[str, int]:
    """Return ``offset`` and ``length``. Raises ``RyeError`` for anything else."""
    numbers = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in ("offset", "length") or not (value.isascii() and value.isdecimal()):
            raise RyeError(
                "the address has an invalid query", hint="use offset=BYTES and length=BYTES"
            )
        numbers[name] = min(int(value[:18]), 2**62)
    if not numbers.get("length", MAX_PAGE):
        raise RyeError("length is 0", hint="use at least 1")
    return numbers


def _contents(uri: str, page: Page) -> ResourceContents:
    meta: dict[str, Any] = {"rye/size": page.size}
    if page.end < page.size:
        meta["rye/next"] = f"{uri.partition('?')[0]}?offset={page.end}"
    try:
        return ResourceContents(uri, "text/plain", text=page.data.decode(), meta=meta)
    except UnicodeDecodeError:
        from base64 import b64encode

        blob = b64encode(page.data).decode()
        return ResourceContents(uri, "application/octet-stream", blob=blob, meta=meta)
