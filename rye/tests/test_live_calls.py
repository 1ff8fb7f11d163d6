"""The page ``rye ui`` shows the calls of other processes while they run."""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from live_session import SLOW, command, entries, live_run, wait_for
from mcp_session import HANDSHAKE, over_stdio
from processes import wait_until
from rye.errors import CancelledOnPageError
from rye.live.folder import connect, open_folder
from rye.live.post import Post
from rye.recording.run_ids import new_run_id
from rye_project import Project, says
from ui_session import Visitor, served_page

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "key": {"type": "string", "writeOnly": True}},
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    arguments = ["-c", SLOW, "sh", "{name}"]
    project.command("tools/slow", "/bin/sh", *arguments, config_schema=SCHEMA)
    _ = project.context
    return project


def test_a_call_of_rye_run_is_shown_with_its_output_and_its_end(project: Project) -> None:
    with (
        served_page(project) as page,
        command(project, "run", "tools/slow", "name=ada", "key=hunter2") as run,
    ):
        visitor = page.enter()
        path = live_run(visitor)
        text = wait_for(visitor, path, "began ada")
        assert "called by rye run" in text
        assert "&#34;name&#34;: &#34;ada&#34;, &#34;key&#34;: &#34;(secret)&#34;" in text
        assert "hunter2" not in text
        assert re.search(r"sh  pid \d+, 0\.\d s CPU, [\d.]+ [kM]B\n  sleep  pid", text)
        (project.path / "go").touch()
        assert run.wait(30) == 3
        text = wait_for(visitor, path, "this page has, until it ends")
        assert "began ada\nended\n" in text
        assert "No call is under way." in wait_for(visitor, "/live", "failed")
    assert entries(project) == []


def test_a_call_of_an_mcp_client_is_shown(project: Project) -> None:
    async def call(visitor: Visitor) -> None:
        async with over_stdio(project, HANDSHAKE) as client:
            given = {"item_id": "tools/slow", "parameters": {"name": "ada"}}
            calling = asyncio.create_task(client.call_tool("execute", given))
            path = await asyncio.to_thread(live_run, visitor)
            text = await asyncio.to_thread(wait_for, visitor, path, "began ada")
            assert "called by mcp 0.1.0" in text
            (project.path / "go").touch()
            await calling
            await asyncio.to_thread(wait_for, visitor, path, "began ada\nended\n")

    with served_page(project) as page:
        asyncio.run(call(page.enter()))


def test_a_call_of_a_python_program_is_shown_and_cancelled_on_the_page(project: Project) -> None:
    async def call(visitor: Visitor) -> Any:
        async with project.executor() as executor:
            calling = asyncio.create_task(executor.execute("tools/slow", {"name": "ada"}))
            path = await asyncio.to_thread(live_run, visitor)
            token = await asyncio.to_thread(visitor.form_token, "/live")
            address = path.replace("/runs/", "/live/") + "/cancel"
            answer = await asyncio.to_thread(visitor.post, address, {"csrf": token})
            assert answer.status == 303
            result = await calling
            assert calling.cancelling() == 0
            await asyncio.to_thread(wait_for, visitor, path, "cancelled")
            return result

    with served_page(project, "--run") as page:
        result = asyncio.run(call(page.enter()))
    assert result.metadata["error_type"] == CancelledOnPageError.__name__
    assert result.error == (
        "'tools/slow' was cancelled on the page of `rye ui`; call it again only if that is wanted"
    )


def test_a_command_that_is_cancelled_on_the_page_ends_as_if_interrupted(project: Project) -> None:
    with (
        served_page(project, "--run") as page,
        command(project, "run", "tools/slow", "name=ada") as run,
    ):
        visitor = page.enter()
        path = live_run(visitor)
        token = visitor.form_token("/live")
        assert visitor.post(f"/live/{path[6:]}/cancel", {"csrf": token}).status == 303
        assert run.wait(30) == 130
        assert run.stderr is not None
        assert "was cancelled on the page" in run.stderr.read()


def test_the_caller_can_still_cancel_a_call_that_is_cancelled_on_the_page(
    project: Project,
) -> None:
    """Both at once: the caller's cancellation is not lost."""

    async def call() -> None:
        async with project.executor() as executor:
            task = asyncio.create_task(executor.execute("tools/slow", {"name": "ada"}))
            while not executor.announcer.calls:
                await asyncio.sleep(0.01)
            (live,) = executor.announcer.calls
            assert live.cancel() == ""
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(call())


def test_a_killed_process_leaves_nothing_on_the_page_or_in_the_folder(project: Project) -> None:
    with served_page(project) as page, command(project, "run", "tools/slow", "name=ada") as run:
        visitor = page.enter()
        path = live_run(visitor)
        wait_for(visitor, path, "began ada")
        run.kill()
        text = wait_for(visitor, path, "the process that made the call has ended")
        assert "began ada" in text
        wait_until(lambda: entries(project) == [], "the socket of the killed process is removed")
        assert "No call is under way." in visitor.get("/live").text


