"""The system space as it ships: every item is valid and described."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest
from lilux.primitives.http_client import config as http_config
from lilux.primitives.subprocess import request as subprocess_config
from rye.items.element import Metadata
from rye.items.metadata import parse_metadata
from rye.items.reader import read_item
from rye_project import Project

import rye

ROOT = Path(rye.__file__).parent / ".ai"
ITEMS = {
    str(path.relative_to(ROOT / "tools").with_suffix("")): path
    for path in sorted((ROOT / "tools").rglob("*"))
    if path.is_file() and "__pycache__" not in path.parts
}


def metadata(item_id: str) -> Metadata:
    return parse_metadata(read_item(ITEMS[item_id], ROOT))


CALLABLE = [item_id for item_id in ITEMS if metadata(item_id).tool_type != "library"]
AGENT_TOOLS = [item_id for item_id in CALLABLE if not item_id.startswith("rye/core/")]


def test_the_system_space_contains_every_documented_item() -> None:
    assert {item_id for item_id in CALLABLE if "/lib/" not in item_id} == {
        "rye/core/primitives/subprocess",
        "rye/core/primitives/http_client",
        "rye/core/runtimes/python_script_runtime",
        "rye/core/runtimes/script_runtime",
        "rye/core/runtimes/python_runtime",
        "rye/core/runtimes/node_runtime",
        "rye/core/runtimes/bash_runtime",
        "rye/core/runtimes/uv_runtime",
        "rye/core/runtimes/uv_script_runtime",
        "rye/core/runtimes/mcp_http_runtime",
        "rye/core/runtimes/mcp_server_runtime",
        "rye/core/runtimes/mcp_stdio_runtime",
        "rye/bash/bash",
        "rye/git/git",
        "rye/fs/read",
        "rye/fs/write",
        "rye/fs/edit",
        "rye/fs/list",
        "rye/fs/glob",
        "rye/fs/grep",
    }


@pytest.mark.parametrize("item_id", ITEMS)
def test_every_item_declares_version_type_category_and_description(item_id: str) -> None:
    declared = metadata(item_id)

    assert re.fullmatch(r"\d+\.\d+\.\d+", declared.version)
    assert declared.tool_type
    assert declared.category
    assert len(declared.description) > 20
    assert (declared.executor_id is None) == item_id.startswith("rye/core/primitives/")


@pytest.mark.parametrize("item_id", AGENT_TOOLS)
def test_every_tool_has_a_closed_described_schema_and_annotations(item_id: str) -> None:
    declared = metadata(item_id)

    assert declared.config_schema is not None
    assert declared.config_schema["additionalProperties"] is False
    assert set(declared.annotations) == {"read_only", "destructive", "idempotent", "open_world"}
    for name, schema in declared.config_schema["properties"].items():
        assert "description" in schema or name == "ignore_case"
        assert ("default" in schema) != (name in declared.config_schema.get("required", [])) or (
            name == "glob"
        )


def test_the_schema_of_subprocess_has_every_key_of_the_kernel() -> None:
    schema = metadata("rye/core/primitives/subprocess").config_schema or {}

    # A caller cannot set these: parameters are literal, the signed permissions confine, and only
    # `rye permissions learn` observes.
    others = {"render", "confinement", "observe"}
    assert set(schema["properties"]) == subprocess_config._KEYS - others


def test_the_schema_of_http_client_has_every_key_of_the_kernel() -> None:
    schema = metadata("rye/core/primitives/http_client").config_schema or {}

    assert set(schema["properties"]) == set(http_config.HttpConfig.__dataclass_fields__)
    assert set(schema["properties"]["retry"]["properties"]) == set(
        http_config.RetryPolicy.__dataclass_fields__
    )
    assert schema["properties"]["method"]["enum"] == list(http_config.METHODS)


def test_running_a_tool_leaves_no_file_in_the_system_space(tmp_path: Path) -> None:
    before = sorted(ROOT.rglob("*"))

    assert Project(tmp_path, shipped_system=True).run("rye/fs/list").success
    assert sorted(ROOT.rglob("*")) == before


def test_the_schema_of_git_lists_the_commands_that_have_rules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for folder in ("core/runtimes/lib/python", "git"):
        monkeypatch.syspath_prepend(ROOT / "tools" / "rye" / folder)
    rules = importlib.import_module("git_options").COMMANDS
    schema = metadata("rye/git/git").config_schema
    assert schema is not None
    assert schema["properties"]["command"]["enum"] == list(rules)
