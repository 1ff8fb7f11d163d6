"""How values become arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rye.errors import ArgumentTooLongError, ConfigTemplateError
from rye.executor.config.command_line import CommandLine, check_lengths, render_command_line
from rye.executor.config.templates import Names


def names(
    parameters: dict[str, Any] | None = None,
    *,
    declared: frozenset[str] | None = None,
    env: dict[str, str] | None = None,
) -> Names:
    return Names(
        injected={"tool_path": "/t/{x}.py"},
        parameters=parameters or {},
        declared=declared,
        env=env or {},
        tool="a/tool",
    )


def line(command: str, *args: Any, input_data: Any = None, **parameters: Any) -> CommandLine:
    config = {"command": command, "args": list(args), "input_data": input_data}
    return render_command_line(config, names(parameters))


def test_a_placeholder_that_is_the_whole_script_runs_the_callers_script() -> None:
    assert line("bash", "-c", "{v}", v="echo 'a b' | wc").args == ["-c", "echo 'a b' | wc"]


def test_values_of_every_type_become_arguments() -> None:
    given = {"n": 3, "yes": True, "none": None, "list": ["a b", 1, None, "--"], "map": {"k": "ü"}}
    rendered = line(
        "x", "{n}", "{yes}", "{none}", "{list}", "{map}", "-n{n}", "--x={list}", **given
    )
    assert rendered.args == [
        *("3", "true", "a b", "1", "--", '{"k":"ü"}', "-n3", '--x=["a b",1,null,"--"]')
    ]


def test_all_arguments_may_be_one_placeholder() -> None:
    config = {"command": "git", "args": "{args}"}
    assert render_command_line(config, names({"args": ["log", "-1"]})).args == ["log", "-1"]
    declared = names(declared=frozenset(("args",)))
    assert render_command_line(config, declared).args == []


def test_args_that_are_a_text_are_refused() -> None:
    with pytest.raises(ConfigTemplateError) as caught:
        render_command_line({"command": "x", "args": "a b"}, names())
    assert str(caught.value) == (
        "'a/tool': config.args: expected a list, got str; write each argument as one element"
    )


@pytest.mark.parametrize("place", ["command", "args"])
def test_a_nul_in_the_command_line_is_refused(place: str) -> None:
    config = {"command": "x", "args": []} | {place: "{v}" if place == "command" else ["{v}"]}
    where = "command" if place == "command" else "args[0]"
    with pytest.raises(ConfigTemplateError) as caught:
        render_command_line(config, names({"v": "secret\0"}))
    assert str(caught.value) == (
        f"'a/tool': config.{where}: contains a NUL character, which arguments and variables "
        "cannot hold; remove it, or send the value on stdin"
    )


def test_an_unpaired_surrogate_is_refused_on_the_command_line_and_on_stdin() -> None:
    message = "contains an unpaired surrogate, which is not valid text; pass valid Unicode"
    with pytest.raises(ConfigTemplateError) as caught:
        line("x", "{v}", v="\ud800")
    assert str(caught.value) == f"'a/tool': config.args[0]: {message}"
    with pytest.raises(ConfigTemplateError) as caught:
        line("x", input_data="{v}", v="\udfff")
    assert str(caught.value) == f"'a/tool': config.input_data: {message}"


def test_a_nul_passes_through_stdin() -> None:
    assert line("x", input_data="{v}", v="a\0b").input_data == "a\0b"


def test_a_number_too_large_to_spell_is_refused_by_name() -> None:
    with pytest.raises(ConfigTemplateError) as caught:
        line("x", "--n={n}", n=10**5000)
    assert str(caught.value) == (
        "'a/tool': config.args[0]: parameter 'n' (int) cannot be written as JSON inside text; "
        "pass a string"
    )
    assert line("x", "{n}", n=10**1000).args == ["1" + "0" * 1000]


def test_a_command_that_is_not_text_is_refused() -> None:
    with pytest.raises(ConfigTemplateError) as caught:
        line("{v}", v=["sh"])
    assert str(caught.value) == (
        "'a/tool': config.command: expected a text, got list; name the program"
    )


def test_an_argument_that_linux_would_refuse_names_the_runtime_that_takes_stdin() -> None:
    check_lengths(["x", "y" * (128 * 1024 - 1)], {}, "'a/tool'")
    with pytest.raises(ArgumentTooLongError) as caught:
        check_lengths(["x", "y" * (128 * 1024)], {}, "'a/tool'")
    assert str(caught.value) == (
        "'a/tool': argument 1 takes 131072 bytes; this system allows 131071; send the "
        "parameters on stdin: use the executor rye/core/runtimes/python_runtime, or set "
        'input_data: "{params_json}" in the config of the runtime'
    )


def test_lengths_are_measured_in_bytes() -> None:
    with pytest.raises(ArgumentTooLongError, match="argument 1 takes 132000 bytes"):
        check_lengths(["x", "€" * 44_000], {}, "'a/tool'")


def test_many_arguments_are_too_long_together() -> None:
    with pytest.raises(ArgumentTooLongError, match="arguments and environment take"):
        check_lengths(["x", *["y" * 100_000] * 100], {}, "'a/tool'")


def test_a_variable_that_linux_would_refuse_is_named_without_its_value() -> None:
    check_lengths(["x"], {"BIG": "v" * (128 * 1024 - 5)}, "'a/tool'")
    with pytest.raises(ArgumentTooLongError) as caught:
        check_lengths(["x"], {"BIG": "v" * (128 * 1024 - 4)}, "'a/tool'")
    assert str(caught.value) == (
        "'a/tool': the variable BIG takes 131068 bytes; this system allows 131067; "
        "put the value into a file, or send it on stdin"
    )


def test_the_limits_are_those_of_the_machine(tmp_path: Path) -> None:
    """What passes the check can be started, and one byte more cannot."""
    import subprocess

    longest = "y" * (128 * 1024 - 1)
    assert subprocess.run(["true", longest], check=False).returncode == 0
    with pytest.raises(OSError, match="too long"):
        subprocess.run(["true", longest + "y"], check=False)
    big = {"PATH": "/usr/bin:/bin", "BIG": "v" * (128 * 1024 - 5)}
    assert subprocess.run(["true"], env=big, check=False).returncode == 0
    with pytest.raises(OSError, match="too long"):
        subprocess.run(["true"], env={**big, "BIG": big["BIG"] + "v"}, check=False)
