"""The HTTP client: one call from its configuration to its result.

::

    async with HttpClientPrimitive() as http:
        result = await http.execute({"url": "https://api.example.org/items/{id}"}, {"id": 7})

Every expected failure, including an invalid configuration, is a failed :class:`HttpResult`; only
cancellation raises. :mod:`~lilux.primitives.http_client.config` lists the configuration keys,
:mod:`~lilux.primitives.http_client.request` describes how values are inserted.
"""

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from lilux.primitives.errors import ConfigurationError
from lilux.primitives.http_client.attempt import read_response, stream_response
from lilux.primitives.http_client.config import HttpConfig, InvalidConfigError, parse_config
from lilux.primitives.http_client.exchange import RequestFailedError
from lilux.primitives.http_client.pool import ClientPool
from lilux.primitives.http_client.request import prepare_request
from lilux.primitives.http_client.result import HttpResult
from lilux.primitives.http_client.retry import Timing, run_with_retries
from lilux.primitives.http_client.sinks import SINKS_KEY, ReturnSink, Sink, SinkFan, sort_sinks

__all__ = ["HttpClientPrimitive", "HttpResult", "ReturnSink", "Sink", "Timing"]


class HttpClientPrimitive:
    """Makes HTTP requests over pooled connections, from any number of tasks, loops and threads.

    ``timing`` replaces the clocks of the retries, ``environ`` the process environment for
    ``${VAR}``. A client can be used again after :meth:`close`.
    """

    def __init__(
        self, *, timing: Timing | None = None, environ: Mapping[str, str] | None = None
    ) -> None:
        self._timing = timing or Timing()
        self._environ = os.environ if environ is None else environ
        self._pool = ClientPool()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; running requests fail, later ones open new connections."""
        await self._pool.close()

    async def execute(
        self, config: dict[str, Any], params: dict[str, Any] | None = None
    ) -> HttpResult:
        """Make the request that ``config`` describes, with ``params`` in its placeholders.

        In stream mode the data of each event goes to the sinks in ``params["__sinks"]``, or to
        a ``ReturnSink`` if there are none; the sinks are closed when the call ends.
        Cancellation closes the connection and the sinks, and propagates.
        """
        started = self._timing.monotonic()
        result: HttpResult
        params = {} if params is None else params
        sinks, problem = sort_sinks(params)
        fan = SinkFan(sinks)
        try:
            if problem is not None:
                raise problem
            result = await self._call(parse_config(config, params), params, fan)
        except (InvalidConfigError, ConfigurationError) as error:
            result = _failed(error, attempts=0)
        finally:
            await fan.close()
        result.sink_errors = fan.errors()
        result.duration_ms = int((self._timing.monotonic() - started) * 1000)
        return result

    async def _call(
        self, config: HttpConfig, params: Mapping[str, Any], fan: SinkFan
    ) -> HttpResult:
        values = {name: value for name, value in params.items() if name != SINKS_KEY}
        request = prepare_request(config, values, self._environ)
        fan.scrub = request.secrets.scrub
        client = await self._pool.client()
        stream = config.mode == "stream"
        if stream and not fan.names:
            fan.add(ReturnSink())

        async def attempt(seconds: float) -> HttpResult:
            if stream:
                return await stream_response(client, request, config, fan, seconds)
            return await read_response(client, request, config, seconds)

        outcome = await run_with_retries(
            attempt, policy=config.retry, seconds=config.timeout, timing=self._timing
        )
        end, attempts = outcome
        result = end if isinstance(end, HttpResult) else _failed(end, attempts=attempts)
        result.attempts = attempts
        if stream:
            result.stream_events_count = fan.count
            result.stream_destinations = fan.names
        return result


def _failed(
    error: InvalidConfigError | ConfigurationError | RequestFailedError, *, attempts: int
) -> HttpResult:
    return HttpResult(
        success=False,
        status_code=0,
        body=None,
        headers={},
        duration_ms=0,
        error=str(error),
        attempts=attempts,
        hint=error.hint,
    )
