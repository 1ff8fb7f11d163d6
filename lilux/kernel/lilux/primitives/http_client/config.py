"""The configuration of an HTTP call, checked once and frozen.

``body`` is serialised as JSON, unless it is a string or bytes, which are sent unchanged
(:mod:`~lilux.primitives.http_client.request` has the details).

Keys beyond the specification's table, all optional:

- ``mode``: ``sync`` or ``stream``; from the config, or else from the parameters
- ``retry.on_status``: statuses (400 to 599) that are also retried
- ``retry.max_total``: seconds for all attempts and waits together; 300, or ``timeout`` if longer
- ``follow_redirects``: false
- ``max_body_bytes``: 10 MiB, measured after decompression
- ``max_event_bytes``: 1 MiB, for one event of a stream
- ``stream_timeout``: 3600 seconds for a whole stream; ``timeout`` then limits the wait for the
  response and each pause between chunks
- ``env``, ``env_mode``: variables for ``${VAR}``; ``merge`` (over the process environment, the
  default) or ``exact``
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
DEFAULT_TIMEOUT = 30.0
_MIB = 1024 * 1024
_MAX_ATTEMPTS = 100
_EXPECTED_TYPES = {dict: "a dict", str: "a string", bool: "true or false", list: "a list"}

T = TypeVar("T")


class InvalidConfigError(ValueError):
    """A key of the configuration is invalid; the message begins with its name.

    Its text is ``reason``, then ``hint``: what to do next.
    """

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(f"{reason}; {hint}" if hint else reason)
        self.reason = reason
        self.hint = hint


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """How often and for how long to retry; times in seconds."""

    max_attempts: int
    backoff: Literal["exponential", "linear"]
    on_status: frozenset[int]
    max_total: float

    def delay(self, attempt: int) -> float:
        """Return the wait after attempt number ``attempt``, starting at 0."""
        return float(2**attempt if self.backoff == "exponential" else attempt + 1)


@dataclass(frozen=True, kw_only=True)
class AuthTemplate:
    """A credential as a template, not yet rendered."""

    where: str
    credential: str = field(repr=False)
    header: str
    prefix: str


@dataclass(frozen=True, kw_only=True)
class HttpConfig:
    """A checked configuration; ``method``, ``url``, ``headers`` and ``body`` are templates."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, Any] = field(repr=False)
    body: Any = field(repr=False)
    auth: AuthTemplate | None
    timeout: float
    retry: RetryPolicy
    mode: Literal["sync", "stream"]
    follow_redirects: bool
    max_body_bytes: int
    max_event_bytes: int
    stream_timeout: float
    env: Mapping[str, str] = field(repr=False)
    env_mode: Literal["merge", "exact"]


def parse_config(config: Mapping[str, Any], params: Mapping[str, Any]) -> HttpConfig:
    """Check ``config``; unknown keys are ignored.

    Raises :class:`InvalidConfigError`, which names the key and never its value, since a value
    may be a misplaced credential.
    """
    if not isinstance(config, Mapping):
        raise InvalidConfigError(f"config: expected a dict, got {type(config).__name__}")
    if config.get("url") is None:
        raise InvalidConfigError("url: required", "pass the address to request")
    timeout = _seconds(config, "timeout", DEFAULT_TIMEOUT)
    mode_source = config if config.get("mode") is not None else params
    return HttpConfig(
        method=_typed(config, "method", str, "GET"),
        url=_typed(config, "url", str, ""),
        headers=_header_templates(_typed(config, "headers", dict, {})),
        body=config.get("body"),
        auth=_auth(_typed(config, "auth", dict, {})),
        timeout=timeout,
        retry=_retry(_typed(config, "retry", dict, {}), timeout),
        mode=_choice(mode_source, "mode", "sync", "stream"),
        follow_redirects=_typed(config, "follow_redirects", bool, False),
        max_body_bytes=_positive_int(config, "max_body_bytes", 10 * _MIB),
        max_event_bytes=_positive_int(config, "max_event_bytes", _MIB),
        stream_timeout=_seconds(config, "stream_timeout", 3600.0),
        env=_variables(_typed(config, "env", dict, {})),
        env_mode=_choice(config, "env_mode", "merge", "exact"),
    )


