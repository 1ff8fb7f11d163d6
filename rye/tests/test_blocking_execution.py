"""A call without an event loop has the same result and loads only what it needs."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from interrupts import interrupt_when
from loopback_http import LoopbackServer, respond
from processes import Tree
from rye.executor.chain import snapshot
from rye.executor.chain.known_files import KnownFile
from rye.executor.run.blocking import BlockingExecutor, execute_blocking
from rye.executor.run.result import ExecutionResult
from rye.items.element import ItemFile
from rye.items.reader import read_item
from rye_project import Project

TOOL = """\
#!/usr/bin/env bash
# /// rye
# version = "1.0.0"
# executor_id = "rye/core/runtimes/bash_runtime"
# [config_schema]
# type = "object"
# additionalProperties = false
# [config_schema.properties.word]
# type = "string"
# default = "hello"
# ///
echo "$RYE_PARAM_WORD"
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, shipped_system=True)
    project.tool("say.sh", TOOL)
    return project


def comparable(result: ExecutionResult) -> dict[str, Any]:
    fields: dict[str, Any] = dataclasses.asdict(result)
    assert fields.pop("duration_ms") >= 0
    fields["metadata"]["run_id"] = fields["metadata"].get("run_id", "")[:2]
    if autopsy := fields["metadata"].pop("autopsy", None):
        # Pids and times differ; what is reported does not.
        fields["metadata"]["examined"] = [one["command"] for one in autopsy["processes"]]
        fields["error"] = re.sub(r"^ +\d+ ", "", fields["error"], flags=re.MULTILINE)
    return fields


@pytest.mark.parametrize(
    ("item_id", "parameters", "options"),
    [
        ("say", None, {}),
        ("say", {"word": "${HOME} {word}"}, {}),
        ("say", {"other": 1}, {}),
        ("say", None, {"dry_run": True}),
        ("say", None, {"timeout": -1}),
        ("nothing", None, {}),
        ("fails", None, {}),
        ("slow", None, {"timeout": 0.3}),
        ("unsigned", None, {}),
        ("rye/core/primitives/subprocess", {"command": "echo", "args": ["{x}"]}, {}),
        ("rye/core/primitives/subprocess", {"command": "no-such-program"}, {}),
    ],
)
def test_a_call_has_the_same_result_as_in_an_event_loop(
    project: Project, item_id: str, parameters: dict[str, Any] | None, options: dict[str, Any]
) -> None:
    project.command("fails", "sh", "-c", "echo part; echo why >&2; exit 3")
    project.command("slow", "sleep", "600")
    project.tool("unsigned.sh", TOOL, signed=False)
    project.run(
        item_id, parameters, **options
    )  # so that the lockfile exists, if the call makes one
    expected = project.run(item_id, parameters, **options)
    result = execute_blocking(item_id, parameters, context=project.context, **options)
    assert comparable(result) == comparable(expected)


def test_the_lockfile_is_made_and_checked(project: Project) -> None:
    refused = execute_blocking("say", context=project.context, frozen=True)
    assert refused.metadata["error_type"] == "LockMissingError"
    first = execute_blocking("say", context=project.context)
    assert first.metadata["lockfile_created"] == str(project.lockfile("say"))
    assert execute_blocking("say", context=project.context, frozen=True).success
    project.tool("say.sh", TOOL + "echo more\n")
    changed = execute_blocking("say", context=project.context)
    assert changed.metadata["error_type"] == "LockUpgradeError"


def test_the_declared_schema_can_be_read_before_the_call(project: Project) -> None:
    schema = {"type": "object", "properties": {"word": {"type": "string"}}}
    project.command("echo", "/bin/cat", config_schema=schema)
    with BlockingExecutor(project.context) as executor:
        assert executor.declared_schema("echo") == schema
        refused = executor.execute("echo", {"word": 3})
        assert executor.declared_schema("nothing") is None
        missing = executor.execute("nothing")
        assert executor.execute("echo", {"word": "hi"}).success
    assert refused.metadata["error_type"] == "ParameterError"
    assert missing.metadata["error_type"] == "ItemNotFoundError"


