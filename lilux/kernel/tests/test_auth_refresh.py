"""The refresh_token grant against a real endpoint: requests, accepted and refused responses."""

import asyncio
import base64
import json
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from lilux.primitives.errors import AuthenticationRequired, RefreshError
from lilux.runtime.auth import AuthStore
from oauth_server import Answer, TokenRequest, TokenServer, json_answer

SECRETS = ("access-0", "refresh-0", "client-secret")


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def expired_store(
    folder: Path, url: str, clock: Clock, *, refresh_timeout: float = 20.0, **more: str
) -> AuthStore:
    store = AuthStore(
        storage_dir=folder / "auth", keychain=None, clock=clock, refresh_timeout=refresh_timeout
    )
    store.set_token(
        "github",
        "access-0",
        "refresh-0",
        expires_in=3600,
        scopes=["repo", "user"],
        token_url=url,
        **more,  # type: ignore[arg-type] # client_auth is a Literal that a test spells out
    )
    clock.now += 3601
    return store


def failure(store: AuthStore) -> str:
    """Return the message of a failing refresh, after checking that no secret is printed."""
    with pytest.raises(RefreshError) as raised:
        asyncio.run(store.get_token("github"))
    printed = "".join(traceback.format_exception(raised.value))
    context = raised.value.__context__
    while context is not None:
        printed += repr(context)
        context = context.__context__
    for secret in SECRETS:
        assert secret not in printed
    message = str(raised.value)
    prefix = "the token of 'github' could not be refreshed: the token endpoint at 127.0.0.1 "
    assert message.startswith(prefix)
    return message.removeprefix(prefix)


def test_expired_token_is_refreshed_by_a_form_encoded_post(tmp_path: Path, clock: Clock) -> None:
    with TokenServer() as server:
        store = expired_store(tmp_path, server.url, clock)

        assert asyncio.run(store.get_token("github")) == "access-1"

    (request,) = server.requests
    assert request.path == "/token"
    assert request.form == {"grant_type": "refresh_token", "refresh_token": "refresh-0"}
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    assert request.headers["accept"] == "application/json"
    assert "authorization" not in request.headers


def test_refreshed_token_is_stored_and_used_until_it_expires(tmp_path: Path, clock: Clock) -> None:
    with TokenServer() as server:
        store = expired_store(tmp_path, server.url, clock)
        asyncio.run(store.get_token("github"))
        clock.now += 3569

        assert asyncio.run(store.get_token("github")) == "access-1"
        assert len(server.requests) == 1


def test_rotated_refresh_token_is_used_the_next_time(tmp_path: Path, clock: Clock) -> None:
    with TokenServer() as server:
        store = expired_store(tmp_path, server.url, clock)
        asyncio.run(store.get_token("github"))
        clock.now += 3601

        assert asyncio.run(store.get_token("github")) == "access-2"

    assert [request.form["refresh_token"] for request in server.requests] == [
        "refresh-0",
        "refresh-1",
    ]


def test_refresh_token_that_is_not_rotated_is_kept(tmp_path: Path, clock: Clock) -> None:
    with TokenServer(lambda _: json_answer(access_token="access-new", expires_in=60)) as server:
        store = expired_store(tmp_path, server.url, clock)
        asyncio.run(store.get_token("github"))
        clock.now += 61
        asyncio.run(store.get_token("github"))

    assert [request.form["refresh_token"] for request in server.requests] == ["refresh-0"] * 2


def test_token_is_refreshed_shortly_before_it_expires(tmp_path: Path, clock: Clock) -> None:
    with TokenServer() as server:
        store = expired_store(tmp_path, server.url, clock)
        clock.now -= 3601 - 3569
        assert asyncio.run(store.get_token("github")) == "access-0"
        clock.now += 1

        assert asyncio.run(store.get_token("github")) == "access-1"


def test_short_lived_token_is_usable_for_most_of_its_lifetime(tmp_path: Path, clock: Clock) -> None:
    store = AuthStore(storage_dir=tmp_path / "auth", keychain=None, clock=clock)
    store.set_token("github", "access-0", expires_in=10)
    clock.now += 8.9

    assert asyncio.run(store.get_token("github")) == "access-0"


@pytest.mark.parametrize("said", [{}, {"expires_in": "7200"}, {"expires_in": 7200.5}])
def test_lifetime_may_be_missing_or_a_string(
    tmp_path: Path, clock: Clock, said: dict[str, object]
) -> None:
    with TokenServer(lambda _: json_answer(200, access_token="access-new", **said)) as server:
        store = expired_store(tmp_path, server.url, clock)
        asyncio.run(store.get_token("github"))
        clock.now += 3500 if not said else 7100

        assert asyncio.run(store.get_token("github")) == "access-new"
        assert len(server.requests) == 1
        clock.now += 100
        asyncio.run(store.get_token("github"))
        assert len(server.requests) == 2


