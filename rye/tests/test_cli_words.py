"""`rye run`: --key value, key=@file and key=-, the help of a tool, and -q, -v and --debug."""

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from rye.cli.run.parameters import parse_pairs
from rye.cli.run.words import plain_pairs
from rye.errors import ParameterError
from rye_command import Completed, rye
from rye_console import Console
from rye_project import SUBPROCESS, says

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "What to say"},
        "count": {"type": "integer"},
        "max_depth": {"type": "integer"},
        "dry-run": {"type": "boolean"},
        "loud": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "unit": {"enum": ["celsius", "kelvin"]},
        "options": {"type": "object"},
        "timeout": {"type": "integer"},
    },
    "required": ["text"],
    "additionalProperties": False,
}


def values(*words: str, schema: Any = SCHEMA) -> dict[str, Any]:
    pairs = plain_pairs(words, schema, item_id="tools/x")
    return parse_pairs(pairs, schema, item_id="tools/x")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--text", "hi", "count=3"], {"text": "hi", "count": 3}),
        (["--text=hi"], {"text": "hi"}),
        (["--text=--json"], {"text": "--json"}),
        (["--text", "a=b"], {"text": "a=b"}),
        (["--count", "-3"], {"count": -3}),
        (["--max-depth", "2"], {"max_depth": 2}),
        (["--max_depth=2"], {"max_depth": 2}),
        (["--dry-run"], {"dry-run": True}),
        (["--loud", "--text", "x"], {"loud": True, "text": "x"}),
        (["--loud", "text=x"], {"loud": True, "text": "x"}),
        (["--loud", "false"], {"loud": False}),
        (["--loud=false"], {"loud": False}),
        (["--no-loud"], {"loud": False}),
        (["--no-dry-run"], {"dry-run": False}),
        (["--tags", "a", "--tags", "b", "tags=c"], {"tags": ["a", "b", "c"]}),
        (["--options", '{"a": [1]}'], {"options": {"a": [1]}}),
        (["text=@@home"], {"text": "@home"}),
    ],
)
def test_options_after_the_tool_are_its_parameters(
    words: list[str], expected: dict[str, Any]
) -> None:
    assert values(*words) == expected


def test_a_tool_without_a_schema_accepts_any_option() -> None:
    assert values("--text", "hi", "--n=3", schema=None) == {"text": "hi", "n": "3"}


@pytest.mark.parametrize(
    ("words", "issue"),
    [
        (["--text"], "--text needs a value (write --text=… if it begins with --)"),
        (["--text", "--loud"], "--text needs a value (write --text=… if it begins with --)"),
        (["--txet", "x"], "unknown parameter '--txet' (did you mean '--text'?)"),
        (["--timeuot=3"], "unknown parameter '--timeuot' (did you mean '--timeout'?)"),
        (["--no-text"], "unknown parameter '--no-text'"),
        (["text=@nowhere"], "text: 'nowhere': no such file or directory (for a text that begins "),
        (["text=-", "count=-"], "count: stdin was already read for another value"),
    ],
)
def test_wrong_options_are_reported(
    words: list[str], issue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x")))
    with pytest.raises(ParameterError) as caught:
        values(*words)
    assert issue in str(caught.value)
    assert str(caught.value).endswith("see `rye run tools/x --help`")


def test_a_value_is_read_from_a_file_or_stdin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"[1, 2]\n")))
    (tmp_path / "text").write_text("two\nlines\n")
    (tmp_path / "unit").write_text("kelvin\n")
    (tmp_path / "options").write_text('{"a":\n1}\n')
    words = [f"{name}=@{tmp_path}/{name}" for name in ("text", "unit", "options")]
    schema = {"properties": {**SCHEMA["properties"], "list": {"type": "array"}}}
    assert values(*words, "list=-", schema=schema) == {
        "text": "two\nlines\n",
        "unit": "kelvin",
        "options": {"a": 1},
        "list": [1, 2],
    }


