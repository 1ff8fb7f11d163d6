"""The command line: flags, requests on stdin, exit codes and help."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from proc_client import find_binary, run_command


def help_of(*command: str) -> str:
    done = subprocess.run(
        [find_binary(), *command, "--help"], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize("command", [[], ["exec"]])
def test_exec_examples_in_the_help_work_as_printed(command: list[str], tmp_path: Path) -> None:
    examples = re.findall(r"^  ((?:lilux-proc exec|echo).*)$", help_of(*command), re.MULTILINE)
    assert len(examples) >= 3
    for example in examples:
        script = example.replace("lilux-proc", shlex.quote(find_binary()))
        done = subprocess.run(
            ["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert json.loads(done.stdout)["success"] is True, example


def test_help_lists_every_command_and_describes_frames() -> None:
    commands = re.findall(r"^  (exec|spawn|kill|status|probe|serve) ", help_of(), re.MULTILINE)
    assert set(commands) == {"exec", "spawn", "kill", "status", "probe", "serve"}
    assert '{"id": 1, "op": "exec", …}' in help_of("serve")


def test_flags_are_converted_to_a_request(platform: str, tmp_path: Path) -> None:
    code, printed = run_command(
        "--platform", platform, "exec", "--cwd", str(tmp_path), "--env", "GREETING=hi = ho",
        "--stdin", "input", "--", "sh", "-c", 'pwd; echo "$GREETING"; cat',
    )  # fmt: skip
    assert code == 0
    assert printed["stdout"] == f"{tmp_path}\nhi = ho\ninput"
    assert set(printed) == {
        "success", "stdout", "stderr", "return_code", "duration_ms", "pid", "timed_out",
        "cancelled", "signal", "truncated", "tree",
    }  # fmt: skip


def test_options_after_the_command_belong_to_the_command() -> None:
    assert run_command("exec", "echo", "--timeout", "1")[1]["stdout"] == "--timeout 1\n"


def test_exit_code_distinguishes_success_failure_and_misuse() -> None:
    assert run_command("exec", "--", "true")[0] == 0
    assert run_command("exec", "--", "false")[0] == 1
    code, printed = run_command("exec", "--timeout", "-1", "--", "true")
    assert (code, printed["success"]) == (2, False)
    assert printed["error"].startswith("timeout must be a number of seconds above 0")
    code, printed = run_command("exec", "--request", stdin='{"command": "true", "timeout": -1}')
    assert (code, printed["success"]) == (2, False)
    assert printed["error"].startswith("timeout must be a number of seconds above 0")
    assert run_command("kill", "0")[0] == 2
    assert run_command("exec")[0] == 2


def test_output_that_is_not_utf8_does_not_break_the_json(platform: str) -> None:
    _, printed = run_command("--platform", platform, "exec", "--", "printf", r"a\377b")
    assert printed["stdout"] == "a\ufffdb"


def test_a_hundred_megabytes_of_stdin_fit_a_request() -> None:
    request = {"command": "wc", "args": ["-c"], "stdin": "x" * 100_000_000}
    code, printed = run_command("exec", "--request", stdin=json.dumps(request))
    assert (code, printed["stdout"].strip()) == (0, "100000000")


def test_stdin_can_come_from_a_file_or_be_passed_through(tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_text("from file")
    assert run_command("exec", "--stdin-file", str(file), "--", "cat")[1]["stdout"] == "from file"
    _, printed = run_command("exec", "--stdin-file", "-", "--", "cat", stdin="passed")
    assert printed["stdout"] == "passed"


def test_a_missing_stdin_file_is_reported() -> None:
    code, printed = run_command("exec", "--stdin-file", "/no/such/file", "--", "cat")
    assert code == 2
    assert printed["error"] == "--stdin-file /no/such/file: No such file or directory"


@pytest.mark.parametrize(
    "flag", ["--timeout=1", "--grace=1", "--stdin=x", "--output-limit=1", "--background=keep"]
)
def test_flags_combined_with_a_request_are_refused(flag: str) -> None:
    assert run_command("exec", "--request", flag, stdin='{"command": "true"}')[0] == 2


def test_timeout_flag_works(platform: str) -> None:
    code, printed = run_command(
        "--platform", platform, "exec", "--timeout", "0.2", "--", "sleep", "600"
    )
    assert code == 1
    assert printed["stderr"] == "Command timed out after 0.2 seconds"


def test_background_flag_keeps_background_processes(tmp_path: Path) -> None:
    script = f"sleep 600 & echo $! > {tmp_path}/pid"
    run_command("exec", "--background", "keep", "--", "sh", "-c", script)
    pid = (tmp_path / "pid").read_text().strip()
    assert run_command("status", pid)[1]["alive"] is True
    assert run_command("kill", pid)[1]["method"] == "terminated"
