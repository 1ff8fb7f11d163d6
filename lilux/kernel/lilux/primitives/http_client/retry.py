"""Retries, limited in number and in time, with a replaceable clock."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lilux.primitives.http_client.config import RetryPolicy
from lilux.primitives.http_client.exchange import RequestFailedError
from lilux.primitives.http_client.result import HttpResult


@dataclass(frozen=True, kw_only=True)
class Timing:
    """The clocks: ``monotonic`` and ``wall`` in seconds, and ``sleep``."""

    monotonic: Callable[[], float] = field(default=time.monotonic)
    wall: Callable[[], float] = field(default=time.time)
    sleep: Callable[[float], Awaitable[object]] = field(default=asyncio.sleep)


class Outcome(NamedTuple):
    """The end of the last attempt, and the number of attempts."""

    end: HttpResult | RequestFailedError
    attempts: int


async def run_with_retries(
    attempt: Callable[[float], Awaitable[HttpResult]],
    *,
    policy: RetryPolicy,
    seconds: float,
    timing: Timing,
) -> Outcome:
    """Call ``attempt`` until it succeeds, must not be repeated, or a limit is reached.

    Each attempt gets ``seconds``, or the rest of ``policy.max_total`` if that is less. A wait
    that would exceed ``max_total``, also one that a server requests, is not started: the last
    outcome is returned at once. Cancellation ends a wait as well as an attempt.
    """
    deadline = timing.monotonic() + policy.max_total
    attempts = 0
    while True:
        remaining = deadline - timing.monotonic()
        wait = policy.delay(attempts)
        attempts += 1
        try:
            result = await attempt(min(seconds, remaining))
        except RequestFailedError as failure:
            outcome = Outcome(failure, attempts)
            if not failure.retryable:
                return outcome
        else:
            outcome = Outcome(result, attempts)
            if result.status_code not in policy.on_status:
                return outcome
            requested = retry_after(result.headers, now=timing.wall())
            wait = wait if requested is None else requested
        if attempts >= policy.max_attempts or timing.monotonic() + wait >= deadline:
            return outcome
        await timing.sleep(wait)


def retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """Return the seconds of ``Retry-After`` (a number or an HTTP date); ``None`` if malformed.

    ``now`` is in seconds since the epoch; a date in the past gives 0.
    """
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value) if len(value) <= 9 else float("inf")
    if not value:
        return None
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, OverflowError):
        return None
