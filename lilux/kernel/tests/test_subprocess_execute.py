"""Running a command and waiting for it."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lilux.primitives.subprocess import SubprocessPrimitive, SubprocessResult
from lilux.primitives.subprocess.request import exec_request
from processes import Tree, is_alive


def execute(
    config: dict[str, Any], params: dict[str, Any] | None = None, **options: Any
) -> SubprocessResult:
    return asyncio.run(SubprocessPrimitive().execute(config, params, **options))


def test_result_has_the_specified_fields_in_their_order() -> None:
    result = execute({"command": "sh", "args": ["-c", "echo out; echo err >&2; exit 3"]})
    assert (result.success, result.stdout, result.stderr, result.return_code) == (
        False, "out\n", "err\n", 3,
    )  # fmt: skip
    assert result.duration_ms > 0
    assert list(SubprocessResult.__dataclass_fields__)[:5] == [
        "success", "stdout", "stderr", "return_code", "duration_ms",
    ]  # fmt: skip
    # Extra fields have defaults, so the specified five are enough to make one.
    assert SubprocessResult(True, "", "", 0, 1.0).timed_out is False


@pytest.mark.parametrize("config", [{}, {"command": ""}, {"command": None}, {"command": "{none}"}])
def test_no_command_is_said_in_the_specified_words(config: dict[str, Any]) -> None:
    result = execute(config, {"none": ""})
    assert (result.success, result.return_code) == (False, -1)
    assert result.stderr == "No command specified"


def test_command_not_found_is_said_in_the_specified_words() -> None:
    result = execute({"command": "no-such-command"})
    assert (result.success, result.return_code) == (False, -1)
    assert result.stderr == "Failed to spawn: no-such-command: No such file or directory"


def test_timeout_is_said_in_the_specified_words_and_keeps_output() -> None:
    result = execute({"command": "sh", "args": ["-c", "echo part; sleep 600"], "timeout": 1})
    assert (result.success, result.return_code, result.timed_out) == (False, -1, True)
    assert (result.stdout, result.stderr) == ("part\n", "Command timed out after 1 seconds")


def test_death_by_signal_is_told() -> None:
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
        ({"stdout_file": 5}, "stdout_file must be a path, got int"),
        ({"input_data": object()}, "input_data must be a string, got object"),
        ({"input_data": "\ud800"}, "input_data has a lone surrogate, which is no text; pass bytes"),
        ({"comand": "x"}, "unknown config key 'comand'; known are "),
        ({"cwd": "/no/such"}, "Failed to spawn: working directory /no/such: No such file"),
    ],
)
def test_bad_config_is_a_failed_result_that_names_the_key(
    config: dict[str, Any], message: str
) -> None:
    result = execute({"command": "true", **config})
    assert (result.success, result.return_code) == (False, -1)
    assert result.stderr.startswith(message)


def test_templates_are_rendered_in_command_arguments_directory_and_input(tmp_path: Path) -> None:
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


def test_a_variable_of_the_given_environment_is_seen_by_templates() -> None:
    config = {"command": "echo", "args": ["${GIVEN}"], "env": {"GIVEN": "value"}}
    assert execute(config).stdout == "value\n"


@settings(max_examples=25, deadline=None)
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_parameter_is_inserted_literally_whatever_it_contains(text: str) -> None:
    for value in (text, f"${{HOME}}{text}{{other}}"):
        result = execute(
            {"command": "printf", "args": ["%s", "{value}"]}, {"value": value, "other": "WRONG"}
        )
        assert result.stdout == value


def test_rendering_can_be_switched_off() -> None:
    config = {"command": "echo", "args": ["${HOME} {x}"], "render": False}
    assert execute(config, {"x": 1}).stdout == "${HOME} {x}\n"


@pytest.mark.parametrize(("size", "inherits"), [(49, True), (50, False)])
def test_an_environment_of_fifty_variables_is_taken_to_be_complete(
    size: int, inherits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LILUX_TEST_INHERITED", "yes")
    env = {f"V{n}": "x" for n in range(size)}
    shown = execute({"command": "/usr/bin/env", "env": env}).stdout
    assert ("LILUX_TEST_INHERITED=yes" in shown) is inherits


def test_an_explicit_mode_overrules_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LILUX_TEST_INHERITED", "yes")
    exact = execute({"command": "/usr/bin/env", "env": {"A": "1"}, "env_mode": "exact"})
    assert exact.stdout == "A=1\n"
    many = {f"V{n}": "x" for n in range(60)}
    merged = execute({"command": "env", "env": many, "env_mode": "merge"})
    assert "LILUX_TEST_INHERITED=yes" in merged.stdout


def test_changes_of_the_environment_after_the_first_call_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def both() -> list[str]:
        primitive = SubprocessPrimitive()
        said = []
        for value in ("one", "two"):
            monkeypatch.setenv("LILUX_TEST_CHANGING", value)
            config = {"command": "sh", "args": ["-c", "echo $LILUX_TEST_CHANGING"]}
            said.append((await primitive.execute(config)).stdout)
        return said

    assert asyncio.run(both()) == ["one\n", "two\n"]


def test_bytes_and_undecodable_names_reach_the_process() -> None:
    odd = os.fsdecode(b"\xff")
    config = {"command": "od", "args": ["-An", "-tx1"], "input_data": b"\x00\xff"}
    assert execute(config).stdout.split() == ["00", "ff"]
    result = execute({"command": "sh", "args": ["-c", 'printf %s "$0" | od -An -tx1', odd]})
    assert result.stdout.split() == ["ff"]


def test_output_that_is_not_utf8_is_replaced() -> None:
    assert execute({"command": "printf", "args": [r"a\377b"]}).stdout == "a\ufffdb"


def test_output_beyond_the_limit_is_counted() -> None:
    config = {"command": "head", "args": ["-c", "5000", "/dev/zero"], "output_limit": 1000}
    result = execute(config)
    assert (result.truncated_stdout, result.truncated_stderr) == (4000, 0)
    assert "[... 4000 bytes left out ...]" in result.stdout


def test_background_processes_are_ended_or_kept_as_asked(tmp_path: Path) -> None:
    script = "sleep 600 & echo $!"
    ended = execute({"command": "sh", "args": ["-c", script]})
    assert (ended.background_ended, ended.tree_known_by) == (1, "subreaper")
    kept = execute({"command": "sh", "args": ["-c", script], "background": "keep"})
    assert kept.background_ended == 0
    os.kill(int(kept.stdout), signal.SIGKILL)


def test_output_reaches_a_callback_while_the_job_runs(tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    seen: list[tuple[str, str]] = []

    def on_output(stream: str, text: str) -> None:
        seen.append((stream, text))
        go_on.touch()  # the job waits for this, so it cannot have ended

    script = f"printf first; while [ ! -e {go_on} ]; do sleep 0.01; done; printf second >&2"
    result = execute({"command": "sh", "args": ["-c", script]}, on_output=on_output)
    assert seen == [("stdout", "first"), ("stderr", "second")]
    assert (result.stdout, result.stderr) == ("first", "second")


def test_a_character_that_is_cut_between_chunks_reaches_the_callback_whole(tmp_path: Path) -> None:
    seen: list[str] = []
    script = r"printf '\303'; sleep 0.2; printf '\251\303'"
    execute({"command": "sh", "args": ["-c", script]}, on_output=lambda _, text: seen.append(text))
    assert seen == ["é", "\ufffd"]


def test_a_slow_async_callback_holds_up_its_job_and_gets_everything_in_order(
    tmp_path: Path,
) -> None:
    line, lines = "0123456789abcdef" * 64, 40_000  # 41 MB, far more than waits for a callback
    progress = tmp_path / "progress"
    writer = f"""
