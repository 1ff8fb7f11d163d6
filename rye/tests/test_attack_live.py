"""What others may not do to calls under way: each test is named for the attack."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from live_session import SLOW, command, entries, live_run, wait_for
from processes import wait_until
from rye.live.folder import a_page_answers, is_own_peer, open_folder
from rye.live.post import Post
from rye.recording.run_ids import new_run_id
from rye.ui.access import form_token
from rye_project import Project
from ui_session import served_page

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.command("tools/slow", "/bin/sh", "-c", SLOW)
    _ = project.context
    return project


def live_folder(project: Project) -> Path:
    folder = project.user / ".ai" / "live"
    folder.mkdir(mode=0o700)
    return folder


@contextmanager
def forged(folder: Path) -> Iterator[socket.socket]:
    """A socket in the folder."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "f.sock"))
        listener.listen()
        listener.settimeout(15)
        yield listener


@contextmanager
def told(listener: socket.socket, *messages: object) -> Iterator[socket.socket]:
    """Wait for the page, and send it messages."""
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(15)
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            connection.sendall(line)
        yield connection


def announcement(run_id: str, item: str = "tools/forged") -> dict[str, object]:
    about = {"run": run_id, "item": item, "client": "x", "kind": "cli", "project": "/p"}
    return {"call": {**about, "parameters": {}}}


def test_a_folder_that_others_can_enter_is_not_used(project: Project) -> None:
    live_folder(project).chmod(0o755)
    with command(project, "run", "tools/slow") as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "began \n"
        assert open_folder(project.user, create=True) is None
        (project.path / "go").touch()
        run.wait(30)
    with pytest.raises(PermissionError):
        Post(project.user)
    assert entries(project) == []


@needs_root
def test_the_folder_of_another_user_is_not_used(project: Project) -> None:
    os.chown(live_folder(project), 65534, 65534)
    assert open_folder(project.user, create=True) is None
    assert not a_page_answers(project.user)


def test_a_link_instead_of_the_folder_is_not_followed(project: Project, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (project.user / ".ai" / "live").symlink_to(elsewhere)
    assert open_folder(project.user, create=True) is None


@needs_root
def test_a_process_of_another_user_behind_a_socket_is_refused() -> None:
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as other:
        listener.bind("")  # a name that the kernel chooses, and no file
        listener.listen()
        os.seteuid(65534)
        try:
            other.connect(listener.getsockname())
        finally:
            os.seteuid(0)
        with listener.accept()[0] as accepted:
            assert not is_own_peer(accepted)
            assert is_own_peer(other)


def test_the_kernel_does_not_show_where_the_socket_is(project: Project) -> None:
    """A confined tool may use unix sockets, but cannot list the folder."""
    with command(project, "run", "tools/slow"):
        wait_until(lambda: entries(project), "the call is announced")
        (found,) = entries(project)
        assert re.fullmatch(r"[0-9a-f]{32}\.sock", found.name)
        assert found.stem not in Path("/proc/net/unix").read_text()


def test_files_and_links_in_the_folder_are_not_announcements(
    project: Project, tmp_path: Path
) -> None:
    folder = live_folder(project)
    (folder / "a.sock").write_text("{}")
    (folder / "b.sock").symlink_to(tmp_path / "target")
    os.mkfifo(folder / "c.sock")
    (folder / "d.page").symlink_to("/dev/zero")
    os.mkfifo(folder / "e.page")
    (folder / "f.page").write_text("")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "target"))
        listener.listen()
        listener.setblocking(False)
        with served_page(project) as page, command(project, "run", "tools/slow"):
            # The page has looked at the folder when it shows the real call.
            live_run(page.enter())
            with pytest.raises(BlockingIOError):
                listener.accept()
        assert not a_page_answers(project.user)


