"""One request and its response. Errors of the HTTP library are translated here."""

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
# Any other header may be a credential under a custom name.
_HARMLESS_HEADERS = frozenset(
    {"accept", "accept-language", "cache-control", "content-type", "user-agent"}
)
# Codecs for source code and host names, not charsets. They raise or warn whatever the error
# handler is, or take quadratic time.
_UNUSABLE_CHARSETS = frozenset(
    {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"}
)


class RequestFailedError(Exception):
    """No usable response; ``retryable`` if the same request may succeed later.

    Its text is ``reason``, then ``hint``: what to do next.
    """

    def __init__(self, reason: str, hint: str, *, retryable: bool) -> None:
        super().__init__(f"{reason}; {hint}")
        self.reason = reason
        self.hint = hint
        self.retryable = retryable


@contextlib.contextmanager
def foreign_errors(request: PreparedRequest, *, limit: str) -> Iterator[None]:
    """Translate errors of the HTTP library and the system into :class:`RequestFailedError`.

    ``limit`` describes a timeout in the message, such as ``timed out after 5 seconds``.
    """
    import httpx2

    label, secrets = request.label, request.secrets
    try:
        yield
    except RequestFailedError:
        raise
    except (TimeoutError, httpx2.TimeoutException):
        raise RequestFailedError(
            f"{limit}: {label}", "raise the limit or check the server", retryable=True
        ) from None
    except httpx2.ConnectError as error:
        raise RequestFailedError(
            f"could not connect: {label}: {_detail(error, secrets)}",
            "check the address and that the server is up",
            retryable=True,
        ) from None
    except (httpx2.LocalProtocolError, httpx2.UnsupportedProtocol):
        # Their texts quote headers, which may contain credentials.
        raise RequestFailedError(
            f"could not be sent: {label}", "check the headers and the url", retryable=False
        ) from None
    except httpx2.InvalidURL:
        # The requested address was parsed before, so this is the address of a redirect.
        raise _redirect_refused(request) from None
    except httpx2.DecodingError as error:
        raise RequestFailedError(
            f"response could not be decoded: {label}: {_detail(error, secrets)}",
            "check the server",
            retryable=True,
        ) from None
    except httpx2.RequestError as error:
        raise RequestFailedError(
            f"connection broke: {label}: {_detail(error, secrets)}",
            "check the server",
            retryable=True,
        ) from None
    except Exception as error:
        # The library does not translate all errors of its dependencies (h11, anyio, idna).
        raise RequestFailedError(
            f"request failed: {label}: {type(error).__name__}",
            "check the url, and that the client was not closed during the request",
            retryable=False,
        ) from error


@contextlib.asynccontextmanager
async def open_response(
    client: "httpx2.AsyncClient", request: PreparedRequest, *, silence: float | None, follow: bool
) -> AsyncIterator["httpx2.Response"]:
    """Send ``request``, follow redirects if ``follow``, and close the response at the end.

    ``silence`` limits each read in seconds; the caller limits the whole. Raises
    :class:`RequestFailedError` for a refused redirect, and the errors of the library.
    """
    redirects = 0
    while True:
        response = await client.send(_library_request(client, request, silence), stream=True)
        try:
            if not follow or not response.has_redirect_location:
                yield response
                return
            redirects += 1
            if redirects > _MAX_REDIRECTS:
                raise RequestFailedError(
                    f"redirected more than {_MAX_REDIRECTS} times: {request.label}",
                    "request the final address",
                    retryable=False,
                )
            request = redirected(request, response.status_code, response.headers["location"])
        finally:
            await response.aclose()


def _library_request(
    client: "httpx2.AsyncClient", request: PreparedRequest, silence: float | None
) -> "httpx2.Request":
    """Build the library's request.

    The library logs the URL of each request, so path and query are passed as an extension.
    ``client.build_request`` would parse and merge everything again.
    """
    import httpx2

    headers = {
        name.lower().encode(): (name.encode(), value.encode()) for name, value in request.headers
    }
    defaults = [item for item in client.headers.raw if item[0].lower() not in headers]
    return httpx2.Request(
        request.method,
        _origin_only(request.url.scheme, request.url.netloc),
        content=request.content,
        headers=[*defaults, *headers.values()],
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
    """Return the request that follows a redirect.

    Credentials and bodies are not sent to another origin (scheme, host or port), nor on a later
    hop. Raises :class:`RequestFailedError` if the redirect must not be followed.
    """
    try:
        url = parse_url(str(request.url.join(location)))
    except (InvalidConfigError, ValueError):
        raise _redirect_refused(request) from None
    method, content, headers = request.method, request.content, request.headers
    if (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST"):
        method, content = "GET", None
        headers = tuple(h for h in headers if not h[0].lower().startswith("content-"))
    if url.origin != request.url.origin:
        if content is not None:
            raise RequestFailedError(
                f"redirect refused: {request.label}: the body would go to another origin",
                "request the final address",
                retryable=False,
            )
        headers = tuple(h for h in headers if h[0].lower() in _HARMLESS_HEADERS)
    return replace(request, method=method, url=url, content=content, headers=headers)


def _redirect_refused(request: PreparedRequest) -> RequestFailedError:
    return RequestFailedError(
        f"redirect refused: {request.label}: the new address is not http or https",
        "request the final address",
        retryable=False,
    )


@dataclass(frozen=True, kw_only=True)
class Body:
    """The first bytes of a decompressed response body; ``truncated`` if there were more."""

    data: bytes
    truncated: bool


async def read_body(response: "httpx2.Response", limit: int) -> Body:
    """Read at most ``limit`` bytes after decompression; a decompression bomb stops there."""
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
    """Return the headers with lower-case names; repeated ones are joined by commas."""
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
    """Return a content type in lower case, without its parameters; may be empty."""
    return content_type.partition(";")[0].strip().lower()


def parse_body(response: "httpx2.Response", headers: Mapping[str, str], body: Body) -> Any:
    """Return parsed JSON if the content type is JSON and the body complete and valid, else text.

    An unknown or unusable charset is read as UTF-8.
    """
    kind = media_type(headers.get("content-type", ""))
    if not body.truncated and kind.endswith(("/json", "+json")):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(body.data)
    try:
        charset = codecs.lookup(response.charset_encoding or "utf-8").name
        if charset not in _UNUSABLE_CHARSETS:
            return body.data.decode(charset, errors="replace")
    except (LookupError, ValueError):
        pass
    return body.data.decode("utf-8", errors="replace")


def status_error(response: "httpx2.Response", request: PreparedRequest) -> str:
    """Return ``HTTP {code}: {reason}``, with the server's reason shortened and scrubbed."""
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