import os
for n in range({lines}):
    os.write(1, b"{line}\\n")
    if n % 1000 == 0:
        open("{progress}", "w").write(str(n))
"""
    open_gate = asyncio.Event()
    received = 0

    async def on_output(stream: str, text: str) -> None:
        nonlocal received
        await open_gate.wait()
        received += len(text)

    async def main() -> SubprocessResult:
        config = {"command": sys.executable, "args": ["-c", writer], "render": False}
        job = asyncio.create_task(
            SubprocessPrimitive().execute({**config, "output_limit": 100}, on_output=on_output)
        )
        await asyncio.to_thread(wait_until_unchanged, progress)
        stopped_at = int(progress.read_text())
        assert 1000 <= stopped_at < lines // 2
        open_gate.set()
        return await job

    assert asyncio.run(main()).success
    assert received == lines * (len(line) + 1)


def wait_until_unchanged(path: Path) -> None:
    """Returns once the file says the same for a second."""
    last, since = "", time.monotonic()
    deadline = time.monotonic() + 30
    while time.monotonic() - since < 1:
        assert time.monotonic() < deadline
        now = path.read_text() if path.exists() else ""
        if now != last or not now:
            last, since = now, time.monotonic()
        time.sleep(0.01)


def test_a_callback_may_return_anything() -> None:
    text = io.StringIO()
    script = "echo one; sleep 0.1; echo two"
    result = execute(
        {"command": "sh", "args": ["-c", script]}, on_output=lambda _, t: text.write(t)
    )
    assert (text.getvalue(), result.output_error) == ("one\ntwo\n", None)


def test_a_callback_that_lets_out_a_cancellation_of_its_own_does_not_cancel_the_call() -> None:
    async def on_output(stream: str, text: str) -> None:
        raise asyncio.CancelledError

    result = execute(
        {"command": "head", "args": ["-c", "9000000", "/dev/zero"]}, on_output=on_output
    )
    assert result.success
    assert result.output_error == "the output callback failed: CancelledError"


def test_a_stuck_callback_stops_its_own_job_only() -> None:
    async def main() -> None:
        primitive = SubprocessPrimitive()
        stuck = asyncio.Event()

        async def never(stream: str, text: str) -> None:
            stuck.set()
            await asyncio.Event().wait()

        endless = asyncio.create_task(
            primitive.execute({"command": "cat", "args": ["/dev/zero"]}, on_output=never)
        )
        await stuck.wait()
        assert (await primitive.execute({"command": "echo", "args": ["hi"]})).stdout == "hi\n"
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless

    asyncio.run(main())


def test_a_callback_that_fails_is_told_and_does_not_end_the_job() -> None:
    calls = []

    def on_output(stream: str, text: str) -> None:
        calls.append(text)
        raise RuntimeError("S3CRET")

    script = "echo one; sleep 0.1; echo two"
    result = execute({"command": "sh", "args": ["-c", script]}, on_output=on_output)
    assert (result.success, result.stdout, len(calls)) == (True, "one\ntwo\n", 1)
    assert result.output_error == "the output callback failed: RuntimeError"


def test_cancelling_the_task_ends_the_whole_tree_before_it_returns(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "tree")

    async def main() -> None:
        job = asyncio.create_task(
            SubprocessPrimitive().execute({"command": "sh", "args": ["-c", tree.script()]})
        )
        processes = await asyncio.to_thread(tree.processes)
        job.cancel()
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
        assert [name for name, process in processes.items() if is_alive(process)] == []

    asyncio.run(main())


def test_cancelling_again_and_again_still_waits_for_the_end_of_the_tree(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "tree")
    script = "trap '' TERM; " + tree.script("while :; do sleep 0.1; done")

    async def main() -> None:
        job = asyncio.create_task(
            SubprocessPrimitive().execute({"command": "sh", "args": ["-c", script], "grace": 1})
        )
        processes = await asyncio.to_thread(tree.processes)
        while not job.done():
            job.cancel()
            await asyncio.sleep(0.01)
        assert job.cancelled()
        assert [name for name, process in processes.items() if is_alive(process)] == []

    asyncio.run(main())


def test_a_request_that_the_helper_could_not_take_is_a_failed_result() -> None:
    result = execute({"command": "true", "args": ["x" * 17_000_000]})
    assert result.stderr.startswith("arguments and environment take 170")
    assert result.stderr.endswith("send large data as input_data")


@pytest.mark.parametrize(("config", "params"), [(None, {}), (["true"], {}), ({"command": "x"}, [])])
def test_a_config_or_parameters_that_are_no_mapping_are_told(config: Any, params: Any) -> None:
    result = execute(config, params)
    assert result.return_code == -1
    name, given = ("params", params) if isinstance(config, dict) else ("config", config)
    assert result.stderr == f"{name} must be a mapping, got {type(given).__name__}"


def test_the_default_timeout_is_the_specified_one() -> None:
    assert exec_request({"command": "true"}, {}).fields["timeout"] == 300


def test_a_timeout_of_asyncio_ends_the_whole_tree(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "tree")

    async def main() -> None:
        primitive = SubprocessPrimitive()
        seen = asyncio.create_task(asyncio.to_thread(tree.processes))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await primitive.execute({"command": "sh", "args": ["-c", tree.script()]})
        processes = await seen
        assert [name for name, process in processes.items() if is_alive(process)] == []
        assert (await primitive.execute({"command": "true"})).success

    asyncio.run(main())


def test_many_calls_at_once_are_not_mixed_up() -> None:
    async def main() -> list[SubprocessResult]:
        primitive = SubprocessPrimitive()
        return await asyncio.gather(
            *(primitive.execute({"command": "cat", "input_data": f"call {n}"}) for n in range(200))
        )

    assert [result.stdout for result in asyncio.run(main())] == [f"call {n}" for n in range(200)]