def test_a_forged_announcement_is_shown_as_text_or_not_at_all(project: Project) -> None:
    folder = live_folder(project)
    run_id, markup = new_run_id(1_800_000_000_000), "<script>alert(1)</script>\x1b[31m"
    part = [1, 2, markup]
    question = {"id": "q1", "message": markup, "schema": {"properties": {markup: {}}}}
    with forged(folder) as listener, served_page(project, "--run") as page:
        visitor = page.enter()
        messages = (
            announcement("../../etc", "tools/path"),
            announcement(run_id, markup),
            {"state": {"run": run_id, "part": part, "questions": [question]}},
            {"ended": {"run": "unknown"}},
        )
        with told(listener, *messages) as connection:
            for path in (live_run(visitor), "/live"):
                text = wait_for(visitor, path, "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m")
                assert "<script>alert" not in text
                assert "\x1b" not in text
                assert "tools/path" not in text
            wrong = {"run": run_id, "part": [1, {}, 3], "questions": []}
            connection.sendall(json.dumps({"state": wrong}).encode() + b"\n")
            assert connection.recv(1) == b""
        wait_for(visitor, f"/runs/{run_id}", "the process that made the call has ended")


@pytest.mark.parametrize(
    "line",
    [
        b"no json\n",
        b"[]\n",
        b"[" * 100_000 + b"\n",
        b'{"call": 3}\n',
        b'{"call": {"run": "01234567890123456789"}}\n',
        b'{"output": []}\n',
    ],
    ids=["text", "list", "nested", "number", "incomplete", "output"],
)
def test_a_process_that_says_something_wrong_is_left_alone(project: Project, line: bytes) -> None:
    folder = live_folder(project)
    with forged(folder) as listener, served_page(project) as page:
        with told(listener, line) as connection:
            assert connection.recv(1) == b""
        assert "No call is under way." in page.enter().get("/live").text


def test_an_endless_line_is_not_kept(project: Project) -> None:
    folder = live_folder(project)
    with (
        forged(folder) as listener,
        served_page(project),
        told(listener) as connection,
        pytest.raises(BrokenPipeError),
    ):
        connection.sendall(b"x" * 64 * 1024 * 1024)


def test_a_process_cannot_take_over_the_call_of_another_one(project: Project) -> None:
    with served_page(project, "--run") as page, command(project, "run", "tools/slow"):
        visitor = page.enter()
        path = live_run(visitor)
        run_id = path.removeprefix("/runs/")
        with forged(project.user / ".ai" / "live") as listener:
            ended = {"run": run_id, "outcome": "ok", "error": ""}
            later = new_run_id(1_800_000_000_000)
            with told(listener, announcement(run_id), {"ended": ended}, announcement(later)):
                text = wait_for(visitor, "/live", "tools/forged")
                assert text.count("tools/forged") == 1
                # An ended call has no button.
                assert "Cancel the call" in visitor.get(path).text


def test_markup_and_control_characters_of_a_tool_are_shown_as_text(project: Project) -> None:
    markup = "<img src=x onerror=alert(1)>"
    progress = json.dumps({"progress": 1, "message": f"{markup}\x1b]0;title\x07\u202e"})
    script = f"printf '%s\\033[2J\\n' '{markup}'; printf '%s\\n' '{progress}' >&$RYE_CHANNEL; "
    project.command("tools/odd", "/bin/bash", "-c", script + SLOW)
    with served_page(project) as page, command(project, "run", "--json", "tools/odd"):
        visitor = page.enter()
        path = live_run(visitor)
        text = wait_for(visitor, path, "&lt;img src=x onerror=alert(1)&gt;\\x1b[2J")
        text = wait_for(
            visitor, path, "&lt;img src=x onerror=alert(1)&gt;\\x1b]0;title\\x07\\u202e"
        )
        assert "<img src=x" not in text
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
        # The stream ends at once for a page that knows other questions.
        events = visitor.get(f"/live/{path.removeprefix('/runs/')}/events?asked=x").text
        sent = [json.loads(line[6:]) for line in events.splitlines() if line.startswith("data: {")]
        texts = "".join(one["text"] for one in sent)
        assert f"{markup}\\x1b[2J" in texts
        assert f"{markup}\\x1b]0;title\\x07\\u202e" in texts
        assert not {"\x1b", "\x07", "\u202e"} & set(texts)