def test_the_file_is_read_once_for_the_schema_and_the_call(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute_blocking("say", context=project.context)
    reads: list[Path] = []

    def read(path: Path, root: Path) -> ItemFile:
        reads.append(path)
        return read_item(path, root)

    def read_again(known: KnownFile) -> bool:
        reads.append(known.file.path)
        return False

    monkeypatch.setattr(snapshot, "read_item", read)
    monkeypatch.setattr(KnownFile, "is_unchanged", read_again)
    with BlockingExecutor(project.context) as executor:
        executor.declared_schema("say")
        assert executor.execute("say", {"word": "hi"}).success
    assert reads.count(project.path.resolve() / ".ai/tools/say.sh") == 1


def test_a_later_call_reads_the_file_again(project: Project) -> None:
    with BlockingExecutor(project.context) as executor:
        executor.declared_schema("say")
        assert executor.execute("say").success
        project.tool("say.sh", TOOL + "echo more\n", signed=False)
        refused = executor.execute("say")
    assert refused.metadata["error_type"] == "LockTamperedError"


def test_output_is_passed_to_the_callback(project: Project) -> None:
    seen: list[tuple[str, str]] = []
    result = execute_blocking(
        "say",
        {"word": "out"},
        context=project.context,
        on_output=lambda stream, text: seen.append((stream, text)),
    )
    assert result.success
    assert seen == [("stdout", "out\n")]


def test_a_chain_that_ends_in_another_primitive_gets_an_event_loop(project: Project) -> None:
    with LoopbackServer() as server:
        server.on("/", respond(json={"ok": True}))
        project.yaml(
            "get",
            executor_id="rye/core/primitives/http_client",
            config={"method": "GET", "url": f"{server.url}/", "timeout": 10},
        )
        result = execute_blocking("get", context=project.context)
    assert (result.success, result.data) == (True, {"ok": True})


def test_an_interrupt_is_raised_after_the_whole_tree_has_ended(
    project: Project, tmp_path: Path
) -> None:
    tree = Tree(tmp_path / "tree")
    project.command("tree", "sh", "-c", tree.script())

    with interrupt_when((tree.folder / "up").exists), pytest.raises(KeyboardInterrupt):
        execute_blocking("tree", context=project.context, timeout=60)
    pids = [int((tree.folder / name).read_text()) for name in tree.NAMES]
    assert [pid for pid in pids if psutil.pid_exists(pid)] == []
    assert not project.lockfile("tree").exists()


PROGRAM = """
import json, sys
from rye.context import Context
from rye.executor.run.blocking import execute_blocking
context = Context.from_machine(*sys.argv[2:])
result = execute_blocking("say", json.loads(sys.argv[1]), context=context)
said = result.data["stdout"] if result.success else result.error
print(json.dumps([said, sorted(sys.modules)]))
"""
NEVER = {
    "asyncio", "ast", "click", "concurrent.futures", "cryptography", "dataclasses", "datetime",
    "dotenv", "hashlib", "httpx2", "inspect", "logging", "mcp", "msgspec", "packaging",
    "rye.trust.project_approval", "shlex", "shutil", "signal", "socket", "subprocess", "threading",
    "tomllib", "traceback", "typing", "yaml",
}  # fmt: skip


def in_a_new_process(project: Project, parameters: dict[str, Any] | None) -> tuple[str, set[str]]:
    places = [str(project.path), str(project.user)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(parameters), *places],
        check=True,
        capture_output=True,
        text=True,
    )
    said, modules = json.loads(done.stdout)
    return said, set(modules)


def test_a_process_that_runs_a_known_tool_loads_little(project: Project) -> None:
    for _ in range(2):
        execute_blocking("say", context=project.context)
    said, modules = in_a_new_process(project, None)
    assert said == "hello\n"
    assert modules & (NEVER | {"jsonschema_rs"}) == set()


def test_parameters_of_a_plain_schema_load_no_validator(project: Project) -> None:
    for _ in range(2):
        execute_blocking("say", context=project.context)
    said, modules = in_a_new_process(project, {"word": "other"})
    assert said == "other\n"
    assert modules & (NEVER | {"jsonschema_rs"}) == set()


def test_invalid_parameters_load_what_explains_them_and_nothing_else(project: Project) -> None:
    for _ in range(2):
        execute_blocking("say", context=project.context)
    said, modules = in_a_new_process(project, {"word": 1})
    assert "parameters.word: expected string, got integer" in said
    assert "jsonschema_rs" in modules
    assert modules & {"asyncio", "cryptography", "msgspec", "yaml", "tomllib", "click"} == set()
