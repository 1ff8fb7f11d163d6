"""Clients of both eras are notified when a tool is added, changed or removed."""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from approved_project import approve
from lilux.primitives.signing import generate_keypair, save_keypair
from mcp import Client
from mcp.types import ToolListChangedNotification
from mcp_session import ERAS, HANDSHAKE, connected
from processes import wait_until
from rye.mcp.list_changes import changed_since
from rye.mcp.settings import ServerSettings
from rye.trust.operations import trust_add, trust_list, trust_remove
from rye_project import Project

SECONDS = 20


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.command("known", "/bin/echo", "first")
    return project


@asynccontextmanager
async def watching(
    project: Project, era: str, settings: ServerSettings
) -> AsyncIterator[tuple[Client, asyncio.Queue[object]]]:
    """A client, and a queue that gets an entry for each notification."""
    announced: asyncio.Queue[object] = asyncio.Queue()

    async def on_message(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            announced.put_nowait(message)

    async with connected(project, era, settings, message_handler=on_message) as client:
        if era == HANDSHAKE:
            assert client.server_capabilities.tools is not None
            assert client.server_capabilities.tools.list_changed is True
            yield client, announced
            return
        async with client.listen(tools_list_changed=True) as subscription:

            async def pump() -> None:
                async for event in subscription:
                    announced.put_nowait(event)

            pumping = asyncio.create_task(pump())
            yield client, announced
            pumping.cancel()


async def until_announced(
    client: Client,
    announced: asyncio.Queue[object],
    change: Callable[[int], object],
    expected: Callable[[list[str]], bool],
) -> None:
    """Repeat ``change`` until it was announced three times, then check the list.

    Changes before the watch starts may be announced together, when it starts.
    """
    async with asyncio.timeout(SECONDS):
        count = 0
        for attempt in range(1000):
            change(attempt)
            try:
                async with asyncio.timeout(1):
                    await announced.get()
            except TimeoutError:
                continue
            count += 1
            if count == 3:
                break
        while True:
            page = await client.list_tools(cache_mode="refresh")
            if expected([f"{tool.name}: {tool.description}" for tool in page.tools]):
                return
            await announced.get()


ALL = ServerSettings(all_tools=True)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("space", ["project", "user"])
def test_a_new_tool_is_announced(project: Project, era: str, space: str) -> None:
    async def run() -> None:
        async with watching(project, era, ALL) as (client, announced):
            await client.list_tools()
            await until_announced(
                client,
                announced,
                lambda attempt: project.yaml(
                    f"deep/er/new{attempt}",
                    space="project" if space == "project" else "user",
                    executor_id="rye/core/primitives/subprocess",
                    config={"command": "/bin/true"},
                ),
                lambda names: any(name.startswith("deep.er.new") for name in names),
            )

    asyncio.run(run())


def test_a_changed_tool_is_announced(project: Project) -> None:
    async def run() -> None:
        async with watching(project, HANDSHAKE, ALL) as (client, announced):
            await client.list_tools()
            await until_announced(
                client,
                announced,
                lambda attempt: project.command(
                    "known", "/bin/echo", description=f"Other words, {attempt}."
                ),
                lambda names: any("Other words" in name for name in names),
            )

    asyncio.run(run())


def test_a_removed_tool_is_announced(project: Project) -> None:
    def change(attempt: int) -> None:
        # Only the first attempt removes the tool; later ones make sure that a change is seen.
        (project.path / ".ai/tools/known.yaml").unlink(missing_ok=True)
        other = project.path / f".ai/tools/passing{attempt}.yaml"
        other.write_text("x")
        other.unlink()

    async def run() -> None:
        async with watching(project, HANDSHAKE, ALL) as (client, announced):
            await client.list_tools()
            await until_announced(
                client,
                announced,
                change,
                lambda names: not any(name.startswith("known") for name in names),
            )

    asyncio.run(run())


def test_featuring_a_tool_is_announced(project: Project) -> None:
    def change(attempt: int) -> None:
        config = project.path / ".ai" / "config.yaml"
        config.write_text(f"# {attempt}\nmcp: {{featured: [known]}}\n")
        approve(project.context)

    async def run() -> None:
        async with watching(project, HANDSHAKE, ServerSettings()) as (client, announced):
            await client.list_tools()
            await until_announced(
                client,
                announced,
                change,
                lambda names: any(name.startswith("known") for name in names),
            )

    asyncio.run(run())


def test_trusting_the_key_of_a_tool_is_announced(project: Project, tmp_path: Path) -> None:
    save_keypair(*generate_keypair(), tmp_path / "other" / "user" / ".ai" / "keys")
    other = Project(tmp_path / "other")
    signed = other.command("foreign", "/bin/true")
    (project.path / ".ai" / "tools" / "foreign.yaml").write_bytes(signed.read_bytes())

    def change(attempt: int) -> None:
        for entry in trust_list(project.context):
            if entry.owner == "another":
                trust_remove(entry.fingerprint, project.context)
        trust_add(other.user / ".ai" / "keys" / "public_key.pem", project.context, owner="another")

    async def run() -> None:
        async with watching(project, HANDSHAKE, ALL) as (client, announced):
            before = [tool.name for tool in (await client.list_tools()).tools]
            assert before == ["search", "show", "execute", "output", "known"]
            await until_announced(
                client,
                announced,
                change,
                lambda names: any(name.startswith("foreign") for name in names),
            )

    asyncio.run(run())


def test_an_invalid_config_keeps_the_featured_tools(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    project = Project(tmp_path)
    project.path = project.user  # needs no approval, which would be another change
    project.command("known", "/bin/echo", "first")
    config = project.path / ".ai" / "config.yaml"
    config.write_text("mcp: {featured: [known]}\n")

    async def run() -> None:
        async with watching(project, HANDSHAKE, ServerSettings()) as (client, announced):
            await client.list_tools()
            await until_announced(
                client,
                announced,
                lambda attempt: config.write_text(f"# {attempt}\nmcp: [\n"),
                lambda names: any(name.startswith("known") for name in names),
            )

    asyncio.run(run())
    assert "config.yaml" in caplog.text


def test_directories_created_later_are_watched(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for space in (project.path, project.user):
        (space / ".ai" / "tools").rmdir()
    (project.path / ".ai").rmdir()

    async def run() -> None:
        async with watching(project, HANDSHAKE, ALL) as (client, announced):
            await client.list_tools()
            await until_announced(
                client,
                announced,
                lambda attempt: project.command(f"later/tool{attempt}", "/bin/true"),
                lambda names: any(name.startswith("later.tool") for name in names),
            )
            # The new directory is now watched as well.
            await until_announced(
                client,
                announced,
                lambda attempt: project.command(f"later/more{attempt}", "/bin/true"),
                lambda names: any(name.startswith("later.more") for name in names),
            )

    asyncio.run(run())


def test_a_client_that_never_listed_is_notified_too(project: Project) -> None:
    async def run() -> None:
        async with watching(project, HANDSHAKE, ServerSettings()) as (_, announced):
            project.command("new", "/bin/true")
            await asyncio.wait_for(announced.get(), SECONDS)

    asyncio.run(run())


def test_a_machine_that_cannot_watch_files_is_reported_and_still_serves(
    project: Project, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr("watchfiles.awatch", full)

    async def run() -> None:
        async with connected(project) as client:
            await client.list_tools()
            async with asyncio.timeout(SECONDS):
                while "cannot watch" not in caplog.text:
                    await asyncio.sleep(0.01)
            assert (await client.list_tools()).tools

    asyncio.run(run())
    assert "cannot watch for changes of tools: no space left on device" in caplog.text


def test_only_changes_after_a_moment_are_found(project: Project) -> None:
    def later() -> int:
        """Return a moment that the clock of the file system has passed."""
        now = time.time_ns()
        wait_until(lambda: time.time_ns() > now + 400_000_000, "the clock advances")
        return time.time_ns()

    moment = later()
    (project.path / ".ai" / "lockfiles").mkdir()
    assert not changed_since(project.context, moment)
    project.command("known", "/bin/echo", description="Other words.")
    assert changed_since(project.context, moment)
    moment = later()
    assert not changed_since(project.context, moment)
    (project.path / ".ai" / "tools" / "known.yaml").unlink()
    assert changed_since(project.context, moment)
    moment = later()
    (project.path / ".ai" / "config.yaml").write_text("other: 1\n")
    assert changed_since(project.context, moment)
