"""What a call leaves behind: the record, what it never contains, and the user's choices."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from histories import folder, spooled
from rye.executor.run.blocking import BlockingExecutor, execute_blocking
from rye.recording.digests import SECRET, Secrets
from rye.recording.record import Caller, trace_id, utc_text
from rye.recording.run_ids import first_run_id, is_run_id, milliseconds_of, new_run_id
from rye_project import Project, says

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def keep(project: Project, **history: Any) -> None:
    project.settings(history=history, permissions={"unenforced": "allow"})


def test_a_call_is_recorded_before_its_result_is_returned(project: Project) -> None:
    tool = says(project, "echo out; echo err >&2")
    result = project.run(tool, {"word": "hi"})
    (record,) = spooled(project)
    assert result.metadata["run_id"] == record["id"]
    assert is_run_id(record["id"])
    assert record["time"] == utc_text(milliseconds_of(record["id"]))
    assert record["item"] == tool
    assert record["project"] == str(project.path)
    assert record["version"] == "1.0.0"
    assert record["outcome"] == "ok"
    assert record["exit"] == 0
    assert record["by"] == "python"
    assert record["signers"] == [result.chain[0]["signer"]]
    assert record["chain"][tool] == result.chain[0]["integrity"]
    assert record["environment"] == ["HOME", "LANG", "PATH"]
    assert record["interpreter"]["path"] == "/bin/sh"
    assert record["parameters"] == {"sha256": sha256(b'{"word":"hi"}')}
    assert record["output"] == {
        "stdout": {"bytes": 4, "sha256": sha256(b"out\n")},
        "stderr": {"bytes": 4, "sha256": sha256(b"err\n")},
    }
    assert set(record["ms"]) == {"prepare", "run", "total"}
    assert record["ms"]["total"] >= record["ms"]["run"] >= 0


def test_both_executors_record_the_same(project: Project) -> None:
    tool = says(project, "exit 3")
    project.run(tool)
    execute_blocking(tool, context=project.context)
    first, second = spooled(project)
    for record in (first, second):
        for own in ("id", "time", "ms"):
            del record[own]
    assert first == second
    assert (first["outcome"], first["exit"], first["error_type"]) == ("failed", 3, "ToolFailed")
    assert "reason" not in first


def test_output_that_is_not_utf8_is_hashed_as_it_is(project: Project) -> None:
    keep(project, keep={"output": ["*"]})
    project.run(says(project, r"printf '\377\000x'"))
    stdout = spooled(project)[0]["output"]["stdout"]
    assert stdout == {"bytes": 3, "sha256": sha256(b"\xff\x00x"), "hex": "ff0078"}


@pytest.mark.parametrize(
    ("script", "options", "outcome"),
    [
        ("kill -9 $$", {}, {"outcome": "failed", "signal": 9}),
        ("sleep 600", {"timeout": 0.2}, {"outcome": "timeout", "error_type": "ToolTimedOut"}),
    ],
)
def test_how_a_tool_ended_is_recorded(
    project: Project, script: str, options: dict[str, Any], outcome: dict[str, Any]
) -> None:
    project.run(says(project, script), **options)
    (record,) = spooled(project)
    assert {name: record.get(name) for name in outcome} == outcome
    if record["outcome"] == "timeout":
        assert record["autopsy"]["processes"][0]["waits_for"]
        assert "output" not in record["autopsy"]


def test_a_refusal_is_recorded_with_its_reason(project: Project) -> None:
    project.command("tools/x", "/bin/echo")
    project.tool("tools/y.sh", "echo", signed=False)
    missing = project.run("tools/z")
    record = spooled(project)[0]
    assert record["outcome"] == "refused"
    assert record["error_type"] == "ItemNotFoundError"
    assert record["reason"] == missing.error
    assert record["item"] == "tools/z"


def test_a_refused_call_whose_schema_is_not_trusted_leaves_no_digest_of_a_secret(
    project: Project,
) -> None:
    keep(project, keep={"parameters": ["*"]})
    project.tool("tools/y.sh", "echo", signed=False)
    for item in ("tools/y", "tools/z"):
        project.run(item, {"pin": "1234"})
    assert [(one["outcome"], one["parameters"]) for one in spooled(project)] == [
        ("refused", {})
    ] * 2


def test_a_dry_run_is_not_recorded(project: Project) -> None:
    result = project.run(says(project, "true"), dry_run=True)
    assert result.success
    assert "run_id" not in result.metadata
    assert spooled(project) == []


def test_a_cancelled_call_is_recorded(project: Project) -> None:
    tool = says(project, "echo ready; sleep 600")

    async def cancel() -> None:
        ready = asyncio.Event()
        async with project.executor() as executor:
            call = executor.execute(tool, on_output=lambda *_: ready.set())
            task = asyncio.create_task(call)
            await ready.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(cancel())
    (record,) = spooled(project)
    assert (record["outcome"], record["item"]) == ("cancelled", tool)


def test_the_caller_is_recorded(project: Project) -> None:
    tool = says(project, "true")
    caller = Caller(kind="mcp", client="inspector 1.2", token="ci", traceparent=TRACE, shown="ab")
    with BlockingExecutor(project.context) as executor:
        executor.execute(tool, caller=caller)
    (record,) = spooled(project)
    expected = {
        "by": "mcp",
        "client": "inspector 1.2",
        "token": "ci",
        "traceparent": TRACE,
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
        "shown": "ab",
    }
    assert {name: record[name] for name in expected} == expected


@pytest.mark.parametrize("text", ["", "x", "00-" + "0" * 32 + "-1-01", "00-" + "G" * 32 + "-1-01"])
def test_a_malformed_trace_context_has_no_trace_id(text: str) -> None:
    assert trace_id(text) == ""


# What a record never contains

SCHEMA = {
    "type": "object",
    "properties": {
        "user": {"type": "string"},
        "password": {"type": "string", "format": "password"},
        "token": {"type": "string", "writeOnly": True},
        "login": {"type": "object", "properties": {"pin": {"type": "string", "writeOnly": True}}},
    },
}
VALUES = {"user": "ada", "password": "s3cret", "token": "t0ken", "login": {"pin": "7391"}}


def test_values_are_not_recorded_unless_the_user_says_so(project: Project) -> None:
    tool = says(project, "echo private-output; echo private-error >&2; exit 1")
    project.run(tool, {"word": "private-word"})
    assert "private" not in json.dumps(spooled(project))


def test_kept_values_never_include_declared_secrets(project: Project) -> None:
    keep(project, keep={"parameters": ["tools/*"]})
    project.run(says(project, "true", config_schema=SCHEMA), VALUES)
    (record,) = spooled(project)
    text = json.dumps(record)
    assert record["parameters"]["values"] == {
        "user": "ada",
        "password": SECRET,
        "token": SECRET,
        "login": SECRET,
    }
    assert not [one for one in ("s3cret", "t0ken", "7391") if one in text]


def test_a_secret_cannot_be_guessed_from_the_digest(project: Project) -> None:
    tool = says(project, "true", config_schema=SCHEMA)
    project.run(tool, VALUES)
    project.run(tool, {**VALUES, "password": "another", "login": {"pin": "0000"}})
    first, second = spooled(project)
    assert first["parameters"] == second["parameters"]


def test_in_doubt_a_parameter_is_secret() -> None:
    pin = {"type": "string", "writeOnly": True}
    referring = Secrets({"properties": {"a": {"$ref": "#/$defs/pin"}}, "$defs": {"pin": pin}})
    assert referring.masked({"a": 1}) == {"a": SECRET}
    unnamed = Secrets({"properties": {"a": {}}, "additionalProperties": pin})
    assert unnamed.masked({"a": 1, "b": 2}) == {"a": 1, "b": SECRET}
    alternative = Secrets({"properties": {"b": {}}, "allOf": [{"properties": {"b": pin}}]})
    assert alternative.masked({"b": 2}) == {"b": SECRET}
    assert Secrets({"properties": {"a": {}}}).masked({"a": 1, "b": 2}) == {"a": 1, "b": 2}


def test_output_is_kept_for_the_tools_that_the_user_lists(project: Project) -> None:
    keep(project, keep={"output": ["tools/says"]})
    project.run(says(project, "echo yes"))
    project.run(says(project, "echo no", name="other/says"))
    first, second = spooled(project)
    assert first["output"]["stdout"]["text"] == "yes\n"
    assert "text" not in second["output"]["stdout"]


def test_the_files_of_the_history_are_private(project: Project) -> None:
    project.run(says(project, "true"))
    spool = folder(project) / "spool.jsonl"
    assert (spool.stat().st_mode & 0o777, folder(project).stat().st_mode & 0o777) == (0o600, 0o700)


# The user's config


def test_history_can_be_turned_off(project: Project) -> None:
    keep(project, enabled=False)
    result = project.run(says(project, "true"))
    assert result.success
    assert "run_id" not in result.metadata
    assert not folder(project).exists()


@pytest.mark.parametrize(
    ("history", "reason"),
    [
        ({"enabled": "no"}, "expected true or false in 'history.enabled'"),
        ({"keeep": {}}, "expected only enabled, keep, retention in 'history'"),
        (
            {"keep": {"output": "x"}},
            "expected a list of tools, such as rye/bash/*, in 'history.keep.output'",
        ),
        ({"retention": {"days": 0}}, "expected a number of days in 'history.retention.days'"),
        ({"retention": {"runs": 1.5}}, "expected a number of runs in 'history.retention.runs'"),
        (
            {"retention": {"size": "2GB"}},
            "expected a size such as 500MiB or 2GiB in 'history.retention.size'",
        ),
    ],
)
def test_a_mistake_in_the_config_is_reported_and_nothing_is_kept(
    project: Project, history: dict[str, Any], reason: str
) -> None:
    keep(project, **history)
    result = project.run(says(project, "echo private"))
    assert result.success
    path = project.user / ".ai" / "config.yaml"
    assert result.metadata["history_error"] == f"{path}: {reason}; correct it"
    assert "private" not in json.dumps(spooled(project))


# Ids


def test_ids_are_in_the_order_of_time() -> None:
    ids = [new_run_id(at) for at in (0, 1, 1023, 1024, 1_763_430_000_000, 2**48)]
    assert ids == sorted(ids)
    assert all(map(is_run_id, ids))
    assert milliseconds_of(ids[4]) == 1_763_430_000_000
    assert first_run_id(1024) <= ids[3]
    assert ids[2] < first_run_id(1024)
    assert len({new_run_id(5) for _ in range(1000)}) == 1000
