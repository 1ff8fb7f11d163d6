"""Tools that read the stdin of `rye run`."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from confined_machine import needs
from rye.executor.run.execute import PrimitiveExecutor
from rye_command import COMMAND, DEADLINE, Completed, Terminal, environment, rye
from rye_console import Console

PYTHON = """\
__executor_id__ = "python_runtime"
__stdin__ = True
import sys
def main(prefix: str = "") -> list:
    return [prefix + line.strip() for line in sys.stdin]
"""
CONFINED = f"{PYTHON}PERMISSIONS = {{}}\n"
BASH = """\
# /// rye
# executor_id = "bash_runtime"
# stdin = true
# ///
while read -r line; do echo "$RYE_PARAM_PREFIX$line${RYE_STDIN:-}"; done
"""
AWK = """\
#!/usr/bin/awk -f
# /// rye
# executor_id = "script_runtime"
# stdin = true
# ///
{ print ENVIRON["RYE_PARAM_PREFIX"] $0 ENVIRON["RYE_STDIN"]; fflush() }
"""
NODE = """\
// /// rye
// executor_id = "node_runtime"
// stdin = true
// ///
export async function main({ prefix }) {
  let text = "";
  for await (const part of process.stdin) text += part;
  return text.trim().split("\\n").map((line) => prefix + line);
}
"""


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return Console(tmp_path)


def add(console: Console, name: str, text: str) -> str:
    (console.path / ".ai" / "tools" / name).write_text(text)
    item_id = name.partition(".")[0]
    done = console("sign", item_id)
    assert done.code == 0, done.stderr
    return item_id


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("python.py", PYTHON, '["ü: a", "ü: b"]\n'),
        pytest.param("confined.py", CONFINED, '["ü: a", "ü: b"]\n', marks=needs("fs", "read_only")),
        ("shell.sh", BASH, "ü: a\nü: b\n"),
        pytest.param(
            "script.awk",
            AWK,
            "ü: a\nü: b\n",
            marks=pytest.mark.skipif(not Path("/usr/bin/awk").exists(), reason="no awk"),
        ),
        pytest.param(
            "script.mjs",
            NODE,
            '["ü: a","ü: b"]\n',
            marks=pytest.mark.skipif(shutil.which("node") is None, reason="no node"),
        ),
    ],
)
def test_a_tool_reads_its_parameters_and_the_stdin_of_its_caller(
    console: Console, name: str, text: str, shown: str
) -> None:
    tool = add(console, name, text)
    done = rye("run", tool, "prefix=ü: ", cwd=console.path, user=console.user, input="a\nb\n")
    assert done.code == 0, done.stderr
    expected = json.loads(shown) if shown.startswith("[") else shown
    assert (json.loads(done.stdout) if shown.startswith("[") else done.stdout) == expected


def test_a_command_gets_stdin_byte_by_byte(console: Console) -> None:
    tool = add(
        console, "copy.yaml", "executor_id: subprocess\nstdin: true\nconfig: {command: cksum}\n"
    )
    data = bytes(range(256)) * 8192
    done = rye("run", tool, cwd=console.path, user=console.user, input=data)
    direct = subprocess.run(["cksum"], input=data, capture_output=True, check=True)
    assert done.stdout.encode() == direct.stdout


def test_input_reaches_the_tool_while_it_runs(console: Console) -> None:
    tool = add(console, "shell.sh", BASH)
    with subprocess.Popen(
        [*COMMAND, "run", tool],
        cwd=console.path,
        env=environment(console.user),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in (b"one\n", b"two\n"):
            process.stdin.write(line)
            process.stdin.flush()
            assert process.stdout.readline() == line
        process.stdin.close()
        assert process.wait(DEADLINE) == 0


def test_a_person_can_type_the_input(console: Console) -> None:
    tool = add(console, "shell.sh", BASH)
    with Terminal("run", tool, "prefix=> ", cwd=console.path, user=console.user) as terminal:
        terminal.type("hello\n")
        terminal.wait_for("> hello")
        terminal.type("\x04")
        assert terminal.finish() == 0


def test_a_tool_that_does_not_declare_it_leaves_stdin_alone(console: Console) -> None:
    add(console, "shell.sh", BASH.replace("# stdin = true\n", ""))
    script = f"{' '.join(COMMAND)} run shell >/dev/null; cat"
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=console.path,
        env=environment(console.user),
        input=b"mine",
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"mine"


def test_stdin_that_was_read_as_a_parameter_is_at_its_end(console: Console) -> None:
    tool = add(console, "python.py", PYTHON)
    done = rye("run", tool, "prefix=-", cwd=console.path, user=console.user, input="x\n")
    assert done == Completed(0, "[]\n", "")


def test_other_callers_pass_no_stdin(console: Console) -> None:
    import asyncio

    tool = add(console, "python.py", PYTHON)

    async def call() -> object:
        async with PrimitiveExecutor(console.path, console.user) as executor:
            return (await executor.execute(tool, {"prefix": "x"})).data

    assert asyncio.run(call()) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "executor_id: subprocess\nstdin: true\nconfig: {command: cat, input_data: x}\n",
            "'tool' cannot read stdin: its own input_data is on stdin; remove stdin: true from ",
        ),
        (
            "executor_id: http_client\nstdin: true\nconfig: {url: 'http://127.0.0.1:9'}\n",
            "'tool' cannot read stdin: rye/core/primitives/http_client starts no process; ",
        ),
        ("executor_id: subprocess\nstdin: maybe\n", "expected true or false, got text in 'stdin'"),
    ],
)
def test_a_tool_that_cannot_get_a_stdin_is_refused(
    console: Console, text: str, reason: str
) -> None:
    (console.path / ".ai/tools/tool.yaml").write_text(text)
    signed, done = console("sign", "tool"), console("run", "tool")
    assert done.code != 0
    assert reason in signed.stderr + done.stderr
