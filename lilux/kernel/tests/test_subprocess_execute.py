"""Run a command and wait for it: the same results over both transports."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lilux.primitives.subprocess import SubprocessResult
from lilux.primitives.subprocess.request import exec_request
from process_transports import TRANSPORTS, Execute, open_transport


def test_result_has_the_specified_fields_in_order(execute: Execute) -> None:
    result = execute({"command": "sh", "args": ["-c", "echo out; echo err >&2; exit 3"]})
    assert (result.success, result.stdout, result.stderr, result.return_code) == (
        False, "out\n", "err\n", 3,
    )  # fmt: skip
    assert result.duration_ms > 0
    assert list(SubprocessResult.__dataclass_fields__)[:5] == [
        "success", "stdout", "stderr", "return_code", "duration_ms",
    ]  # fmt: skip
    # The other fields have defaults, so the specified five are enough.
    assert SubprocessResult(True, "", "", 0, 1.0).timed_out is False


@pytest.mark.parametrize("config", [{}, {"command": ""}, {"command": None}, {"command": "{none}"}])
def test_missing_command_is_reported_as_specified(execute: Execute, config: dict[str, Any]) -> None:
    result = execute(config, {"none": ""})
    assert (result.success, result.return_code) == (False, -1)
    assert result.stderr == "No command specified"


def test_command_not_found_is_reported_as_specified(execute: Execute) -> None:
    result = execute({"command": "no-such-command"})
    assert (result.success, result.return_code) == (False, -1)
    assert result.stderr == "Failed to spawn: no-such-command: No such file or directory"


def test_timeout_is_reported_as_specified_and_keeps_output(execute: Execute) -> None:
    result = execute({"command": "sh", "args": ["-c", "echo part; sleep 600"], "timeout": 1})
    assert (result.success, result.return_code, result.timed_out) == (False, -1, True)
    assert (result.stdout, result.stderr) == ("part\n", "Command timed out after 1 seconds")


def test_death_by_signal_is_reported(execute: Execute) -> None:
    result = execute({"command": "sh", "args": ["-c", "kill -KILL $$"]})
    assert (result.signal, result.return_code) == (signal.SIGKILL, 137)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"args": "x"}, "args must be a list of strings, got str"),
        ({"args": [b"x"]}, "args[0] must be a string, got bytes"),
        (
            {"args": ["a\0b"]},
            "args[0] contains a NUL byte; remove it",
        ),
        ({"cwd": 1.5j}, "cwd must be a string, got complex"),
        ({"env": []}, "env must be a mapping of strings, got list"),
        ({"env": {"A": 1}}, "env['A'] must be a string, got int"),
        ({"env": {"A=B": ""}}, "env name \"A\" is empty or contains '=' or NUL; rename it"),
        ({"env_mode": "some"}, "env_mode must be 'merge' or 'exact'"),
        ({"timeout": "5"}, "timeout must be a number of seconds, got str"),
        ({"timeout": True}, "timeout must be a number of seconds, got bool"),
        (
            {"timeout": -1},
            "timeout must be a number of seconds above 0 and at most 31622400, got -1",
        ),
        ({"timeout": float("nan")}, "timeout must be a finite number of seconds"),
        ({"timeout": float("inf")}, "timeout must be a finite number of seconds"),
        ({"timeout": 10**400}, "timeout must be a finite number of seconds"),
        ({"grace": {1}}, "grace must be a number of seconds, got set"),
        ({"output_limit": "x"}, "output_limit must be a number of bytes, got str"),
        ({"output_limit": -1}, "output_limit must be a number of bytes of at least 0"),
        ({"background": "some"}, "background must be 'end' or 'keep'"),
        ({"observe": "yes"}, "observe must be true or false, got str"),
        ({"stdout_file": 5}, "stdout_file must be a path, got int"),
        ({"input_data": object()}, "input_data must be a string, got object"),
        ({"input_data": "\ud800"}, "input_data has a lone surrogate; pass bytes"),
        ({"comand": "x"}, "unknown config key 'comand'; known are "),
        ({"cwd": "/no/such"}, "Failed to spawn: working directory /no/such: No such file"),
    ],
)
def test_invalid_config_gives_a_failed_result_that_names_the_key(
    execute: Execute, config: dict[str, Any], message: str
) -> None:
    result = execute({"command": "true", **config})
    assert (result.success, result.return_code) == (False, -1)
    assert result.stderr.startswith(message)


def test_templates_are_rendered_in_command_arguments_directory_and_input(
    execute: Execute, tmp_path: Path
) -> None:
    result = execute(
        {
            "command": "{shell}",
            "args": ["-c", "pwd; cat; echo $0 $1", "{n}", "${LILUX_TEST_VARIABLE:-fallback}"],
            "cwd": "{folder}",
            "input_data": "input {flag}\n",
        },
        {"shell": "sh", "n": 3, "folder": tmp_path, "flag": True},
    )
    assert result.stdout == f"{tmp_path}\ninput true\n3 fallback\n"


def test_templates_see_variables_of_the_given_environment(execute: Execute) -> None:
    config = {"command": "echo", "args": ["${GIVEN}"], "env": {"GIVEN": "value"}}
    assert execute(config).stdout == "value\n"


@settings(max_examples=25, deadline=None)
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_parameter_is_inserted_literally(text: str) -> None:
    config = {"command": "printf", "args": ["%s", "{value}"]}
    for transport in TRANSPORTS:
        with open_transport(transport) as execute:
            for value in (text, f"${{HOME}}{text}{{other}}"):
                assert execute(config, {"value": value, "other": "WRONG"}).stdout == value


def test_rendering_can_be_disabled(execute: Execute) -> None:
    config = {"command": "echo", "args": ["${HOME} {x}"], "render": False}
    assert execute(config, {"x": 1}).stdout == "${HOME} {x}\n"


@pytest.mark.parametrize(("size", "inherits"), [(49, True), (50, False)])
def test_an_environment_of_fifty_variables_is_complete(
    execute: Execute, size: int, inherits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LILUX_TEST_INHERITED", "yes")
    env = {f"V{n}": "x" for n in range(size)}
    shown = execute({"command": "/usr/bin/env", "env": env}).stdout
    assert ("LILUX_TEST_INHERITED=yes" in shown) is inherits


def test_an_explicit_env_mode_takes_precedence_over_the_size(
    execute: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LILUX_TEST_INHERITED", "yes")
    exact = execute({"command": "/usr/bin/env", "env": {"A": "1"}, "env_mode": "exact"})
    assert exact.stdout == "A=1\n"
    many = {f"V{n}": "x" for n in range(60)}
    merged = execute({"command": "env", "env": many, "env_mode": "merge"})
    assert "LILUX_TEST_INHERITED=yes" in merged.stdout


def test_each_call_sees_the_current_environment(
    execute: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"command": "sh", "args": ["-c", "echo $LILUX_TEST_CHANGING"]}
    for value in ("one", "two"):
        monkeypatch.setenv("LILUX_TEST_CHANGING", value)
        assert execute(config).stdout == f"{value}\n"


def test_bytes_and_undecodable_arguments_reach_the_process(execute: Execute) -> None:
    odd = os.fsdecode(b"\xff")
    config = {"command": "od", "args": ["-An", "-tx1"], "input_data": b"\x00\xff"}
    assert execute(config).stdout.split() == ["00", "ff"]
    result = execute({"command": "sh", "args": ["-c", 'printf %s "$0" | od -An -tx1', odd]})
    assert result.stdout.split() == ["ff"]


def test_output_that_is_not_utf8_is_replaced(execute: Execute) -> None:
    assert execute({"command": "printf", "args": [r"a\377b"]}).stdout == "a\ufffdb"


def test_output_beyond_the_limit_is_counted(execute: Execute) -> None:
    config = {"command": "head", "args": ["-c", "5000", "/dev/zero"], "output_limit": 1000}
    result = execute(config)
    assert (result.truncated_stdout, result.truncated_stderr) == (4000, 0)
    assert "[... 4000 bytes left out ...]" in result.stdout


def test_background_processes_are_ended_or_kept(execute: Execute) -> None:
    script = "sleep 600 & echo $!"
    ended = execute({"command": "sh", "args": ["-c", script]})
    assert (ended.background_ended, ended.tree_known_by) == (1, "subreaper")
    kept = execute({"command": "sh", "args": ["-c", script], "background": "keep"})
    assert kept.background_ended == 0
    os.kill(int(kept.stdout), signal.SIGKILL)


def test_a_request_beyond_the_limits_of_the_helper_gives_a_failed_result(execute: Execute) -> None:
    result = execute({"command": "true", "args": ["x" * 17_000_000]})
    assert result.stderr.startswith("arguments and environment take 170")
    assert result.stderr.endswith("send large data as input_data")


@pytest.mark.parametrize(("config", "params"), [(None, {}), (["true"], {}), ({"command": "x"}, [])])
def test_a_config_or_parameters_of_the_wrong_type_are_reported(
    execute: Execute, config: Any, params: Any
) -> None:
    result = execute(config, params)
    assert result.return_code == -1
    name, given = ("params", params) if isinstance(config, dict) else ("config", config)
    assert result.stderr == f"{name} must be a mapping, got {type(given).__name__}"


def test_default_timeout_is_as_specified() -> None:
    assert exec_request({"command": "true"}, {}).fields["timeout"] == 300


LARGE = "x" * 3_000_000


@pytest.mark.parametrize(
    ("script", "config", "stdout"),
    [
        ("wc -c", {"input_data": LARGE}, "3000000\n"),
        ("echo unread", {"input_data": LARGE}, "unread\n"),
        (f"head -c {len(LARGE)} /dev/zero | tr '\\0' x", {}, LARGE),
        (
            "head -c 3000000 /dev/zero >&2; head -c 3000000 /dev/zero | wc -c",
            {"output_limit": 1000},
            "3000000\n",
        ),
    ],
    ids=["input", "unread input", "output", "both streams"],
)
def test_more_data_than_a_pipe_takes_at_once(
    execute: Execute, script: str, config: dict[str, Any], stdout: str
) -> None:
    result = execute({"command": "sh", "args": ["-c", script], "render": False, **config})
    assert result.stdout == stdout
    assert execute({"command": "true"}).success
