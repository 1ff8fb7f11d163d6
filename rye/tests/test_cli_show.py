"""``rye show``: the page of a tool, and an example call that works."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from rye.cli.run.parameters import parse_pairs
from rye_command import Terminal
from rye_console import Console

SUBPROCESS = "rye/core/primitives/subprocess"


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return Console(tmp_path)


def put(console: Console, item_id: str = "team/hello", **fields: Any) -> Path:
    config = {"command": "true"}
    return console.project.yaml(item_id, executor_id=SUBPROCESS, config=config, **fields)


def test_the_whole_page(console: Console) -> None:
    put(
        console,
        description="Says hello.",
        category="greetings",
        annotations={"read_only": True, "open_world": False},
        config_schema={
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "who to greet"},
                "times": {"type": "integer", "minimum": 1, "maximum": 9, "default": 1},
                "how": {"type": "object", "properties": {"loud": {"type": "boolean"}}},
            },
            "required": ["name"],
        },
    )
    done = console("show", "team/hello")
    assert (done.code, done.stderr) == (0, "")
    signer = console.json("show", "hello")["signer"]
    assert (
        done.stdout
        == f"""\
team/hello  1.0.0

  Says hello.

  space      project
  file       .ai/tools/team/hello.yaml
  runs on    rye/core/primitives/subprocess
  category   greetings
  signature  signed by you ({signer})
  pinned     no; the first successful run pins it
  may do     everything that you can do (unconfined)
  effects    read-only, local only

Parameters
  name      who to greet (string, required)
  times     integer, 1 to 9, default 1
  how       object
  how.loud  boolean

Example
  rye run team/hello name=Ada
"""
    )


def test_json_has_the_schema_and_the_signature(console: Console) -> None:
    put(console, config_schema={"type": "object"})
    shown = console.json("show", "hello")
    assert shown["item_id"] == "team/hello"
    assert shown["schema"] == {"type": "object"}
    assert shown["example"] == "rye run team/hello"
    assert (shown["standing"], shown["owner"], shown["locked"]) == ("trusted", "you", False)
    assert shown["error"] is None


def test_the_page_lists_the_variables_that_a_dotenv_may_supply(console: Console) -> None:
    put(console, permissions={"env": ["TOKEN", "AWS_*"]}, env_config={"env": {"A": "${LEVEL}"}})
    assert "  from .env  AWS_*, LEVEL, TOKEN\n" in console("show", "hello").stdout
    assert console.json("show", "hello")["asks_for"] == ["AWS_*", "LEVEL", "TOKEN"]


def test_the_page_says_whether_the_tool_is_pinned(console: Console) -> None:
    put(console)
    assert console.project.run("team/hello").success
    assert "  pinned     yes\n" in console("show", "hello").stdout
    put(console, description="other")
    assert "pinned     to different content (" in console("show", "hello").stdout


def test_the_reason_why_an_unsigned_tool_cannot_run_is_printed(console: Console) -> None:
    console.project.tool("raw.yaml", f"executor_id: {SUBPROCESS}\n", signed=False)
    done = console("show", "raw")
    assert done.code == 0
    assert "signature  not signed\n" in done.stdout
    assert done.stderr == (
        "rye: raw is not signed: .ai/tools/raw.yaml; read the file, then sign it with: "
        "rye sign .ai/tools/raw.yaml\n"
    )


def test_an_unreadable_file_is_reported_and_has_no_example(console: Console) -> None:
    console.project.tool("bad.yaml", "executor_id: 3\n", signed=False)
    done = console("show", "bad")
    assert done.code == 0
    assert "  cannot be read\n" in done.stdout
    assert done.stderr.startswith("rye: .ai/tools/bad.yaml:1: expected an item id")
    assert "Example" not in done.stdout


def test_an_unknown_id_exits_with_3(console: Console) -> None:
    done = console("show", "rye/fs/raed")
    assert (done.code, done.stdout) == (3, "")
    assert "did you mean rye/fs/read" in done.stderr


@pytest.mark.parametrize(
    ("properties", "call"),
    [
        ({"n": {"type": "integer"}}, "n=1"),
        ({"text": {"const": "it's $HOME; `x`"}}, """text='it'"'"'s $HOME; `x`'"""),
        ({"flag": {"type": "boolean"}}, "flag=true"),
        ({"list": {"type": "array", "items": {"type": "string"}}}, """list='["hello"]'"""),
        ({"map": {"type": "object"}}, "map='{}'"),
        ({"any": {"default": 3}}, """--params '{"any": 3}'"""),
        ({"-x": {"type": "string"}}, """--params '{"-x": "hello"}'"""),
    ],
)
def test_the_example_is_quoted_for_a_shell_and_can_be_parsed(
    console: Console, properties: dict[str, Any], call: str
) -> None:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    put(console, config_schema=schema)
    example = console.json("show", "hello")["example"]
    assert example == f"rye run team/hello {call}"
    words = shlex.split(example)[3:]
    given = json.loads(words[1]) if words[0] == "--params" else parse_pairs(words, schema)
    assert set(given) == set(properties)


def test_every_example_in_the_system_space_passes_a_dry_run(console: Console) -> None:
    for each in console.json("list"):
        example = console.json("show", each["item_id"])["example"]
        words = shlex.split(example)
        assert words[:2] == ["rye", "run"]
        done = console("run", "--dry-run", *words[2:])
        assert done.code == 0, f"{example}: {done.stderr}"


def test_control_characters_in_metadata_are_escaped(console: Console) -> None:
    schema = {"properties": {"x\x1b[2J": {"description": "\x1b]0;a\x07", "enum": ["\u202e"]}}}
    put(console, description="a\x1b[31m\u202e\n\nb\x9b", config_schema=schema)
    done = console("show", "hello")
    assert done.stdout.replace("\n", "").isprintable()
    assert "x\\x1b[2J" in done.stdout


def test_text_is_wrapped_on_a_narrow_terminal(console: Console) -> None:
    put(console, description="many words " * 20)
    with Terminal(
        "show", "hello", cwd=console.path, user=console.user, env={"NO_COLOR": "1"}, columns=50
    ) as terminal:
        assert terminal.finish() == 0
    described = [line for line in terminal.shown.splitlines() if "many" in line]
    assert len(described) > 4
    assert max(map(len, described)) <= 50
