"""AuthStore: stored tokens, scopes, and refused values."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lilux.primitives.errors import AuthenticationRequired
from lilux.runtime.auth import AuthStore
from lilux.runtime.auth.token import TokenGrant, TokenRecord

NOW = 1_000_000.0


def make_store(folder: Path, clock: Callable[[], float] = lambda: NOW, **more: Any) -> AuthStore:
    return AuthStore(storage_dir=folder / "auth", keychain=None, clock=clock, **more)


def test_token_is_returned_until_it_is_cleared(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    assert store.is_authenticated("github") is False
    store.set_token("github", "access-0")

    assert store.is_authenticated("github") is True
    assert asyncio.run(store.get_token("github")) == "access-0"

    store.clear_token("github")
    assert store.is_authenticated("github") is False


def test_signature_is_the_documented_one(tmp_path: Path) -> None:
    store = AuthStore("app", tmp_path / "auth", keychain=None, clock=lambda: NOW)

    store.set_token("github", "access-0", "refresh-0", 3600, ["repo"])

    assert asyncio.run(store.get_token("github", "repo")) == "access-0"


def test_missing_token_is_reported(tmp_path: Path) -> None:
    with pytest.raises(AuthenticationRequired) as raised:
        asyncio.run(make_store(tmp_path).get_token("github"))

    assert str(raised.value) == (
        "no token is stored for 'github'; authenticate and store one with set_token"
    )


def test_token_without_a_lifetime_does_not_expire(tmp_path: Path) -> None:
    make_store(tmp_path).set_token("github", "access-0", expires_in=None)
    store = make_store(tmp_path, lambda: NOW * 1000)

    assert store.is_authenticated("github") is True
    assert asyncio.run(store.get_token("github")) == "access-0"


@pytest.mark.parametrize(
    ("refresh_token", "token_url", "missing"),
    [
        (None, "https://auth.test/token", "refresh token"),
        (None, None, "refresh token"),
        ("refresh-0", None, "token_url to refresh it at"),
    ],
)
def test_expired_token_that_cannot_be_refreshed_is_reported(
    tmp_path: Path, refresh_token: str | None, token_url: str | None, missing: str
) -> None:
    store = make_store(tmp_path)
    store.set_token("github", "access-0", refresh_token, expires_in=0, token_url=token_url)

    with pytest.raises(AuthenticationRequired) as raised:
        asyncio.run(store.get_token("github"))

    assert str(raised.value) == (
        f"the token of 'github' has expired and has no {missing}"
        "; authenticate again and store the new token with set_token"
    )
    assert store.is_authenticated("github") is False


def test_expired_token_that_can_be_refreshed_is_authenticated(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    store.set_token(
        "github", "access-0", "refresh-0", expires_in=0, token_url="https://auth.test/token"
    )

    assert store.is_authenticated("github") is True


@pytest.mark.parametrize("scopes", [["repo", "user"], "repo user", ("repo user",)])
def test_scopes_may_be_a_list_or_a_text(tmp_path: Path, scopes: Any) -> None:
    store = make_store(tmp_path)
    store.set_token("github", "access-0", scopes=scopes)

    assert asyncio.run(store.get_token("github", scope="user")) == "access-0"
    assert asyncio.run(store.get_token("github", scope="repo user")) == "access-0"


@pytest.mark.parametrize("scopes", [None, [], ["repo", "admin:org"]])
def test_scope_that_was_not_granted_is_named(tmp_path: Path, scopes: list[str] | None) -> None:
    store = make_store(tmp_path)
    store.set_token("github", "access-0", scopes=scopes)

    with pytest.raises(AuthenticationRequired) as raised:
        asyncio.run(store.get_token("github", scope="admin"))

    assert str(raised.value) == (
        "the token of 'github' lacks the scope 'admin'"
        "; authenticate again with that scope and store the new token with set_token"
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"service": ""}, "service must be a name of printable characters"),
        ({"service": "a\nb"}, "service must be a name of printable characters"),
        ({"access_token": ""}, "access_token must be one or more printable ASCII characters"),
        (
            {"access_token": "secret\r\nX-Evil: 1"},
            "access_token must be one or more printable ASCII characters",
        ),
        (
            {"refresh_token": "sécret"},
            "refresh_token must be one or more printable ASCII characters",
        ),
        (
            {"client_id": "client", "client_secret": "secret\udc80"},
            "client_secret must be one or more printable ASCII characters",
        ),
        ({"client_secret": "secret"}, "client_secret was given without client_id; pass both"),
        ({"client_auth": "digest"}, "client_auth must be 'basic' or 'body'"),
        ({"expires_in": float("nan")}, "expires_in must be a finite number of seconds"),
        ({"expires_in": 10**400}, "expires_in must be a finite number of seconds"),
        ({"scopes": ["ré"]}, "scopes must be one or more printable ASCII characters"),
    ],
)
def test_invalid_value_is_refused_and_not_repeated(
    tmp_path: Path, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=r"must|without") as raised:
        make_store(tmp_path).set_token(**({"service": "github", "access_token": "a"} | values))

    assert str(raised.value) == message
    assert not (tmp_path / "auth").exists()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"service": 5}, "service must be a str, got int"),
        ({"access_token": b"bytes"}, "access_token must be a str, got bytes"),
        ({"refresh_token": 5}, "refresh_token must be a str, got int"),
        ({"expires_in": "3600"}, "expires_in must be a number of seconds, got str"),
        ({"expires_in": True}, "expires_in must be a number of seconds, got bool"),
        ({"scopes": [5]}, "scopes must be of type str, got int"),
    ],
)
def test_value_of_another_type_is_refused(
    tmp_path: Path, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError) as raised:
        make_store(tmp_path).set_token(**({"service": "github", "access_token": "a"} | values))

    assert str(raised.value) == message


def test_invalid_argument_is_refused(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    scope: Any = ["repo"]

    with pytest.raises(TypeError, match=r"^scope must be a str, got list$"):
        asyncio.run(store.get_token("github", scope=scope))
    for ask in (store.is_authenticated, store.clear_token):
        with pytest.raises(ValueError, match=r"^service must be a name of printable characters$"):
            ask("")
    with pytest.raises(ValueError, match=r"^refresh_timeout must be greater than 0 seconds$"):
        make_store(tmp_path, refresh_timeout=0)


def test_repr_of_a_record_has_no_secrets() -> None:
    record = TokenRecord(
        service="github",
        access_token="access-secret",
        refresh_token="refresh-secret",
        token_url="https://auth.test/token?key=url-secret",
        client_id="client",
        client_secret="client-secret",
    )
    grant = TokenGrant(access_token="access-secret", refresh_token="refresh-secret")

    for text in (repr(record), str(record), f"{record}", repr(grant)):
        assert "secret" not in text


def test_another_store_sees_changes_at_once(tmp_path: Path) -> None:
    writer, reader = make_store(tmp_path), make_store(tmp_path)
    for token in ("access-0", "access-1"):
        writer.set_token("github", token)
        assert asyncio.run(reader.get_token("github")) == token
    writer.clear_token("github")
    assert reader.is_authenticated("github") is False


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://auth.test/token", "token_url must be https; plain http is for loopback only"),
        ("ftp://127.0.0.1/token", "token_url must be https; plain http is for loopback only"),
        ("http://127.0.0.1.evil.test/", "token_url must be https; plain http is for loopback only"),
        ("http://localhost.evil.test/", "token_url must be https; plain http is for loopback only"),
        (
            "https://me:client-secret@auth.test/",
            "token_url contains a user or password; pass client_id and client_secret",
        ),
        ("https://auth.test/#part", "token_url has a fragment; remove '#' and the text after it"),
        ("token", "token_url is not a URL; pass one such as https://host/token"),
        ("https://", "token_url is not a URL; pass one such as https://host/token"),
        ("https://auth.test:port/", "token_url is not a URL; pass one such as https://host/token"),
        ("https://[::1", "token_url is not a URL; pass one such as https://host/token"),
        (
            "http://127.0.0.1\\@evil.test/",
            "token_url is not a URL; pass one such as https://host/token",
        ),
        ("https://auth.test/\n", "token_url must be one or more printable ASCII characters"),
    ],
)
def test_unsafe_token_url_is_refused(tmp_path: Path, url: str, message: str) -> None:
    store = AuthStore(storage_dir=tmp_path / "auth", keychain=None)

    with pytest.raises(ValueError, match="token_url") as raised:
        store.set_token("github", "access-0", "refresh-0", token_url=url)

    assert str(raised.value) == message


@pytest.mark.parametrize(
    "url",
    [
        "https://auth.test/token?p=policy",
        "http://localhost:8080/token",
        "http://127.0.0.2/token",
        "http://[::1]:8080/token",
    ],
)
def test_safe_token_url_is_accepted(tmp_path: Path, url: str) -> None:
    store = AuthStore(storage_dir=tmp_path / "auth", keychain=None)

    store.set_token("github", "access-0", "refresh-0", token_url=url)

    assert store.is_authenticated("github") is True


def test_import_loads_no_heavy_module() -> None:
    script = (
        "import sys, lilux.runtime.auth\n"
        "heavy = {'asyncio', 'concurrent', 'cryptography', 'httpx2', 'keyring', 'msgspec'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    command = [sys.executable, "-c", script]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"[]\n"