def test_what_killed_processes_left_is_removed_without_a_page(project: Project) -> None:
    with command(project, "run", "tools/slow", "name=ada") as run:
        wait_until(lambda: entries(project), "the call is announced")
        run.kill()
        run.wait()
        (left,) = entries(project)
        with command(project, "run", "tools/slow", "name=bob") as another:
            wait_until(lambda: not left.exists(), "the old socket is removed")
            (project.path / "go").touch()
            another.wait(30)
    assert entries(project) == []


def test_a_call_that_ends_before_the_timer_is_not_announced(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rye.executor.run.announcer._EVERY_SECONDS", 600)
    says(project, "echo hi", "tools/short")

    async def call() -> None:
        async with project.executor() as executor:
            for _ in range(5):
                assert (await executor.execute("tools/short")).success
            assert not executor.announcer.calls

    asyncio.run(call())
    assert not (project.user / ".ai" / "live").exists()


def test_an_executor_announces_calls_in_a_second_event_loop(project: Project) -> None:
    from rye.executor.run.execute import PrimitiveExecutor

    executor = PrimitiveExecutor(context=project.context)

    async def call() -> bool:
        task = asyncio.create_task(executor.execute("tools/slow", {"name": "ada"}))
        while not entries(project):
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await executor.aclose()
        return True

    assert asyncio.run(call())
    assert entries(project) == []
    assert asyncio.run(call())


def test_a_page_that_comes_later_sees_all_output_and_two_pages_see_the_same(
    project: Project,
) -> None:
    with (
        command(project, "run", "tools/slow", "name=ada") as run,
        served_page(project) as one,
        served_page(project) as other,
    ):
        visitors = [one.enter(), other.enter()]
        for visitor in visitors:
            wait_for(visitor, live_run(visitor), "began ada")
        path = live_run(visitors[0])
        (project.path / "go").touch()
        run.wait(30)
        for visitor in visitors:
            wait_for(visitor, path, "began ada\nended\n")


def test_output_that_comes_too_fast_is_shown_in_part_and_says_so(project: Project) -> None:
    script = "head -c 9000000 /dev/zero | tr '\\0' x; echo; echo last; " + SLOW
    project.command("tools/fast", "/bin/sh", "-c", script)
    with command(project, "run", "--json", "tools/fast") as run, served_page(project) as page:
        visitor = page.enter()
        path = live_run(visitor)
        text = wait_for(visitor, path, "last\nbegan")
        assert re.search(r"characters are not kept", text)
        (project.path / "go").touch()
        run.communicate(timeout=30)


def test_progress_is_shown(project: Project) -> None:
    line = json.dumps({"progress": 3, "total": 4, "message": "copying"})
    script = f"echo '{line}' >&$RYE_CHANNEL; " + SLOW
    project.command("tools/steps", "/bin/bash", "-c", script)
    with command(project, "run", "tools/steps"), served_page(project) as page:
        visitor = page.enter()
        wait_for(visitor, live_run(visitor), "3 of 4 (75%), copying")
        assert "3 of 4 (75%), copying" in visitor.get("/live").text


def test_a_batch_is_shown_with_its_progress_and_stopped_on_the_page(project: Project) -> None:
    script = 'echo began; [ "$1" = ada ] || { until [ -e go ]; do sleep 0.02; done; }'
    project.command("tools/some", "/bin/sh", "-c", script, "sh", "{name}", config_schema=SCHEMA)
    names = ["ada", "ada", "bob", "eve"]
    calls = project.path / "calls.jsonl"
    calls.write_text("".join(json.dumps({"name": name}) + "\n" for name in names))
    arguments = ("batch", "tools/some", str(calls), "--jobs", "1")
    with served_page(project, "--run") as page, command(project, *arguments) as batch:
        visitor = page.enter()
        path = live_run(visitor)
        text = wait_for(visitor, path, "2 of 4 (50%)")
        assert "called by rye batch" in text
        token = visitor.form_token("/live")
        assert visitor.post(f"/live/{path[6:]}/cancel", {"csrf": token}).status == 303
        wait_for(visitor, "/live", "2 of 4 (50%)")
        (project.path / "go").touch()
        _, errors = batch.communicate(timeout=30)
        assert "cancelled on the page of `rye ui`" in errors
        wait_for(visitor, path, "cancelled")
    assert entries(project) == []


class StartingCall:
    """A call whose tool does not run yet: a look at it finds nothing, and calls nobody."""

    run_id = new_run_id(1_800_000_000_000)

    def __init__(self) -> None:
        self.looks = 0

    def described(self) -> dict[str, Any]:
        return {}

    def state(self) -> dict[str, Any]:
        return {}

    def look(self, on_sight: Any, stdout_from: int, stderr_from: int, limit: int) -> bool:
        self.looks += 1
        return True

    def cancel(self) -> str:
        return ""

    def answer(self, question: str, answer: Any) -> str:
        return ""


def test_a_look_that_finds_nothing_is_repeated(project: Project) -> None:
    """Otherwise the output of a tool that was looked at too early would never be shown."""
    post, call = Post(project.user), StartingCall()
    folder = open_folder(project.user, create=False)
    assert folder is not None
    connection = connect(folder, entries(project)[0].name)
    assert connection is not None
    with connection:
        post.add(call)
        for _ in range(3):
            post.serve()
    post.close()
    os.close(folder)
    assert call.looks == 3