def test_confidential_client_authenticates_by_basic(tmp_path: Path, clock: Clock) -> None:
    with TokenServer() as server:
        store = expired_store(
            tmp_path, server.url, clock, client_id="my:client", client_secret="client-secret %"
        )
        asyncio.run(store.get_token("github"))

    (request,) = server.requests
    scheme, encoded = request.headers["authorization"].split()
    assert scheme == "Basic"
    assert base64.b64decode(encoded) == b"my%3Aclient:client-secret+%25"
    assert "client_secret" not in request.form
    assert "client_id" not in request.form


def test_confidential_client_can_authenticate_in_the_form(tmp_path: Path, clock: Clock) -> None:
    with TokenServer() as server:
        store = expired_store(
            tmp_path,
            server.url,
            clock,
            client_id="client",
            client_secret="client-secret &=",
            client_auth="body",
        )
        asyncio.run(store.get_token("github"))

    (request,) = server.requests
    assert "authorization" not in request.headers
    assert request.form["client_id"] == "client"
    assert request.form["client_secret"] == "client-secret &="


def test_public_client_sends_its_id_in_the_form(tmp_path: Path, clock: Clock) -> None:
    with TokenServer() as server:
        store = expired_store(tmp_path, server.url, clock, client_id="client")
        asyncio.run(store.get_token("github"))

    assert server.requests[0].form["client_id"] == "client"
    assert "client_secret" not in server.requests[0].form


def test_proxy_from_the_environment_does_not_see_loopback(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TokenServer() as server, TokenServer() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        store = expired_store(tmp_path, server.url, clock)

        assert asyncio.run(store.get_token("github")) == "access-1"
        assert proxy.requests == []


def test_scopes_are_kept_if_the_response_has_none(tmp_path: Path, clock: Clock) -> None:
    with TokenServer() as server:
        store = expired_store(tmp_path, server.url, clock)

        assert asyncio.run(store.get_token("github", scope="repo")) == "access-1"
        assert asyncio.run(store.get_token("github", scope="user repo")) == "access-1"


def test_scope_that_a_refresh_no_longer_grants_is_reported(tmp_path: Path, clock: Clock) -> None:
    with TokenServer(lambda _: json_answer(access_token="access-new", scope="user")) as server:
        store = expired_store(tmp_path, server.url, clock)

        with pytest.raises(AuthenticationRequired) as raised:
            asyncio.run(store.get_token("github", scope="repo"))
        assert asyncio.run(store.get_token("github", scope="user")) == "access-new"

    assert str(raised.value) == (
        "the token of 'github' lacks the scope 'repo'"
        "; authenticate again with that scope and store the new token with set_token"
    )


def test_missing_scope_is_reported_without_a_refresh(tmp_path: Path, clock: Clock) -> None:
    with TokenServer() as server:
        store = expired_store(tmp_path, server.url, clock)

        with pytest.raises(AuthenticationRequired):
            asyncio.run(store.get_token("github", scope="admin"))

    assert server.requests == []


AUTHENTICATE = "authenticate again and store the new token with set_token"
CHECK_CLIENT = "check token_url, client_id and client_secret, and store them with set_token"


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [
        (400, "invalid_grant", f"refused the request (invalid_grant); {AUTHENTICATE}"),
        (401, "invalid_client", f"refused the request (invalid_client); {CHECK_CLIENT}"),
        (200, "invalid_grant", f"refused the request (invalid_grant); {AUTHENTICATE}"),
        (
            503,
            "temporarily_unavailable",
            "refused the request (temporarily_unavailable); try again later",
        ),
        (400, "refresh-0", f"answered HTTP 400; {CHECK_CLIENT}"),
        (200, "refresh-0", f"answered HTTP 200; {CHECK_CLIENT}"),
    ],
)
def test_refusal_is_reported_without_the_text_of_the_endpoint(
    tmp_path: Path, clock: Clock, status: int, error: str, message: str
) -> None:
    def refuse(request: TokenRequest) -> Answer:
        return json_answer(status, error=error, error_description=f"{request.form} access-0")

    with TokenServer(refuse) as server:
        store = expired_store(
            tmp_path, server.url, clock, client_id="client", client_secret="client-secret"
        )

        assert failure(store) == message


