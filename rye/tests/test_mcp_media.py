"""Pictures, sound, files and bytes that a tool returns."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from confined_machine import needs
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from mcp_session import ERAS, HANDSHAKE, connected
from rye_project import Project

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "pixel").write_bytes(PIXEL)
    return Project(tmp_path)


def returns(project: Project, *blocks: dict[str, Any], before: str = "", **fields: Any) -> None:
    """Write a tool that runs ``before`` in the project and returns these blocks."""
    script = project.path.parent / "script"
    script.write_text(f"{before}\ncat <<'END'\n{json.dumps({'content': blocks})}\nEND\n")
    project.command("tool", "/bin/sh", str(script), **fields)


def call(project: Project, era: str = HANDSHAKE) -> CallToolResult:
    async def run() -> CallToolResult:
        async with connected(project, era) as client:
            return await client.call_tool("execute", {"item_id": "tool"})

    return asyncio.run(run())


@pytest.mark.parametrize("era", ERAS)
def test_a_tool_returns_a_picture_sound_text_and_a_file(project: Project, era: str) -> None:
    returns(
        project,
        {"type": "text", "text": "Here:"},
        {"type": "image", "path": "plot.png"},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        {"type": "file", "path": "notes.txt"},
        before="cp ../pixel plot.png; echo hi > notes.txt",
    )
    result = call(project, era)
    text, image, audio, file = result.content
    assert isinstance(text, TextContent)
    assert text.text == "Here:"
    assert isinstance(image, ImageContent)
    assert (base64.b64decode(image.data), image.mime_type) == (PIXEL, "image/png")
    assert isinstance(audio, AudioContent)
    assert (audio.data, audio.mime_type) == ("AAAA", "audio/wav")
    assert isinstance(file, EmbeddedResource)
    assert isinstance(file.resource, TextResourceContents)
    assert (file.resource.text, file.resource.mime_type) == ("hi\n", "text/plain")
    assert not result.is_error


@pytest.mark.parametrize(
    ("path", "before", "reason"),
    [
        ("old.png", "", "the call has not changed it"),
        ("/etc/hostname", "", "it is neither in the project nor in the folder for temporary files"),
        ("link.png", "ln -sf /etc/hostname link.png", "it is neither in the project nor"),
        (".env", "echo A=1 > .env", "a part of its path is hidden"),
        ("../user/.ai/keys/private_key.pem", "", "a part of its path is hidden"),
        ("other.png", "ln old.png other.png", "it has another owner or another name"),
        ("fifo.png", "mkfifo fifo.png", "it is not a regular file"),
        ("missing.png", "", "no such file or directory"),
        (
            "unknown.xyz",
            "cp ../pixel unknown.xyz",
            "its name does not say which kind of image it is",
        ),
        ("big.png", "head -c 4000000 /dev/zero > big.png", "it has 4,000,000 bytes, and 3,145,728"),
    ],
)
def test_a_file_that_the_call_did_not_make_is_not_sent(
    project: Project, path: str, before: str, reason: str
) -> None:
    (project.path / "old.png").write_bytes(PIXEL)
    returns(project, {"type": "image", "path": path}, before=before)
    (content,) = call_later(project).content
    assert isinstance(content, TextContent)
    assert content.text.startswith(f"[image {path} is not sent: {reason}")


def call_later(project: Project) -> CallToolResult:
    """Call when the files that exist are older than what the clock of the disk can tell apart."""
    import time

    from rye.spaces.folders import CLOCK_LAG_NS

    newest = max(os.lstat(one).st_ctime_ns for one in project.path.rglob("*"))
    while time.time_ns() <= newest + CLOCK_LAG_NS:
        time.sleep(0.001)
    return call(project)


@needs("fs")
def test_a_confined_tool_cannot_have_a_file_sent_that_it_may_not_read(project: Project) -> None:
    (project.path / "out").mkdir()
    (project.path / "secret.png").write_bytes(PIXEL)
    returns(
        project,
        {"type": "image", "path": "out/plot.png"},
        {"type": "image", "path": "secret.png"},
        before="head -c 3 /dev/zero > out/plot.png",
        permissions={
            "read": [str(project.path.parent / "script")],
            "write": ["{project_path}/out"],
            "run": ["head", "cat"],
        },
    )
    os.utime(project.path / "secret.png")
    content = call(project).content
    assert isinstance(content[1], TextContent)
    assert content[1].text == "[image secret.png is not sent: the tool may not read it]"
    assert isinstance(content[0], ImageContent), content[0]


def test_bytes_that_are_not_text_are_kept_and_linked(project: Project) -> None:
    project.command("tool", "/bin/cat", "../pixel")

    async def run() -> tuple[CallToolResult, bytes]:
        async with connected(project) as client:
            result = await client.call_tool("execute", {"item_id": "tool"})
            link = result.content[1]
            assert isinstance(link, ResourceLink)
            (page,) = (await client.read_resource(str(link.uri))).contents
            assert isinstance(page, BlobResourceContents)
            return result, base64.b64decode(page.blob)

    result, data = asyncio.run(run())
    assert data == PIXEL
    text = result.content[0]
    assert isinstance(text, TextContent)
    assert text.text.startswith(f"[the tool printed {len(PIXEL)} bytes that are not text; ")


@pytest.mark.parametrize("code", [0, 3])
def test_bytes_that_are_not_text_stand_beside_what_else_the_tool_said(
    project: Project, code: int
) -> None:
    script = f"cat ../pixel; echo careful >&2; exit {code}"
    project.command("tool", "/bin/sh", "-c", script)
    result = call(project)
    text, link = result.content
    assert isinstance(text, TextContent)
    assert isinstance(link, ResourceLink)
    kept = f"[the tool printed {len(PIXEL)} bytes that are not text; they are kept as {link.uri}]"
    failed = "'tool' ended with exit code 3\n\n" if code else ""
    assert text.text == f"{failed}{kept}\n\nstderr:\ncareful\n"
    assert result.is_error is bool(code)


def test_data_in_base64_and_the_text_of_files_are_bounded(project: Project) -> None:
    returns(
        project,
        {"type": "image", "path": "big.png"},
        {"type": "file", "path": "numbers.txt"},
        {"type": "file", "path": "short.txt"},
        before="head -c 2000000 /dev/zero > big.png; seq 20000 > numbers.txt; echo hi > short.txt",
    )
    image, cut, link, short = call(project).content
    assert image.type == "image"
    assert isinstance(cut, TextContent)
    assert len(cut.text) < 24_000
    assert cut.text.startswith("[85,")
    assert link.type == "resource_link"
    assert isinstance(short, EmbeddedResource)
    returns(project, {"type": "image", "data": "A" * 5_000_000, "mimeType": "image/png"})
    (refused,) = call(project).content
    assert isinstance(refused, TextContent)
    assert refused.text == "[image is not sent: it has 3,750,000 bytes, and 3,145,728 can be sent]"


@pytest.mark.parametrize(
    "data",
    [{"content": []}, {"content": [{"type": "other"}]}, {"content": "x"}, {"content": [1]}],
)
def test_an_object_with_other_content_stays_an_object(project: Project, data: Any) -> None:
    project.command("tool", "/bin/echo", json.dumps(data))
    assert call(project).structured_content == data
