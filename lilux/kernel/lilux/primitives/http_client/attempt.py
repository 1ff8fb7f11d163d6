"""One attempt of a call, in either mode: from a prepared request to a result."""

import asyncio
import contextlib
from typing import TYPE_CHECKING, NamedTuple

from lilux.primitives.http_client.config import HttpConfig
from lilux.primitives.http_client.exchange import (
    Body,
    RequestFailedError,
    foreign_errors,
    header_dict,
    media_type,
    open_response,
    parse_body,
    read_body,
    status_error,
)
from lilux.primitives.http_client.request import PreparedRequest
from lilux.primitives.http_client.result import HttpResult
from lilux.primitives.http_client.sinks import SinkFan
from lilux.primitives.http_client.sse import SseEventTooLargeError, SseParser

if TYPE_CHECKING:
    import httpx2


class Failure(NamedTuple):
    """Why a response is not usable, and what to do next, if that is known."""

    reason: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.reason}; {self.hint}" if self.hint else self.reason


async def read_response(
    client: "httpx2.AsyncClient", request: PreparedRequest, config: HttpConfig, seconds: float
) -> HttpResult:
    """Send ``request`` and read the body, all within ``seconds``.

    Raises :class:`RequestFailedError` if there is no complete response.
    """
    with foreign_errors(request, limit=f"timed out after {seconds:g} seconds"):
        async with (
            asyncio.timeout(seconds),
            open_response(
                client, request, silence=None, follow=config.follow_redirects
            ) as response,
        ):
            body = await read_body(response, config.max_body_bytes)
    return _result(response, request, config, body)


async def stream_response(
    client: "httpx2.AsyncClient",
    request: PreparedRequest,
    config: HttpConfig,
    fan: SinkFan,
    seconds: float,
) -> HttpResult:
    """Send ``request`` and dispatch the events of its response to ``fan``.

    ``seconds`` limits the wait for the response and each pause after it,
    ``config.stream_timeout`` the whole stream. Once events flow, a failure is a result and not a
    :class:`RequestFailedError`, since a second attempt would dispatch the same events again.
    """
    limit = f"timed out after {seconds:g} seconds"
    with foreign_errors(request, limit=limit):
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(seconds):
                response = await stack.enter_async_context(
                    open_response(client, request, silence=seconds, follow=config.follow_redirects)
                )
                problem = _stream_problem(response, request)
                if problem is not None:
                    body = await read_body(response, config.max_body_bytes)
                    result = _result(response, request, config, body)
                    result.success, result.error, result.hint = False, str(problem), problem.hint
                    return result
            failure = await _dispatch(response, request, config, fan, seconds)
    return HttpResult(
        success=failure is None,
        status_code=response.status_code,
        body=fan.events,
        headers=header_dict(response),
        duration_ms=0,
        error=None if failure is None else str(failure),
        truncated=fan.truncated,
        hint="" if failure is None else failure.hint,
    )


async def _dispatch(
    response: "httpx2.Response",
    request: PreparedRequest,
    config: HttpConfig,
    fan: SinkFan,
    seconds: float,
) -> Failure | None:
    """Read to the end of the stream; returns the failure that ended it early, or ``None``."""
    parser = SseParser(config.max_event_bytes)
    silence = f"stream was silent for {seconds:g} seconds"
    try:
        async with (
            asyncio.timeout(config.stream_timeout) as whole,
            contextlib.aclosing(response.aiter_bytes()) as chunks,
        ):
            while True:
                with foreign_errors(request, limit=silence):
                    chunk = await anext(chunks, None)
                if chunk is None:
                    return None
                for event in parser.feed(chunk):
                    await fan.write(event.data, seconds=config.timeout)
                    if not fan.alive:
                        return Failure("every sink failed", "see sink_errors")
    except SseEventTooLargeError:
        return Failure(
            f"an event is larger than max_event_bytes ({config.max_event_bytes})",
            "raise it or request smaller events",
        )
    except TimeoutError:
        if not whole.expired():
            raise
        return Failure(
            f"stream took longer than stream_timeout ({config.stream_timeout:g} seconds)",
            "raise it",
        )
    except RequestFailedError as error:
        return Failure(error.reason, error.hint)


def _stream_problem(response: "httpx2.Response", request: PreparedRequest) -> Failure | None:
    if not 200 <= response.status_code < 300:
        return Failure(status_error(response, request))
    content_type = header_dict(response).get("content-type", "")
    if media_type(content_type) in ("", "text/event-stream"):
        return None
    # Scrubbed first: a credential is not recognised after splitting and lower-casing.
    shown = media_type(request.secrets.scrub(content_type))[:100]
    return Failure(f"expected a text/event-stream, got {shown}", "use mode sync for this address")


def _result(
    response: "httpx2.Response", request: PreparedRequest, config: HttpConfig, body: Body
) -> HttpResult:
    headers = header_dict(response)
    failure: Failure | None = None
    if not 200 <= response.status_code < 400:
        failure = Failure(status_error(response, request))
    elif body.truncated:
        failure = Failure(
            f"response body is larger than max_body_bytes ({config.max_body_bytes})",
            "raise it or request less",
        )
    return HttpResult(
        success=failure is None,
        status_code=response.status_code,
        body=parse_body(response, headers, body),
        headers=headers,
        duration_ms=0,
        error=None if failure is None else str(failure),
        truncated=body.truncated,
        hint="" if failure is None else failure.hint,
    )