def test_a_call_cannot_be_cancelled_without_the_token(project: Project) -> None:
    with served_page(project, "--run") as page, command(project, "run", "tools/slow") as run:
        visitor = page.enter()
        address = f"/live/{live_run(visitor).removeprefix('/runs/')}/cancel"
        for fields in ({}, {"csrf": "0" * 64}):
            assert visitor.post(address, fields).status == 403
        assert visitor.get(address).status == 405
        token = {"csrf": visitor.form_token("/live")}
        assert visitor.post(address, token, Origin="http://evil.example").status == 403
        assert run.poll() is None


def test_a_read_only_page_cannot_cancel_a_call(project: Project) -> None:
    with served_page(project) as page, command(project, "run", "tools/slow") as run:
        visitor = page.enter()
        path = live_run(visitor)
        assert 'method="post"' not in visitor.get(path).text
        token = {"csrf": form_token(visitor.cookie.partition("=")[2])}
        answer = visitor.post(f"/live/{path.removeprefix('/runs/')}/cancel", token)
        assert answer.status == 403
        assert "this page only shows; to act, start: rye ui --run" in answer.text
        assert run.poll() is None


def question(run_id: str) -> dict[str, object]:
    asked = {"id": "q1", "message": "May the agent run it?", "schema": {"type": "object"}}
    return {"state": {"run": run_id, "part": None, "questions": [asked]}}


def test_a_read_only_page_cannot_answer_a_question(project: Project) -> None:
    folder, run_id = live_folder(project), new_run_id(1_800_000_000_000)
    with forged(folder) as listener, served_page(project) as page:
        visitor = page.enter()
        with told(listener, announcement(run_id), question(run_id)) as connection:
            assert 'method="post"' not in wait_for(visitor, "/live", "May the agent run it?")
            fields = {"csrf": form_token(visitor.cookie.partition("=")[2]), "action": "accept"}
            answer = visitor.post(f"/live/{run_id}/answer/q1", fields)
            assert answer.status == 403
            assert "this page only shows; to act, start: rye ui --run" in answer.text
            connection.setblocking(False)
            with pytest.raises(BlockingIOError):
                connection.recv(1)


def test_a_question_cannot_be_answered_without_the_token_or_by_another_site(
    project: Project,
) -> None:
    folder, run_id = live_folder(project), new_run_id(1_800_000_000_000)
    with forged(folder) as listener, served_page(project, "--run") as page:
        visitor = page.enter()
        with told(listener, announcement(run_id), question(run_id)) as connection:
            wait_for(visitor, "/live", "May the agent run it?")
            address = f"/live/{run_id}/answer/q1"
            token = visitor.form_token("/live")
            for fields in ({"action": "accept"}, {"action": "accept", "csrf": "0" * 64}):
                assert visitor.post(address, fields).status == 403
            given = {"action": "accept", "csrf": token}
            assert visitor.post(address, given, Origin="http://evil.example").status == 403
            assert visitor.get(f"{address}?action=accept&csrf={token}").status == 405
            assert visitor.post(f"/live/{run_id}/answer/other", given).status == 409
            connection.setblocking(False)
            with pytest.raises(BlockingIOError):
                connection.recv(1)


def test_only_a_page_that_holds_its_file_can_answer_for_the_user(project: Project) -> None:
    """A file that somebody left, or made, does not keep a call waiting for an answer."""
    folder = live_folder(project)
    (folder / "forged.page").write_text("")
    assert not a_page_answers(project.user)
    old = folder / "old.page"
    old.write_text("")
    os.utime(old, (0, 0))
    assert not a_page_answers(project.user)
    assert not old.exists()
