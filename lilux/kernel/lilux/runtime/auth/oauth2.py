"""The OAuth2 refresh_token grant (RFC 6749, section 6): one request, bounded in time and size."""

import asyncio
from urllib.parse import quote_plus, urlsplit

import httpx2
import msgspec

from lilux.primitives.errors import RefreshError
from lilux.runtime.auth.token import (
    TokenGrant,
    TokenRecord,
    check_credential,
    check_seconds,
    is_loopback,
    split_scopes,
)

MAX_RESPONSE_BYTES = 256 * 1024

_TRY_LATER = "try again later"
_CHECK_CLIENT = "check token_url, client_id and client_secret, and store them with set_token"
_AUTHENTICATE = "authenticate again and store the new token with set_token"

# Only these words of a response are repeated: the rest of it may echo the request.
_HINTS = {
    "invalid_client": _CHECK_CLIENT,
    "invalid_grant": _AUTHENTICATE,
    "invalid_request": _CHECK_CLIENT,
    "invalid_scope": _AUTHENTICATE,
    "server_error": _TRY_LATER,
    "temporarily_unavailable": _TRY_LATER,
    "unauthorized_client": _CHECK_CLIENT,
    "unsupported_grant_type": _CHECK_CLIENT,
}


async def request_refresh(record: TokenRecord, *, timeout_seconds: float) -> TokenGrant:
    """Exchange the refresh token of ``record`` for a new grant.

    Redirects are not followed. Raises ``RefreshError`` if the endpoint cannot be reached in
    ``timeout_seconds``, refuses, or does not return a token; the message never contains a
    credential. Cancellation closes the connection; the endpoint may already have acted.
    """
    try:
        async with asyncio.timeout(timeout_seconds):
            status, body = await _post(record, timeout_seconds)
    except (TimeoutError, httpx2.TimeoutException):
        raise _failure(record, f"did not answer within {timeout_seconds:g} s", _TRY_LATER) from None
    except RefreshError:
        raise
    except Exception as error:  # noqa: BLE001 - a foreign error's text may contain the request
        raise _failure(
            record,
            f"could not be reached ({type(error).__name__})",
            "check token_url and the network, then try again",
        ) from None
    return _read_response(record, status, body)


async def _post(record: TokenRecord, timeout_seconds: float) -> tuple[int, bytes]:
    assert record.token_url is not None  # noqa: S101 - for the type checker; can_refresh was checked
    assert record.refresh_token is not None  # noqa: S101 - as above
    form = {"grant_type": "refresh_token", "refresh_token": record.refresh_token}
    auth: httpx2.BasicAuth | None = None
    if record.client_id is not None:
        if record.client_secret is not None and record.client_auth == "basic":
            auth = httpx2.BasicAuth(quote_plus(record.client_id), quote_plus(record.client_secret))
        else:
            form["client_id"] = record.client_id
            if record.client_secret is not None:
                form["client_secret"] = record.client_secret
    # A proxy from the environment only tunnels https, but could read plain http to loopback.
    trust_env = not is_loopback(urlsplit(record.token_url).hostname or "")
    # A decompressed body could be far larger than the received one.
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    async with (
        httpx2.AsyncClient(timeout=timeout_seconds, trust_env=trust_env) as client,
        client.stream(
            "POST", record.token_url, data=form, headers=headers, auth=auth, follow_redirects=False
        ) as response,
    ):
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > MAX_RESPONSE_BYTES:
                raise _failure(
                    record, f"answered with more than {MAX_RESPONSE_BYTES} bytes", _CHECK_CLIENT
                )
        return response.status_code, bytes(body)


def _read_response(record: TokenRecord, status: int, body: bytes) -> TokenGrant:
    fields = _decode_object(body)
    # Some endpoints refuse with status 200.
    refusal = fields.get("error")
    if isinstance(refusal, str) and refusal in _HINTS:
        raise _failure(record, f"refused the request ({refusal})", _HINTS[refusal])
    if status != 200 or refusal is not None:
        hint = _TRY_LATER if status >= 500 or status == 429 else _CHECK_CLIENT
        raise _failure(record, f"answered HTTP {status}", hint)
    try:
        return _read_grant(fields)
    except (TypeError, ValueError):
        raise _failure(record, "did not return a valid token", _CHECK_CLIENT) from None


def _decode_object(body: bytes) -> dict[str, object]:
    try:
        return msgspec.json.decode(body, type=dict[str, object])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}


def _read_grant(fields: dict[str, object]) -> TokenGrant:
    """Return the grant; raises ``TypeError`` or ``ValueError`` for invalid fields."""
    access_token = _credential("access_token", fields.get("access_token"))
    refresh_token = fields.get("refresh_token")
    scope = fields.get("scope")
    if scope is not None and not isinstance(scope, str):
        raise TypeError
    scopes = None if scope is None else split_scopes(scope)
    for part in scopes or ():
        check_credential("scope", part)
    return TokenGrant(
        access_token=access_token,
        refresh_token=_credential("refresh_token", refresh_token) if refresh_token else None,
        lifetime=_lifetime(fields.get("expires_in")),
        scopes=scopes,
    )


def _credential(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    check_credential(name, value)
    return value


def _lifetime(value: object) -> float | None:
    if value is None:
        return None
    # A number according to the RFC, but several servers send a string.
    seconds = check_seconds("expires_in", float(value) if isinstance(value, str) else value)
    if seconds < 0:
        raise ValueError
    return seconds


def _failure(record: TokenRecord, reason: str, hint: str) -> RefreshError:
    host = urlsplit(record.token_url or "").hostname
    return RefreshError(
        f"the token of {record.service!r} could not be refreshed"
        f": the token endpoint at {host} {reason}",
        hint=hint,
    )
