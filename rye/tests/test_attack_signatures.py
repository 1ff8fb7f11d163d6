"""Attacks on signed files and lockfiles: moved signatures, replays, hidden text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rye.executor.run.result import ExecutionResult
from rye_project import SUBPROCESS, Project

TOOL = 'version: "1.0.0"\nexecutor_id: {executor}\nconfig: {{command: echo, args: [{word}]}}\n'


def text(word: str) -> str:
    return TOOL.format(executor=SUBPROCESS, word=word)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def refusal(result: ExecutionResult, error_type: str) -> str:
    assert not result.success, result.data
    assert result.metadata["error_type"] == error_type, result.error
    return str(result.error)


def signature_line(path: Path) -> bytes:
    return path.read_bytes().split(b"\n", 1)[0] + b"\n"


def test_a_signature_moved_to_another_file_is_refused(project: Project) -> None:
    line = signature_line(project.tool("good.yaml", text("good")))
    project.tool("evil.yaml", line.decode() + text("evil"), signed=False)
    assert "was changed after key" in refusal(project.run("evil"), "ChangedError")


def test_a_signature_with_a_changed_timestamp_is_refused(project: Project) -> None:
    tool = project.tool("good.yaml", text("good"))
    parts = tool.read_text().split(":", 3)
    tool.write_text(":".join([*parts[:2], "20200101T000000Z", parts[3]]))
    assert "did not make" in refusal(project.run("good"), "ForgedError")


def test_a_replayed_older_version_does_not_match_the_lockfile(project: Project) -> None:
    tool = project.tool("t.yaml", text("vulnerable"))
    old = tool.read_bytes()
    project.tool("t.yaml", text("fixed"))
    assert project.run("t").data["stdout"] == "fixed\n"
    tool.write_bytes(old)
    message = refusal(project.run("t"), "LockUpgradeError")
    assert str(project.lockfile("t")) in message


def test_without_a_lockfile_an_older_signed_version_runs(
    project: Project,
) -> None:
    """Not promised: the old version is signed too. Only a lockfile or ``frozen`` detects it."""
    tool = project.tool("t.yaml", text("vulnerable"))
    old = tool.read_bytes()
    project.tool("t.yaml", text("fixed"))
    tool.write_bytes(old)
    assert project.run("t", use_lockfile=False).success
    assert "has no lockfile" in refusal(project.run("t", frozen=True), "LockMissingError")


def test_editing_the_lockfile_does_not_let_a_changed_tool_run(project: Project) -> None:
    tool = project.tool("t.yaml", text("good"))
    assert project.run("t").success
    changed = tool.read_bytes().replace(b"good", b"evil")
    tool.write_bytes(changed)
    pinned = json.loads(project.lockfile("t").read_text())
    from rye.trust.signature import split_signature

    now = split_signature(changed, "#").content_hash
    pinned["root"]["integrity"] = pinned["resolved_chain"][0]["integrity"] = now
    project.lockfile("t").write_text(json.dumps(pinned))
    assert "was changed after key" in refusal(project.run("t"), "ChangedError")


def test_emptying_the_lockfile_does_not_disable_the_lock(project: Project) -> None:
    project.tool("t.yaml", text("good"))
    assert project.run("t").success
    pinned = json.loads(project.lockfile("t").read_text())
    pinned["resolved_chain"] = []
    project.lockfile("t").write_text(json.dumps(pinned))
    assert "it does not pin" in refusal(project.run("t"), "LockShadowedError")


DISGUISES = {
    "a line before it": lambda good: b"config: {command: id}\n" + good,
    "a blank line before it": lambda good: b"\n" + good,
    "a byte order mark before it": lambda good: b"\xef\xbb\xbf" + good,
    "a shebang before it": lambda good: b"#!/bin/sh -c id\n" + good,
    "a carriage return before it": lambda good: b"\r" + good,
    "text after it on its line": lambda good: good.replace(b"\n", b" ; id\n", 1),
    "a carriage return that hides text": lambda good: good.replace(b"\n", b"\rconfig: {}\n", 1),
    "a line separator that hides text": lambda good: good.replace(b"\n", b"\xe2\x80\xa8x: 1\n", 1),
    "a form feed that hides text": lambda good: good.replace(b"\n", b"\x0cx: 1\n", 1),
    "a NUL after it": lambda good: good.replace(b"\n", b"\0\n", 1),
    "a second signature line": lambda good: good.split(b"\n")[0] + b"\n" + good,
    "a line at the end": lambda good: good + b"# more\n",
    "a second document at the end": lambda good: good + b"---\nconfig: {command: id}\n",
    "UTF-16": lambda good: good.decode().encode("utf-16"),
    "UTF-16 without a mark": lambda good: good.decode().encode("utf-16-le"),
    "UTF-7": lambda good: good.replace(b"good", b"+AGUAdgBpAGw-"),
    "other line ends": lambda good: good.replace(b"\n", b"\r\n"),
    "old line ends": lambda good: good.replace(b"\n", b"\r"),
    "capitals": lambda good: good.replace(b"rye:signed", b"RYE:signed", 1),
    "a wide colon": lambda good: good.replace(b"rye:", "rye：".encode(), 1),  # noqa: RUF001 - the attack
    "a trailing blank": lambda good: good.replace(b"\n", b" \n", 1),
    "an overlong spelling": lambda good: good.replace(b"good", b"g\xc1\xafod"),
    "a combining character": lambda good: good.replace(b"good", "go\u0301od".encode()),
}  # fmt: skip


@pytest.mark.parametrize("disguise", DISGUISES.values(), ids=DISGUISES)
def test_hidden_text_or_another_encoding_does_not_run(project: Project, disguise: object) -> None:
    tool = project.tool("t.yaml", text("good"))
    assert callable(disguise)
    tool.write_bytes(disguise(tool.read_bytes()))
    result = project.run("t")
    assert not result.success
    assert result.metadata["error_type"] in ("UnsignedError", "ChangedError")


def test_only_the_line_end_of_the_signature_line_is_not_signed(project: Project) -> None:
    tool = project.tool("t.yaml", text("good"))
    tool.write_bytes(tool.read_bytes().replace(b"\n", b"\r\n", 1))
    assert project.run("t").data["stdout"] == "good\n"


def test_a_project_tool_that_shadows_a_pinned_system_tool_does_not_run(project: Project) -> None:
    project.tool("t.yaml", text("system"), space="system")
    assert project.run("t").data["stdout"] == "system\n"
    shadow = project.tool("t.yaml", text("shadow"))
    assert str(shadow) in refusal(project.run("t"), "LockShadowedError")


def test_a_signed_yaml_tool_renamed_to_py_is_not_a_tool(
    project: Project,
) -> None:
    """The signature covers the content only, and the extension decides how it is parsed."""
    tool = project.tool("t.yaml", text("good"))
    tool.rename(tool.with_suffix(".py"))
    assert "is not a tool: it has no metadata" in refusal(project.run("t"), "NoMetadataError")
