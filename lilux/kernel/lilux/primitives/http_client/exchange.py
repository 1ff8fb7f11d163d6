"""One request and its response: the edge at which nothing of the HTTP library passes."""

import codecs
import contextlib
import functools
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lilux.primitives.http_client.config import InvalidConfigError
from lilux.primitives.http_client.request import PreparedRequest, Secrets, parse_url

if TYPE_CHECKING:
    import httpx2

_MAX_REDIRECTS = 10
# Whatever else an author wrote may be a credential under a name of its own.
_HARMLESS_HEADERS = frozenset(
    {"accept", "accept-language", "cache-control", "content-type", "user-agent"}
)
# Python can decode these, but no server means them: they are escapes of source texts and host
# names, which raise or warn whatever the error handler is, or take the square of the time.
_NO_CHARSETS = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"})


class RequestFailedError(Exception):
    """There is no usable response; ``retryable`` if the same request may succeed later."""

    def __init__(self, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.retryable = retryable


@contextlib.contextmanager
def foreign_errors(request: PreparedRequest, *, limit: str) -> Iterator[None]:
    """Turn what the HTTP library or the system raises into :class:`RequestFailedError`.

    ``limit`` is what a timeout is called in the message, such as ``timed out after 5 seconds``.
    """
    import httpx2

    label, secrets = request.label, request.secrets
    try:
        yield
    except RequestFailedError:
        raise
    except (TimeoutError, httpx2.TimeoutException):
        raise RequestFailedError(
            f"{limit}: {label}; raise the limit or check the server", retryable=True
        ) from None
    except httpx2.ConnectError as error:
        raise RequestFailedError(
            f"could not connect: {label}: {_detail(error, secrets)}; "
            "check the address and that the server is up",
            retryable=True,
        ) from None
    except (httpx2.LocalProtocolError, httpx2.UnsupportedProtocol):
        # Their texts quote headers, credentials among them.
        raise RequestFailedError(
            f"could not be sent: {label}; check the headers and the url", retryable=False
        ) from None
    except httpx2.InvalidURL:
        # The address that was asked for was parsed before; the library parses that of a redirect.
        raise _leads_away(request) from None
    except httpx2.DecodingError as error:
        raise RequestFailedError(
            f"response could not be decoded: {label}: {_detail(error, secrets)}; check the server",
            retryable=True,
        ) from None
    except httpx2.RequestError as error:
        raise RequestFailedError(
            f"connection broke: {label}: {_detail(error, secrets)}; check the server",
            retryable=True,
        ) from None
    except Exception as error:
        # Errors of the layers below (h11, anyio, idna) slip through the library unmapped.
        raise RequestFailedError(
            f"request failed: {label}: {type(error).__name__}; "
            "check the url, and that the client was not closed meanwhile",
            retryable=False,
        ) from error


@contextlib.asynccontextmanager
async def open_response(
    client: "httpx2.AsyncClient", request: PreparedRequest, *, silence: float | None, follow: bool
) -> AsyncIterator["httpx2.Response"]:
    """Send ``request``, follow redirects if asked to, and close the response at the end.

    ``silence`` bounds each read in seconds; the caller bounds the whole. Raises
    :class:`RequestFailedError` for a redirect that is refused, and the library's own errors.
    """
    redirects = 0
    while True:
        response = await client.send(_wire(client, request, silence), stream=True)
        try:
            if not follow or not response.has_redirect_location:
                yield response
                return
            redirects += 1
            if redirects > _MAX_REDIRECTS:
                raise RequestFailedError(
                    f"redirected more than {_MAX_REDIRECTS} times: {request.label}; "
                    "request the final address",
                    retryable=False,
                )
            request = redirected(request, response.status_code, response.headers["location"])
        finally:
            await response.aclose()


def _wire(
    client: "httpx2.AsyncClient", request: PreparedRequest, silence: float | None
) -> "httpx2.Request":
    """The library's request. It logs the URL of each one, so path and query go in beside it.

    Built directly, since ``client.build_request`` would parse and merge everything once more.
    """
    import httpx2

    own = {
        name.lower().encode(): (name.encode(), value.encode()) for name, value in request.headers
    }
    defaults = [item for item in client.headers.raw if item[0].lower() not in own]
    return httpx2.Request(
        request.method,
        _origin_only(request.url.scheme, request.url.netloc),
        content=request.content,
        headers=[*defaults, *own.values()],
        extensions={
            "target": request.url.raw_path,
            "timeout": {"connect": None, "read": silence, "write": None, "pool": None},
        },
    )


@functools.lru_cache(maxsize=64)
def _origin_only(scheme: str, netloc: bytes) -> "httpx2.URL":
    import httpx2

    return httpx2.URL(f"{scheme}://{netloc.decode('ascii')}/")


def redirected(request: PreparedRequest, status: int, location: str) -> PreparedRequest:
    """The request that answers a redirect.

    To another origin (scheme, host or port) go neither credentials nor a body, and they do not
    come back on a later hop. Raises :class:`RequestFailedError` if it must not be followed.
    """
    try:
        url = parse_url(str(request.url.join(location)))
    except (InvalidConfigError, ValueError):
        raise _leads_away(request) from None
    method, content, headers = request.method, request.content, request.headers
    if (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST"):
        method, content = "GET", None
        headers = tuple(h for h in headers if not h[0].lower().startswith("content-"))
    if url.origin != request.url.origin:
        if content is not None:
            raise RequestFailedError(
                f"redirect refused: {request.label}: the body would go to another origin; "
                "request the final address",
                retryable=False,
            )
        headers = tuple(h for h in headers if h[0].lower() in _HARMLESS_HEADERS)
    return replace(request, method=method, url=url, content=content, headers=headers)


def _leads_away(request: PreparedRequest) -> RequestFailedError:
    return RequestFailedError(
        f"redirect refused: {request.label}: the new address is not http or https; "
        "request the final address",
        retryable=False,
    )


@dataclass(frozen=True, kw_only=True)
class Body:
    """The head of a response body, decompressed; ``truncated`` if there was more."""

    data: bytes
    truncated: bool


async def read_body(response: "httpx2.Response", limit: int) -> Body:
    """Read at most ``limit`` decoded bytes; a compressed bomb is not unpacked beyond them."""
    chunks: list[bytes] = []
    room = limit
    async with contextlib.aclosing(response.aiter_bytes()) as stream:
        async for chunk in stream:
            if len(chunk) > room:
                chunks.append(chunk[:room])
                return Body(data=b"".join(chunks), truncated=True)
            chunks.append(chunk)
            room -= len(chunk)
    return Body(data=b"".join(chunks), truncated=False)


def header_dict(response: "httpx2.Response") -> dict[str, str]:
    """The headers with names in lower case, repeated ones joined by commas."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in response.headers.raw:
        name = raw_name.decode("latin-1").lower()
        value = _header_text(raw_value)
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _header_text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def media_type(content_type: str) -> str:
    """A content type in lower case, without its parameters; empty if there is none."""
    return content_type.partition(";")[0].strip().lower()


def parse_body(response: "httpx2.Response", headers: Mapping[str, str], body: Body) -> Any:
    """Parsed JSON if the content type says so and the body is whole and valid, else text.

    A charset that is unknown, or that is no encoding of texts, counts as UTF-8.
    """
    kind = media_type(headers.get("content-type", ""))
    if not body.truncated and kind.endswith(("/json", "+json")):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(body.data)
    try:
        charset = codecs.lookup(response.charset_encoding or "utf-8").name
        if charset not in _NO_CHARSETS:
            return body.data.decode(charset, errors="replace")
    except (LookupError, ValueError):
        pass
    return body.data.decode("utf-8", errors="replace")


def status_error(response: "httpx2.Response", request: PreparedRequest) -> str:
    """``HTTP {code}: {reason}``; the reason is the server's text, so it is bounded and scrubbed."""
    import http

    raw_reason = response.extensions.get("reason_phrase", b"")
    reason = request.secrets.excerpt(_header_text(raw_reason), 200)
    if not reason:
        try:
            reason = http.HTTPStatus(response.status_code).phrase
        except ValueError:
            reason = "unknown status"
    return f"HTTP {response.status_code}: {reason}"


def _detail(error: Exception, secrets: Secrets) -> str:
    return secrets.excerpt(str(error), 300).rstrip(".") or type(error).__name__
