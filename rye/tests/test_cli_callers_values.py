"""``rye sign`` and ``rye show`` on tools that put a caller's value into their command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rye_console import Console

SUBPROCESS = "rye/core/primitives/subprocess"
TEXT = {"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": False}
NUMBER = {"type": "object", "properties": {"x": {"type": "integer"}}}
HINT = (
    "pass it as an argument of its own, for example sh -c 'echo \"$1\"' sh {x}, or write a shell "
    "script that reads RYE_PARAM_X (rye new --runtime bash)"
)


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return Console(tmp_path)


def put(console: Console, name: str, **fields: Any) -> Path:
    given = {key: value for key, value in fields.items() if value is not None}
    text = json.dumps({"version": "1.0.0", "executor_id": SUBPROCESS, **given})
    return console.project.tool(f"{name}.yaml", text, signed=False)


@pytest.mark.parametrize("schema", [TEXT, None, {**TEXT, "additionalProperties": True}])
def test_a_tool_that_would_run_a_callers_text_is_not_signed(
    console: Console, schema: dict[str, Any] | None
) -> None:
    config = {"command": "sh", "args": ["-c", "echo {x}"]}
    path = put(console, "t", config=config, config_schema=schema)
    before = path.read_text()
    done = console("sign", "t")
    assert done.code != 0
    unless = "" if schema else "; if it is not a parameter, list all parameters in config_schema"
    assert done.stderr == (
        "rye: .ai/tools/t.yaml: 't': config.args[1]: {x} is part of text that a program may run; "
        f"{HINT}{unless}\n"
    )
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("args", "schema", "signed"),
    [
        (["{x}", "--x={x}", "out/{x}.txt", "{project_path}/{x}"], TEXT, True),
        (["{x}p"], NUMBER, True),
        (["{x}p"], TEXT, False),
        (["-m{x}"], TEXT, False),
        (["-e", "out/{x}"], TEXT, False),
        (["/x/ {print}"], TEXT, True),
        (["/x/ {print}"], None, False),
        (["echo ${HOME}"], TEXT, False),
        (["-c", "cd {project_path}"], TEXT, False),
        (["-c", "{greeting}"], TEXT, True),
        (["{greeting}"], TEXT, True),
        (["{careless}"], TEXT, False),
    ],
)
def test_a_tool_is_checked_before_it_is_signed(
    console: Console, args: list[str], schema: dict[str, Any] | None, signed: bool
) -> None:
    config = {"command": "awk", "args": args, "greeting": "a; b", "careless": ["echo {x}"]}
    put(console, "t", config=config, config_schema=schema)
    assert (console("sign", "t").code == 0) is signed


def test_the_runtime_of_a_tool_is_checked_with_the_tool(console: Console) -> None:
    runtime = {"command": "${SH}", "args": ["-c", "{script}", "sh", "{x}"]}
    interpreter = {"type": "system_binary", "binary": "sh", "var": "SH"}
    put(
        console,
        "runtime",
        tool_type="runtime",
        config=runtime,
        env_config={"interpreter": interpreter},
    )
    put(console, "fine", executor_id="runtime", config={"script": "echo ${HOME} $1"})
    put(console, "careless", executor_id="runtime", config={"script": "echo {x}"})
    assert console("sign", "runtime", "fine").code == 0
    done = console("sign", "careless")
    assert done.code != 0
    assert "config.args[1]: {x} is part of text that a program may run" in done.stderr


def test_show_reports_a_tool_that_would_run_a_callers_text(console: Console) -> None:
    config = {"command": "sh", "args": ["-c", "echo {x}"]}
    console.project.yaml("t", executor_id=SUBPROCESS, config=config)
    assert "{x} is part of text that a program may run" in console("show", "t").stderr


@pytest.mark.parametrize(
    ("command", "args", "named"),
    [
        ("bash", ["-c", "{x}"], ["x"]),
        ("{x}", [], ["x"]),
        ("python3", ["-Ic", "{x}"], ["x"]),
        ("split", ["--filter={x}"], ["x"]),
        ("python3", ["-c", "--name={x}"], ["x"]),
        ("redis-cli", ["eval", "{x}", "0"], ["x"]),
        ("bash", ["-c", 'echo "$1"', "sh", "{x}"], []),
        ("echo", ["{x}", "--text={x}"], []),
    ],
)
def test_show_says_that_a_tool_runs_what_the_caller_passes(
    console: Console, command: str, args: list[str], named: list[str]
) -> None:
    config = {"command": command, "args": args}
    console.project.yaml("t", executor_id=SUBPROCESS, config=config, config_schema=TEXT)
    assert console.json("show", "t")["runs_text_of"] == named
    line = "  may run    what the caller passes as x\n"
    assert (line in console("show", "t").stdout) is bool(named)


def test_check_refuses_a_tool_that_would_run_a_callers_text(console: Console) -> None:
    console.project.yaml(
        "t",
        executor_id=SUBPROCESS,
        config={"command": "sh", "args": ["-c", "echo {x}"]},
        config_schema=TEXT,
    )
    done = console("check", "t")
    assert (done.code, done.stdout) == (1, "error  t\n")
    assert f"{{x}} is part of text that a program may run; {HINT}" in done.stderr