def test_a_text_of_unknown_origin_does_not_read_files(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    for words in (["--text", f"@{secret}"], [f"--text=@{secret}"], ["--text", "-"]):
        assert values(*words)["text"] in {f"@{secret}", "-"}


def test_bytes_that_are_not_text_and_big_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rye.cli.run.words.MAX_BYTES", 10)
    monkeypatch.chdir(tmp_path)
    Path("binary").write_bytes(b"\xff\xfe")
    Path("big").write_text("x" * 11)
    with pytest.raises(ParameterError) as caught:
        values("text=@binary", "text=@big")
    assert "text: 'binary' is not UTF-8 text; text: 'big' has more than 10 bytes" in str(
        caught.value
    )


# The command


@pytest.fixture
def console(tmp_path: Path) -> Console:
    console = Console(tmp_path)
    console.project.yaml(
        "tools/echoes",
        executor_id=SUBPROCESS,
        description="Prints its parameters.",
        config={"command": "/bin/cat", "input_data": "{params_json}"},
        config_schema=SCHEMA,
    )
    return console


def test_own_options_of_rye_are_parameters_after_two_dashes(console: Console) -> None:
    done = rye(
        *["run", "tools/echoes", "--text=x", "--timeout", "9", "--", "--timeout", "3", "count=-"],
        cwd=console.path,
        user=console.user,
        input="7",
    )
    assert json.loads(done.stdout) == {"text": "x", "timeout": 3, "count": 7}


def test_stdin_is_not_read_twice(console: Console) -> None:
    arguments = ["run", "tools/echoes", "--params", "-", "text=-"]
    done = rye(*arguments, cwd=console.path, user=console.user, input="{}")
    assert done.code == 2
    assert "text: stdin was already read for another value" in done.stderr


@pytest.mark.parametrize(
    "words", [["tools/echoes", "--help"], ["-h", "tools/echoes"], ["echoes", "text=x", "--help"]]
)
def test_the_help_of_a_tool_shows_its_parameters_and_an_example(
    console: Console, words: list[str]
) -> None:
    done = console("run", *words)
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "Usage: rye run tools/echoes text=… [KEY=VALUE]...\n\n  Prints its parameters.\n"
    )
    assert "\n  text       What to say (string, required)\n" in done.stdout
    assert "\n  rye run tools/echoes text=hello\n" in done.stdout


def test_the_help_of_a_tool_shows_the_examples_of_its_author(console: Console) -> None:
    console.project.yaml(
        "tools/adds",
        executor_id=SUBPROCESS,
        config={"command": "/bin/cat"},
        config_schema={"properties": {"a": {"type": "integer"}}},
        examples=[{"params": {"a": 3}, "expect": {"sum": 3}}],
        stdin=True,
    )
    done = console("run", "tools/adds", "--help")
    assert "\nIt reads stdin.\n" in done.stdout
    assert '\n  rye run tools/adds a=3\n    → {"sum": 3}\n' in done.stdout
    assert "  stdin      passed on by `rye run`\n" in console("show", "tools/adds").stdout


def test_the_help_of_an_unknown_or_unreadable_tool_is_an_error(console: Console) -> None:
    assert console("run", "nowhere", "--help") == Completed(
        3, "", "rye: there is no item 'nowhere'; list the available items with: rye list\n"
    )
    (console.path / ".ai/tools/broken.yaml").write_text("a: [")
    done = console("run", "broken", "--help")
    assert done.code == 1
    assert ".ai/tools/broken.yaml" in done.stderr


def test_quiet_prints_no_notes_about_a_success(console: Console) -> None:
    tool = says(console.project, "sleep 600 >/dev/null 2>&1 & echo done")
    done = rye("run", "-q", tool, cwd=console.path, user=console.user)
    assert done == Completed(0, "done\n", "")
    tool = says(console.project, "exit 3", name="tools/fails")
    done = rye("run", "-q", tool, cwd=console.path, user=console.user)
    assert done == Completed(3, "", "rye: 'tools/fails' ended with exit code 3\n")


def test_verbose_says_what_runs_and_why_it_is_trusted(console: Console) -> None:
    tool = says(console.project, "echo $TOKEN", env_config={"env": {"TOKEN": "s3cret"}})
    done = rye("run", tool, "-v", cwd=console.path, user=console.user)
    assert done.stdout == "s3cret\n"
    assert done.stderr.startswith("runs tools/says:\n  command      /bin/sh -c 'echo $TOKEN'\n")
    assert re.search(
        r"\n  chain        tools/says 1.0.0 \(project\), signed by .{16}, trusted\n", done.stderr
    )
    assert re.search(r"\nsucceeded after \d+ ms\n$", done.stderr)
    assert "s3cret" not in done.stderr
    assert "not in" not in done.stderr


def test_debug_says_where_files_were_looked_for_and_how_long_each_step_took(
    console: Console,
) -> None:
    done = rye("run", "--debug", "bash", "command=true", cwd=console.path, user=console.user)
    lines = [" ".join(line.split()) for line in done.stderr.splitlines()]
    assert f"project {console.path}" in lines
    assert "asked for as 'bash'" in lines
    assert f"not in {console.user}/.ai/tools/bash.*" in lines
    steps = [line.partition(" ms ")[2] for line in lines if re.match(r"\d+\.\d ms ", line)]
    assert steps == [
        "start",
        "resolve",
        "lockfile",
        "chain and signatures",
        "validation",
        "dependencies",
        "closure",
        "copy",
        "parameters",
        "environment",
        "config",
        "permissions",
        "run",
        "finish",
    ]


def test_debug_says_how_far_a_refused_call_got(console: Console) -> None:
    (console.path / ".ai/tools/plain.yaml").write_text("executor_id: subprocess\n")
    done = rye("run", "--debug", "plain", "--json", cwd=console.path, user=console.user)
    assert json.loads(done.stdout)["metadata"]["error_type"] == "UnsignedError"
    steps = [line.partition(" ms  ")[2] for line in done.stderr.splitlines() if " ms  " in line]
    assert steps == ["start", "resolve", "lockfile", "until the error", "finish"]
    assert done.stderr.endswith(" ms\n")
