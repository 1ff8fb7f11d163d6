"""Trying again: explicit, bounded in attempts and in time, with a clock that can be replaced."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from lilux.primitives.http_client.config import RetryPolicy
from lilux.primitives.http_client.exchange import RequestFailedError
from lilux.primitives.http_client.result import HttpResult


@dataclass(frozen=True, kw_only=True)
class Timing:
    """The clocks: ``monotonic`` and ``wall`` in seconds, and how to wait."""

    monotonic: Callable[[], float] = field(default=time.monotonic)
    wall: Callable[[], float] = field(default=time.time)
    sleep: Callable[[float], Awaitable[object]] = field(default=asyncio.sleep)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How the last attempt ended: a result, or else a failure; and how many there were."""

    result: HttpResult | None = None
    failure: RequestFailedError | None = None
    attempts: int


async def run_with_retries(
    attempt: Callable[[float], Awaitable[HttpResult]],
    *,
    policy: RetryPolicy,
    seconds: float,
    timing: Timing,
) -> Outcome:
    """Call ``attempt`` until it succeeds, must not be repeated, or a bound is reached.

    Each attempt is given ``seconds``, or what is left of ``policy.max_total`` if that is less.
    A wait that would not end before ``max_total`` is not begun, however long a server asks for:
    the last outcome is given back at once. Cancellation ends a wait as it ends an attempt.
    """
    deadline = timing.monotonic() + policy.max_total
    attempts = 0
    while True:
        left = deadline - timing.monotonic()
        wait = policy.delay(attempts)
        attempts += 1
        try:
            result = await attempt(min(seconds, left))
        except RequestFailedError as failure:
            outcome = Outcome(failure=failure, attempts=attempts)
            if not failure.retryable:
                return outcome
        else:
            outcome = Outcome(result=result, attempts=attempts)
            if result.status_code not in policy.on_status:
                return outcome
            asked = retry_after(result.headers, now=timing.wall())
            wait = wait if asked is None else asked
        if attempts >= policy.max_attempts or timing.monotonic() + wait >= deadline:
            return outcome
        await timing.sleep(wait)


def retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """Seconds that ``Retry-After`` (seconds or an HTTP date) asks for; ``None`` if unreadable.

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
