"""What others may not do to the page ``rye ui``: each test is named for the attack."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import wait_until
from rye.ui.access import form_token
from rye_command import COMMAND, environment
from rye_project import Project
from ui_session import Served, served_page

ACTION = "/tools/hello"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("ui"))
    project.command("hello", "/bin/echo", "hi", description="Says hi.")
    _ = project.context
    return project


@pytest.fixture(scope="module")
def module_page(project: Project) -> Iterator[Served]:
    with served_page(project, "--run") as page:
        yield page


@pytest.fixture
def page(project: Project) -> Iterator[Served]:
    with served_page(project, "--run") as page:
        yield page


def test_a_name_that_was_rebound_to_this_machine_is_refused(module_page: Served) -> None:
    names = ("evil.example", f"evil.example:{module_page.port}", f"localhost:{module_page.port}")
    for name in (*names, f"127.0.0.1:{module_page.port}", ""):
        answer = module_page.ask("/", headers={"Host": name})
        assert answer.status == 421, name
        assert "hello" not in answer.text


def test_no_host_header_or_two_of_them_are_refused(page: Served) -> None:
    for headers in ("", f"Host: {page.host}\r\nHost: evil.example\r\n"):
        with socket.create_connection(("127.0.0.1", page.port), timeout=10) as connection:
            connection.sendall(f"GET / HTTP/1.1\r\n{headers}\r\n".encode())
            assert connection.recv(1000).startswith(b"HTTP/1.1 400 ")
    assert page.process.stderr is not None
    assert page.process.stderr.readline() == "rye ui: Invalid HTTP request received.\n"


def test_another_local_user_without_the_link_sees_nothing(module_page: Served) -> None:
    name = f"rye-ui-{module_page.port}"
    for cookie in ("", f"{name}=", f"{name}=guess", "a;b=\xff"):
        answer = module_page.ask("/", headers={"Cookie": cookie})
        assert answer.status == 403
        assert answer.text == "rye: this page needs the link that `rye ui` opens or prints\n"
    for path in (
        "/history",
        "/live/events",
        "/trust",
        "/trust/pins",
        "/batches",
        "/machine/events",
    ):
        assert module_page.ask(path).status == 403


def test_a_used_link_is_refused(page: Served) -> None:
    visitor = page.enter()
    again = page.ask(page.enter_path)
    assert again.status == 403
    assert "this link has been used" in again.text
    assert "set-cookie" not in again.headers
    assert visitor.get("/").status == 200


def test_a_guessed_link_does_not_use_up_the_real_one(page: Served) -> None:
    assert page.ask("/enter?token=guess").status == 403
    assert page.ask("/enter").status == 403
    assert page.ask(page.enter_path, method="HEAD").status == 405
    assert page.ask(page.enter_path).status == 200


def test_the_cookie_is_out_of_reach_of_scripts_and_of_other_sites(page: Served) -> None:
    cookie = page.ask(page.enter_path).headers["set-cookie"]
    assert cookie.startswith(f"rye-ui-{page.port}=")
    attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert attributes == {"httponly", "path=/", "samesite=strict"}


def test_a_server_on_another_port_does_not_get_the_cookie(page: Served) -> None:
    """Cookies ignore ports, but not names: this one is for a name that nobody else can guess."""
    assert re.fullmatch(r"rye-[0-9a-f]{16}\.localhost:\d+", page.host)
    assert "domain" not in page.ask(page.enter_path).headers["set-cookie"].lower()


def test_requests_of_another_site_are_refused(page: Served) -> None:
    visitor = page.enter()
    for name, value in (
        ("Origin", "http://evil.example"),
        ("Origin", "null"),
        ("Origin", f"http://127.0.0.1:{page.port}"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ):
        answer = visitor.get("/", **{name: value})
        assert (answer.status, answer.text) == (403, "rye: another site may not use this page\n")


def test_a_form_of_another_site_cannot_run_a_tool(page: Served) -> None:
    """CSRF: the browser would send the cookie, but the form has no token."""
    visitor = page.enter()
    for fields in ({}, {"csrf": ""}, {"csrf": "0" * 64}):
        answer = visitor.post(ACTION, fields)
        assert answer.status == 403
        assert "the form was not made by this page" in answer.text
    token = {"csrf": visitor.form_token(ACTION)}
    assert visitor.post(ACTION, token, Origin=None).status == 403
    assert visitor.post(ACTION, token, Origin="http://evil.example").status == 403
    assert visitor.post(ACTION, token, **{"Sec-Fetch-Site": "cross-site"}).status == 403


def test_the_form_token_of_one_session_is_not_valid_in_another(project: Project) -> None:
    with served_page(project, "--run") as one, served_page(project, "--run") as other:
        token = one.enter().form_token(ACTION)
        assert other.enter().post(ACTION, {"csrf": token}).status == 403


def test_a_read_only_page_cannot_act(project: Project) -> None:
    with served_page(project) as page:
        visitor = page.enter()
        assert 'method="post"' not in visitor.get(ACTION).text
        answer = visitor.post(ACTION, {"csrf": form_token(visitor.cookie.partition("=")[2])})
        assert answer.status == 403
        assert "this page only shows; to act, start: rye ui --run" in answer.text


def test_a_tool_cannot_be_started_by_loading_an_address(page: Served) -> None:
    visitor = page.enter()
    answer = visitor.get(f"{ACTION}?csrf={visitor.form_token(ACTION)}")
    assert (answer.status, answer.headers.get("location")) == (200, None)
    assert page.ask(ACTION, method="PUT", headers={"Cookie": visitor.cookie}).status == 405
    assert "No runs are recorded." in visitor.get(ACTION).text


def test_a_page_cannot_be_framed_sniffed_or_scripted(page: Served) -> None:
    visitor = page.enter()
    for path in ("/", ACTION, "/nothing", "/static/rye.css"):
        headers = {name.lower(): value for name, value in visitor.get(path).headers.items()}
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "same-origin"
        assert "server" not in headers


def test_a_large_form_is_refused(page: Served) -> None:
    visitor = page.enter()
    answer = visitor.post(ACTION, {"csrf": "x", "text": "x" * 2_000_000})
    assert answer.status == 413
    assert "the form is too large" in answer.text
    many = {f"field{number}": "" for number in range(2000)}
    assert visitor.post(ACTION, many).status == 413
    assert visitor.post(ACTION, {}, **{"Content-Type": "text/plain"}).status == 413


def test_a_number_in_an_address_cannot_break_a_page(page: Served) -> None:
    visitor, digits = page.enter(), "9" * 5000
    for path in ("/?page=", "/batches?page=", "/history?part=", f"{ACTION}?example="):
        assert visitor.get(path + digits).status == 200, path


def test_connections_without_a_request_do_not_keep_others_out(page: Served) -> None:
    visitor = page.enter()
    held = [socket.create_connection(("127.0.0.1", page.port)) for _ in range(100)]
    try:
        assert visitor.get("/").status == 200
    finally:
        for one in held:
            one.close()
    # Only this warning may be logged, and it names no visitor.
    assert page.process.stderr is not None
    line = page.process.stderr.readline()
    assert line.startswith("rye ui: too many connections without a valid request")


def test_a_path_cannot_leave_the_static_files(page: Served) -> None:
    visitor = page.enter()
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/"):
        answer = visitor.get(path)
        assert answer.status == 404
        assert "import" not in answer.text


def test_the_page_listens_on_loopback_only(page: Served) -> None:
    listening = Path(f"/proc/{page.process.pid}/net/tcp").read_text()
    found = re.findall(rf"\s([0-9A-F]{{8}}):{page.port:04X} 00000000:0000 0A", listening)
    assert found == ["0100007F"]


def test_another_user_cannot_listen_beside_the_page_on_the_ipv6_address(
    project: Project, page: Served
) -> None:
    """Browsers try ``::1`` first, and would send the link and the cookie to a listener there."""
    if not Path("/proc/net/if_inet6").exists():
        pytest.skip("this machine has no IPv6")
    for address in ("::1", "::"):
        with pytest.raises(OSError, match="Address already in use"):
            socket.create_server((address, page.port), family=socket.AF_INET6)
    with socket.create_connection(("::1", page.port), timeout=10) as connection:
        connection.sendall(f"GET / HTTP/1.1\r\nHost: {page.host}\r\n\r\n".encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 403 ")
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as taken:
        port = str(taken.getsockname()[1])
        refused = subprocess.run(
            [*COMMAND, "ui", "--no-open", "--port", port],
            cwd=project.path,
            env=environment(project.user),
            capture_output=True,
            check=False,
            text=True,
            timeout=30,
        )
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "address already in use" in refused.stderr.lower()


def test_other_users_cannot_read_the_link_while_the_browser_opens(
    project: Project, tmp_path: Path
) -> None:
    """Arguments of processes are public: the browser gets the name of a private file."""
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s" "$1" > {tmp_path}/argument\n')
    browser.chmod(0o700)
    env = environment(project.user, {"BROWSER": f"{browser} %s", "TMPDIR": str(tmp_path)})
    process = subprocess.Popen(
        [*COMMAND, "ui"], cwd=project.path, env=env, stdout=subprocess.PIPE, text=True
    )
    try:
        argument = tmp_path / "argument"
        wait_until(lambda: argument.exists() and argument.read_text(), "the browser was opened")
        opened = Path(argument.read_text().removeprefix("file://"))
        assert "token" not in opened.name
        assert opened.stat().st_mode & 0o077 == 0
        assert opened.parent.stat().st_mode & 0o077 == 0
        found = re.search(r'href="http://([^/]+)(/enter\?token=[^"]+)"', opened.read_text())
        assert found is not None
        assert process.stdout is not None
        assert found[2] not in process.stdout.readline()
    finally:
        process.terminate()
        process.communicate()
    assert not opened.exists()