@pytest.mark.parametrize(
    ("status", "advice"),
    [(500, "try again later"), (429, "try again later"), (404, CHECK_CLIENT), (204, CHECK_CLIENT)],
)
def test_other_status_is_reported(tmp_path: Path, clock: Clock, status: int, advice: str) -> None:
    with TokenServer(lambda _: Answer(status=status)) as server:
        store = expired_store(tmp_path, server.url, clock)

        assert failure(store) == f"answered HTTP {status}; {advice}"


def test_failed_refresh_keeps_the_refresh_token_for_the_next_try(
    tmp_path: Path, clock: Clock
) -> None:
    answers = [Answer(status=500), json_answer(access_token="access-new")]
    with TokenServer(lambda _: answers.pop(0)) as server:
        store = expired_store(tmp_path, server.url, clock)
        failure(store)

        assert store.is_authenticated("github") is True
        assert asyncio.run(store.get_token("github")) == "access-new"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>refresh-0</html>",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'["access-1"]',
        b"{}",
        b'{"access_token": ""}',
        b'{"access_token": 5}',
        b'{"access_token": null}',
        b'{"access_token": "line\\r\\nbreak"}',
        b'{"access_token": "a", "refresh_token": 5}',
        b'{"access_token": "a", "refresh_token": "line\\nbreak"}',
        b'{"access_token": "a", "scope": ["repo"]}',
        b'{"access_token": "a", "expires_in": true}',
        b'{"access_token": "a", "expires_in": "soon"}',
        b'{"access_token": "a", "expires_in": "nan"}',
        b'{"access_token": "a", "expires_in": -1}',
        b'{"access_token": "a", "expires_in": 1' + b"0" * 400 + b"}",
    ],
)
def test_response_that_is_not_a_token_is_refused(tmp_path: Path, clock: Clock, body: bytes) -> None:
    with TokenServer(lambda _: Answer(body=[body])) as server:
        store = expired_store(tmp_path, server.url, clock)

        assert failure(store) == f"did not return a valid token; {CHECK_CLIENT}"


def test_huge_response_is_not_read_to_its_end(tmp_path: Path, clock: Clock) -> None:
    with TokenServer(lambda _: Answer(body=iter(lambda: b" " * 65536, b""))) as server:
        store = expired_store(tmp_path, server.url, clock)

        assert failure(store) == f"answered with more than 262144 bytes; {CHECK_CLIENT}"


def test_compressed_response_is_not_decompressed(tmp_path: Path, clock: Clock) -> None:
    packed = Answer(headers={"Content-Encoding": "gzip"}, body=[b"\x1f\x8b\x08"])
    with TokenServer(lambda _: packed) as server:
        store = expired_store(tmp_path, server.url, clock)

        assert failure(store) == f"did not return a valid token; {CHECK_CLIENT}"
        assert server.requests[0].headers["accept-encoding"] == "identity"


def test_silent_endpoint_times_out(tmp_path: Path, clock: Clock) -> None:
    with TokenServer() as server:
        server.hold()
        store = expired_store(tmp_path, server.url, clock, refresh_timeout=0.3)

        assert failure(store) == "did not answer within 0.3 s; try again later"


def test_dripping_endpoint_times_out_as_well(tmp_path: Path, clock: Clock) -> None:
    hung_up = threading.Event()

    def drip() -> Iterator[bytes]:
        # Each byte comes well within a timeout for one read; the body never ends.
        while not hung_up.wait(0.02):
            yield b" "

    with TokenServer(lambda _: Answer(body=drip())) as server:
        store = expired_store(tmp_path, server.url, clock, refresh_timeout=0.3)

        assert failure(store) == "did not answer within 0.3 s; try again later"
        hung_up.set()


def test_unreachable_endpoint_is_reported(tmp_path: Path, clock: Clock) -> None:
    with TokenServer() as server:
        url = server.url
    store = expired_store(tmp_path, url, clock)

    assert failure(store) == (
        "could not be reached (ConnectError); check token_url and the network, then try again"
    )


def test_redirect_does_not_take_the_refresh_token_elsewhere(tmp_path: Path, clock: Clock) -> None:
    with TokenServer() as elsewhere:
        redirect = Answer(status=307, headers={"Location": elsewhere.url})
        with TokenServer(lambda _: redirect) as server:
            store = expired_store(tmp_path, server.url, clock)

            assert failure(store) == f"answered HTTP 307; {CHECK_CLIENT}"
        assert elsewhere.requests == []


def test_endpoint_may_respond_in_chunks(tmp_path: Path, clock: Clock) -> None:
    body = json.dumps({"access_token": "access-new"}).encode()
    pieces = [bytes([byte]) for byte in body]
    with TokenServer(lambda _: Answer(body=pieces)) as server:
        store = expired_store(tmp_path, server.url, clock)

        assert asyncio.run(store.get_token("github")) == "access-new"
