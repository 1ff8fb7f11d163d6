"""Results that are too long for a model: cut, kept, and read in parts."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult, ResourceLink, TextContent, TextResourceContents
from mcp_session import ERAS, HANDSHAKE, connected, refused, wired
from rye.errors import RyeError
from rye.mcp.budget import Text, fit
from rye.mcp.outputs import MAX_PAGE, Outputs
from rye_project import Project

SECONDS = 60
NUMBERS = "".join(f"{n}\n" for n in range(1, 50_001))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.command("numbers", "/usr/bin/seq", "1", "50000")
    return project


async def execute(client: Client, item_id: str, **more: Any) -> CallToolResult:
    return await client.call_tool("execute", {"item_id": item_id, **more})


def parts(result: CallToolResult) -> tuple[str, str, str]:
    """The note, the rest of the text, and the id of the output."""
    text, *_ = result.content
    assert isinstance(text, TextContent)
    note, _, rest = text.text.partition("\n")
    found = re.search(r"id ([0-9a-f]{16})\]$", note)
    assert found, note
    return note, rest, found[1]


@pytest.mark.parametrize("era", ERAS)
def test_a_long_result_is_cut_kept_and_linked(project: Project, era: str) -> None:
    async def run() -> tuple[CallToolResult, str, list[str]]:
        async with connected(project, era) as client, asyncio.timeout(SECONDS):
            result = await execute(client, "numbers")
            link = result.content[1]
            assert isinstance(link, ResourceLink)
            read, uri, pages = "", str(link.uri), []
            while uri:
                (page,) = (await client.read_resource(uri)).contents
                assert isinstance(page, TextResourceContents)
                read += page.text
                pages.append(uri)
                uri = (page.meta or {}).get("rye/next", "")
            return result, read, pages

    result, read, pages = asyncio.run(run())
    note, shown, output_id = parts(result)
    assert re.fullmatch(
        r"\[[\d,]+ of 288,894 characters are left out; "
        rf"read the output with the tool `output`, id {output_id}\]",
        note,
    )
    assert len(note) + len(shown) < 24_000
    assert shown.startswith("1\n2\n3\n")
    assert shown.endswith("49999\n50000\n")
    assert result.structured_content is None
    assert not result.is_error
    assert read == NUMBERS
    assert len(pages) == 2


def test_the_tool_output_reads_lines(project: Project) -> None:
    calls: list[tuple[dict[str, Any], str]] = [
        ({"limit": 2}, "[1 to 2 of 50,000 lines; continue with offset 2]\n1\t1\n2\t2"),
        (
            {"offset": 49_999},
            "[50,000 to 50,000 of 50,000 lines]\n50000\t50000",
        ),
        ({"tail": 1}, "[50,000 to 50,000 of 50,000 lines]\n50000\t50000"),
        (
            {"grep": "4999", "offset": 1, "limit": 1},
            "[2 to 2 of 15 lines that contain the text; continue with offset 2]\n14999\t14999",
        ),
        ({"grep": "nothing"}, "[none of 0 lines that contain the text]"),
    ]

    async def run() -> list[str]:
        async with connected(project) as client, asyncio.timeout(SECONDS):
            output_id = parts(await execute(client, "numbers"))[2]
            answers = []
            for arguments, _ in calls:
                result = await client.call_tool("output", {"id": output_id, **arguments})
                (content,) = result.content
                assert isinstance(content, TextContent)
                answers.append(content.text)
            long = await client.call_tool("output", {"id": output_id, "limit": 10_000})
            (content,) = long.content
            assert isinstance(content, TextContent)
            assert len(content.text) < 24_000
            assert "; continue with offset" in content.text
            return answers

    assert asyncio.run(run()) == [expected for _, expected in calls]


def test_a_caller_can_lower_the_budget_and_the_user_can_set_it(project: Project) -> None:
    async def lengths(*budgets: int) -> list[int]:
        async with connected(project) as client, asyncio.timeout(SECONDS):
            return [
                len("".join(parts(await execute(client, "numbers", max_output=one))[:2]))
                for one in budgets
            ]

    small, default = asyncio.run(lengths(2_000, 100_000))
    assert small < 2_000
    assert 20_000 < default < 24_000
    project.settings(mcp={"max_output": 50_000})
    assert 40_000 < asyncio.run(lengths(100_000))[0] < 50_000


def test_an_invalid_budget_in_the_config_is_an_error(project: Project) -> None:
    project.settings(mcp={"max_output": "lots"})

    async def run() -> CallToolResult:
        async with connected(project) as client:
            return await execute(client, "numbers")

    result = asyncio.run(run())
    assert result.is_error
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert "expected a number from 1,000 to 10,000,000 in 'mcp.max_output'" in content.text


def test_a_large_object_is_cut_as_text(project: Project) -> None:
    code = "import json; print(json.dumps({'numbers': list(range(20000))}))"
    project.command("object", "/usr/bin/env", "python3", "-c", code)

    async def run() -> CallToolResult:
        async with connected(project) as client, asyncio.timeout(SECONDS):
            return await execute(client, "object")

    result = asyncio.run(run())
    assert parts(result)[1].startswith('{"numbers": [0, 1, 2,')
    assert result.structured_content is None


def test_a_client_that_knows_no_links_gets_none(project: Project) -> None:
    async def run() -> list[str]:
        async with wired(project) as client, asyncio.timeout(SECONDS):
            params = {
                "protocolVersion": "2025-03-26",
                "capabilities": {},
                "clientInfo": {"name": "old", "version": "1"},
            }
            await client.ask(0, "initialize", **params)
            call = {"name": "execute", "arguments": {"item_id": "numbers"}}
            answer = await client.ask(1, "tools/call", **call)
            return [one["type"] for one in answer["result"]["content"]]

    assert asyncio.run(run()) == ["text"]


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("rye://outputs/0123456789abcdef/stdout", "no output '0123456789abcdef' is kept; "),
        ("rye://other/x/stdout", "the address is not one of an output; "),
        ("file:///etc/passwd", "the address is not one of an output; "),
        ("rye://outputs/x/y?offset=-1", "the address has an invalid query; "),
        ("rye://outputs/x/y?length=0", "length is 0; "),
        ("rye://outputs/x/y?a=1", "the address has an invalid query; "),
    ],
)
@pytest.mark.parametrize("era", ERAS)
def test_an_unknown_address_is_refused(project: Project, era: str, uri: str, message: str) -> None:
    async def run() -> tuple[int, str]:
        async with connected(project, era) as client:
            error = await refused(client.read_resource(uri))
            return error.code, error.message

    code, text = asyncio.run(run())
    assert code == (-32002 if era == HANDSHAKE else -32602)
    assert text.startswith(message)


def test_outputs_are_bounded_and_the_oldest_is_forgotten_first() -> None:
    outputs = Outputs(max_outputs=2, max_bytes=10)
    first = outputs.keep({"stdout": b"1"})
    second = outputs.keep({"stdout": b"2"})
    third = outputs.keep({"stdout": b"3", "stderr": b"oops"})
    assert outputs.page(second, "stdout").data == b"2"
    with pytest.raises(RyeError, match=f"no output '{first}' is kept; run the tool again"):
        outputs.page(first, "stdout")
    with pytest.raises(RyeError, match=r"has no stream 'body'; use stdout or stderr"):
        outputs.page(third, "body")
    last = outputs.keep({"stdout": b"x" * 10})
    with pytest.raises(RyeError):
        outputs.page(third, "stdout")
    assert outputs.page(last, "stdout").size == 10
    outputs.close()


def test_a_page_ends_between_two_characters() -> None:
    outputs = Outputs()
    text = "aä€😀" * 10
    output_id = outputs.keep({"stdout": text.encode()})
    for length in range(4, 20):
        read, offset = b"", 0
        while (page := outputs.page(output_id, "stdout", offset, length)).data:
            page.data.decode()
            read += page.data
            offset = page.end
        assert read.decode() == text
    outputs.close()


def test_bytes_that_are_not_text_are_read_as_they_are() -> None:
    outputs = Outputs()
    data = bytes(range(256)) * (2 * MAX_PAGE // 256)
    output_id = outputs.keep({"stdout": data})
    first = outputs.page(output_id, "stdout")
    second = outputs.page(output_id, "stdout", first.end)
    assert first.data + second.data + outputs.page(output_id, "stdout", second.end).data == data
    outputs.close()


def test_a_cut_failure_still_says_what_went_wrong_first() -> None:
    outputs = Outputs()
    text = Text("it failed", "out\n" * 10_000, "err\n" * 10_000)
    fitted = fit(text, 2_000, outputs)
    note, message, *_ = fitted.text.splitlines()
    assert note.startswith("[")
    assert message == "it failed"
    assert len(fitted.text) <= 2_000
    assert "\nstderr:\nerr\n" in fitted.text
    assert fitted.streams == ("stdout", "stderr")
    outputs.close()
