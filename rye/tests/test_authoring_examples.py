"""``rye test``: the examples of a tool are run, compared and shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from item_metadata import parse, refusal
from rye.authoring.examples import difference
from rye_console import Console

TOOL = """__executor_id__ = "python_runtime"
EXAMPLES = [
    {"params": {"a": 1, "b": 2}, "expect": {"sum": 3}},
    {"params": {"a": 1}, "expect": {"sum": 5}},
    {"params": {"a": "x"}},
]


def main(a: int, b: int = 2) -> dict:
    \"\"\"Add.\"\"\"
    return {"sum": a + b, "more": True}
"""


@pytest.fixture
def console(tmp_path: Path) -> Console:
    made = Console(tmp_path)
    made.project.tool("add.py", TOOL)
    made.project.tool(
        "echo.yaml",
        "executor_id: rye/core/primitives/subprocess\n"
        "config: {command: echo, args: [hi]}\nexamples: [{expect: hi}]\n",
    )
    return made


@pytest.mark.parametrize(
    ("expected", "found", "where"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, ""),
        ({"a": {"b": [1]}}, {"a": {"b": [1], "c": 0}}, ""),
        ({"a": 1}, {}, "result has no 'a'"),
        ({"a": [1, 2]}, {"a": [1]}, "result.a: expected [1, 2], got [1]"),
        ([{"a": 1}], [{"a": 2}], "result[0].a: expected 1, got 2"),
        (1, True, "result: expected 1, got true"),
        (1, 1.0, ""),
        (None, {}, "result: expected null, got {}"),
        ("x", "x\n", 'result: expected "x", got "x\\n"'),
    ],
)
def test_objects_match_as_a_subset_and_everything_else_exactly(
    expected: Any, found: Any, where: str
) -> None:
    assert difference(expected, found) == where


def test_examples_are_run_and_compared(console: Console) -> None:
    done = console("test")
    assert done.code == 1
    assert done.stdout == (
        "ok      add example 1\nfailed  add example 2\nfailed  add example 3\n"
        "ok      echo example 1\n2 of 4 examples passed\n"
    )
    first, second = done.stderr.splitlines()
    assert first == "rye: result.sum: expected 5, got 3"
    assert second.startswith("rye: invalid parameters for 'add': ")
    assert console("test", "echo").code == 0
    assert [one["problem"] == "" for one in console.json("test", "add")] == [True, False, False]


def test_a_tool_without_examples_is_named(console: Console) -> None:
    done = console("test", "rye/fs/read")
    assert (done.code, done.stdout) == (0, "0 of 0 examples passed\n")
    assert done.stderr == "note: rye/fs/read has no examples; add them to its metadata\n"


def test_examples_are_shown_to_people_and_agents(console: Console) -> None:
    page = console("show", "add").stdout
    assert page.partition("Examples\n")[2] == (
        '  rye run add a=1 b=2\n    → {"sum": 3}\n'
        '  rye run add a=1\n    → {"sum": 5}\n'
        """  rye run add --params '{"a": "x"}'\n"""
    )
    assert "Examples:\n  rye run add a=1 b=2\n    → " in console("run", "add", "--help").stdout
    listed = json.loads(console("tools", "--format", "mcp").stdout)
    (schema,) = [one["inputSchema"] for one in listed if one["name"] == "add"]
    assert schema["examples"] == [{"a": 1, "b": 2}, {"a": 1}, {"a": "x"}]


@pytest.mark.parametrize(
    ("examples", "reason"),
    [
        ("1", "expected a list of examples, got a number in 'EXAMPLES'"),
        ("[1]", "expected a mapping, got a number in 'EXAMPLES[0]'"),
        ("[{'parms': {}}]", "expected params or expect, got 'parms' in 'EXAMPLES[0]'"),
        ("[{'params': []}]", "expected a mapping, got a list in 'EXAMPLES[0].params'"),
    ],
)
def test_malformed_examples_are_refused(examples: str, reason: str) -> None:
    text = f"__executor_id__ = 'a'\nEXAMPLES = {examples}\n"
    assert refusal("a.py", text) == f"a.py:2: {reason}; correct it and sign again"


def test_examples_are_metadata() -> None:
    assert parse("a.py", TOOL).examples[0] == {"params": {"a": 1, "b": 2}, "expect": {"sum": 3}}