def _retry(retry: dict[str, Any], timeout: float) -> RetryPolicy:
    on_status = _typed(retry, "on_status", list, [], "retry.")
    for index, status in enumerate(on_status):
        if not _is_int(status) or not 400 <= status <= 599:
            raise InvalidConfigError(
                f"retry.on_status[{index}]: expected a status from 400 to 599",
                "list the error statuses to retry",
            )
    attempts = _positive_int(retry, "max_attempts", 3 if retry else 1, "retry.")
    if attempts > _MAX_ATTEMPTS:
        raise InvalidConfigError(f"retry.max_attempts: at most {_MAX_ATTEMPTS}", "lower it")
    return RetryPolicy(
        max_attempts=attempts,
        backoff=_choice(retry, "backoff", "exponential", "linear", "retry."),
        on_status=frozenset(on_status),
        max_total=_seconds(retry, "max_total", max(300.0, timeout), "retry."),
    )


def _auth(auth: dict[str, Any]) -> AuthTemplate | None:
    if not auth:
        return None
    kind = auth.get("type")
    if kind not in ("bearer", "api_key"):
        raise InvalidConfigError("auth.type: expected 'bearer' or 'api_key'", "choose one of them")
    name = "token" if kind == "bearer" else "key"
    credential = auth.get(name)
    if not isinstance(credential, str):
        raise InvalidConfigError(
            f"auth.{name}: expected a string for type '{kind}'",
            f'write, for example, {name}: "${{API_KEY}}"',
        )
    default = "Authorization" if kind == "bearer" else "X-API-Key"
    return AuthTemplate(
        where=f"auth.{name}",
        credential=credential,
        header=_typed(auth, "header", str, default, "auth."),
        prefix="Bearer " if kind == "bearer" else "",
    )


def _header_templates(headers: dict[Any, Any]) -> dict[str, Any]:
    for name in headers:
        if not isinstance(name, str):
            raise InvalidConfigError("headers: every name must be a string", "quote it")
    return headers


def _variables(env: dict[Any, Any]) -> dict[str, str]:
    for name, value in env.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidConfigError(f"env.{name}: expected a string", "quote it")
    return env


def _typed(source: Mapping[str, Any], key: str, kind: type[T], default: T, prefix: str = "") -> T:
    value = source.get(key)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise InvalidConfigError(
            f"{prefix}{key}: expected {_EXPECTED_TYPES[kind]}, got {type(value).__name__}"
        )
    return value


C = TypeVar("C", bound=str)


def _choice(source: Mapping[str, Any], key: str, default: C, other: C, prefix: str = "") -> C:
    value = source.get(key)
    if value is None:
        return default
    for choice in (default, other):
        if value == choice:
            return choice
    raise InvalidConfigError(
        f"{prefix}{key}: expected '{default}' or '{other}'", "choose one of them"
    )


def _seconds(source: Mapping[str, Any], key: str, default: float, prefix: str = "") -> float:
    value = source.get(key)
    if value is None:
        return default
    if not (_is_int(value) or isinstance(value, float)) or not 0 < value < math.inf:
        raise InvalidConfigError(f"{prefix}{key}: expected a number of seconds greater than 0")
    try:
        return float(value)
    except OverflowError:
        raise InvalidConfigError(f"{prefix}{key}: too many seconds", "lower it") from None


def _positive_int(source: Mapping[str, Any], key: str, default: int, prefix: str = "") -> int:
    value = source.get(key)
    if value is None:
        return default
    if not _is_int(value) or value < 1:
        raise InvalidConfigError(f"{prefix}{key}: expected an integer of at least 1")
    return int(value)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
