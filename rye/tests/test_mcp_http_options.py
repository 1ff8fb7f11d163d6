"""The options of ``rye mcp --http``: addresses, origins and tokens."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest
from rye.errors import ParameterError, RyeError
from rye.mcp.http_options import (
    Address,
    Listener,
    open_listener,
    parse_address,
    parse_origin,
    read_tokens,
    require_token,
)
from rye.mcp.process import require_packages
from rye_command import rye
from rye_project import Project

TOKEN = "0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8321", ("127.0.0.1", 8321)),
        ("localhost:0", ("localhost", 0)),
        ("[::1]:80", ("::1", 80)),
        ("8321", ("127.0.0.1", 8321)),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == Address(*address)


@pytest.mark.parametrize(
    "text", ["", "host", "host:", ":80", "host:x", "host:65536", "::1:80", "host:-1", "host:٣"]
)
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_address(text)
    assert str(caught.value) == (
        f"invalid --http: expected HOST:PORT, got {text!r}; use for example --http 127.0.0.1:8321"
    )


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("http://localhost:6274", "http://localhost:6274"),
        ("HTTPS://Page.Example/", "https://page.example"),
        ("http://[::1]:80", "http://[::1]:80"),
        ("vscode-webview://0a-b", "vscode-webview://0a-b"),
    ],
)
def test_an_origin_is_a_scheme_and_a_host(text: str, origin: str) -> None:
    assert parse_origin(text) == origin


@pytest.mark.parametrize(
    "text", ["", "*", "null", "localhost:6274", "https://*.example", "https://a/b", "https://a b"]
)
def test_an_invalid_origin_is_refused(text: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_origin(text)
    assert str(caught.value) == (
        f"invalid --allow-origin: expected SCHEME://HOST:PORT, got {text!r}; "
        "use for example --allow-origin http://localhost:6274"
    )


def test_an_address_that_others_can_reach_needs_a_token() -> None:
    listener = open_listener(Address("0.0.0.0", 0))  # noqa: S104 - no server runs there
    with listener.socket:
        assert not listener.is_loopback
        require_token(listener, {"default": TOKEN})
        with pytest.raises(ParameterError) as caught:
            require_token(listener, {})
    assert str(caught.value).endswith(
        "is reachable from other machines, but no token is set; "
        "set RYE_MCP_TOKEN, pass --token-file, or listen on 127.0.0.1"
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.2"])
def test_the_loopback_interface_needs_no_token(host: str) -> None:
    listener = open_listener(Address(host, 0))
    with listener.socket:
        assert listener.is_loopback
        assert listener.address.port > 0
        require_token(listener, {})


def test_a_host_that_cannot_be_resolved_is_refused() -> None:
    with pytest.raises(ParameterError, match="cannot be resolved"):
        open_listener(Address("nowhere.invalid", 80))


def test_an_error_for_a_port_in_use_names_the_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="in use") as caught:
            open_listener(Address("127.0.0.1", port))
    assert caught.value.filename == f"127.0.0.1:{port}"


def test_host_headers_must_name_the_port_of_the_server() -> None:
    with socket.socket() as unbound:
        hosts = Listener(unbound, Address("127.0.0.2", 8321), is_loopback=True).hosts
    assert hosts == {"127.0.0.2:8321", "localhost:8321", "127.0.0.1:8321", "[::1]:8321"}


def private(tmp_path: Path, text: str, mode: int = 0o600) -> str:
    path = tmp_path / "token"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_token_file_takes_precedence_over_the_environment(tmp_path: Path) -> None:
    other = "fedcba9876543210"
    assert read_tokens({}, None) == {}
    assert read_tokens({"RYE_MCP_TOKEN": ""}, None) == {}
    assert read_tokens({"RYE_MCP_TOKEN": TOKEN}, None) == {"default": TOKEN}
    assert read_tokens({"RYE_MCP_TOKEN": TOKEN}, private(tmp_path, f"{other}\n")) == {
        "default": other
    }


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_token_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = private(tmp_path, TOKEN, mode)
    with pytest.raises(ParameterError) as caught:
        read_tokens({}, path)
    assert str(caught.value) == (
        f"invalid token: {path} is accessible to other users (mode {mode:04o}); "
        f"run: chmod 600 {path}"
    )


@pytest.mark.parametrize(
    ("text", "issue"),
    [
        ("short", "has 5 characters"),
        ("", "has 0 characters"),
        ("two words of some length", "contains characters that a header cannot contain"),
        ("ä" * 20, "contains characters that a header cannot contain"),
    ],
)
def test_an_invalid_token_is_refused_and_not_repeated(
    tmp_path: Path, text: str, issue: str
) -> None:
    with pytest.raises(ParameterError, match=issue) as caught:
        read_tokens({}, private(tmp_path, text))
    assert not text or text not in str(caught.value)
    assert "use at least 16 letters and digits" in str(caught.value)


def test_a_token_file_must_be_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ParameterError, match="is not a regular file; pass the file that contains"):
        read_tokens({}, str(tmp_path / "pipe"))
    with pytest.raises(
        ParameterError, match=r"missing does not exist; pass the file that contains"
    ):
        read_tokens({}, str(tmp_path / "missing"))


@pytest.mark.parametrize("package", ["mcp", "watchfiles"])
def test_the_error_for_a_missing_package_names_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(RyeError) as caught:
        require_packages("mcp", "watchfiles")
    assert str(caught.value) == (
        f"the MCP server needs the package '{package}', which is not installed; "
        "run `pip install 'rye[mcp]'`"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--http", "0.0.0.0:0"], "no token is set"),
        (["--http", "nonsense"], "expected HOST:PORT"),
        (["--http", "127.0.0.1:0", "--allow-origin", "*"], "invalid --allow-origin"),
        (["--allow-origin", "http://x"], "--token-file and --allow-origin require --http"),
        (
            ["--token-file", "x", "--print-config", "cursor"],
            "--token-file and --allow-origin require --http",
        ),
        (
            ["--http", "127.0.0.1:0", "--print-config", "cursor"],
            "port 0 means a different port at every start; pass a fixed port",
        ),
    ],
)
def test_invalid_options_exit_with_2(tmp_path: Path, arguments: list[str], message: str) -> None:
    project = Project(tmp_path)
    done = rye("mcp", *arguments, cwd=project.path, user=project.user)
    assert done.code == 2
    assert done.stdout == ""
    assert message in done.stderr


def test_a_token_file_may_name_its_tokens(tmp_path: Path) -> None:
    other = "b" * 16
    text = f"# who may call\nada: {TOKEN}\n\nci-1:   {other}\n"
    assert read_tokens({}, private(tmp_path, text)) == {"ada": TOKEN, "ci-1": other}
    # A single token may contain a colon.
    assert read_tokens({}, private(tmp_path, f"ci:{other}")) == {"default": f"ci:{other}"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"ada: {TOKEN}\n{TOKEN[::-1]}x\n", "entry 2 of {} is not `name: token`"),
        (f"a b: {TOKEN}\n", "entry 1 of {} is not `name: token`"),
        (f"ada: {TOKEN}\nada: {TOKEN}x\n", "{} has two tokens with the name 'ada'"),
        (f"ada: {TOKEN}\nbob: {TOKEN}\n", "{} has the same token under two names"),
        (f"ada: {TOKEN}\nbob: short\n", "the token in {}, entry 2, has 5 characters"),
    ],
)
def test_a_malformed_list_of_tokens_is_refused_and_not_repeated(
    tmp_path: Path, text: str, reason: str
) -> None:
    path = private(tmp_path, text)
    with pytest.raises(ParameterError) as caught:
        read_tokens({}, path)
    assert reason.format(path) in str(caught.value)
    assert TOKEN not in str(caught.value)
