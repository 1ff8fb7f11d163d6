"""Calls with any parameters and ids: every call returns a result."""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from rye.executor.run.execute import PrimitiveExecutor
from rye_project import SUBPROCESS, Project

from torture.fuzzing import Check, Fuzz

_TEXTS = [
    "", "--", "-rf", "--help", "$(id)", "`id`", "; id", "'", '"', "\\", "\n", "\r", "\0", "\ud800",
    "\udc80", "${HOME}", "${A:-b}", "{a}", "{env}", "{params_json}", "{{a}}", "%s", "%n", "../..",
    "/", "~", "*", "!", "=", "\x1b[2J", "\u202e", "é", "\U0001d54f", "\ufeff", "0", "null", "true",
]  # fmt: skip
_texts = st.lists(st.sampled_from(_TEXTS), max_size=4).map("".join) | st.text(max_size=20)
_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from((2**64, float("nan"), float("inf"), -0.0, 1e308, b"x"))
    | st.sampled_from((19, 400, 5000)).map(lambda digits: 10**digits)
    | st.floats()
    | _texts
)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=8,
)
_NAMES = (
    "word",
    "any",
    "command",
    "args",
    "env",
    "cwd",
    "timeout",
    "tool_path",
    "params_json",
    "x y",
    "",
)
_parameters = st.dictionaries(st.sampled_from(_NAMES) | _texts, _values, max_size=4)
_SHELL = "set -f; printf '%s' \"$1\" | cat -; echo x$2"
_WORDS = ("sh", "{word}", "--x={word}")


def scenarios() -> tuple[Fuzz, ...]:
    """Return the properties of calls."""
    calls = st.tuples(
        st.sampled_from(("argv", "shell", "stdin", SUBPROCESS, "nothing")), _parameters
    )
    arguments = st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
        | _printable_texts()
    )
    return (
        Fuzz(name="parameters", inputs=calls | st.tuples(_texts, _values), opened=_planning),
        Fuzz(
            name="shell tool parameters",
            inputs=_shell_parameters(),
            opened=_reading,
            few=15,
            many=1_000,
        ),
        Fuzz(name="parameters that arrive", inputs=arguments, opened=_echoing, many=5_000),
    )


def _printable_texts() -> st.SearchStrategy[str]:
    return st.sampled_from([text for text in _TEXTS if "\0" not in text and text.isprintable()])


@contextlib.contextmanager
def _executor() -> Iterator[tuple[PrimitiveExecutor, asyncio.Runner]]:
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        project = Project(Path(folder))
        word = {"type": "object", "properties": {"word": {"type": "string"}, "any": {}}}
        argv = {"command": "printf", "args": ["%s\\0", "{word}", "--x={any}", "{params_json}"]}
        project.yaml("argv", executor_id=SUBPROCESS, config=argv, config_schema=word)
        shell = {"command": "sh", "args": ["-c", _SHELL, "sh", "{word}", "out/{word}"]}
        project.yaml("shell", executor_id=SUBPROCESS, config=shell)
        stdin = {"command": "cat", "input_data": "{params_json}"}
        project.yaml("stdin", executor_id=SUBPROCESS, config=stdin)
        echo = {"command": "sh", "args": ["-c", 'printf %s "$1" "${2#--x=}"', *_WORDS]}
        project.yaml("echo", executor_id=SUBPROCESS, config=echo)
        executor = PrimitiveExecutor(context=project.context)
        yield executor, runner
        runner.run(executor.aclose())


@contextlib.contextmanager
def _planning() -> Iterator[Check]:
    with _executor() as (executor, runner):
        yield lambda call: there_is_always_a_result(executor, runner, call)


def there_is_always_a_result(
    executor: PrimitiveExecutor, runner: asyncio.Runner, call: tuple[str, Any]
) -> None:
    """A dry run returns a plan that is valid JSON, or a typed error; never a defect."""
    item_id, parameters = call
    result = runner.run(executor.execute(item_id, parameters, dry_run=True, use_lockfile=False))
    if result.success:
        json.dumps(result.data, allow_nan=False)
    else:
        assert "this is a defect" not in str(result.error), result.error
        assert result.metadata["error_type"].endswith("Error"), result.metadata


@contextlib.contextmanager
def _echoing() -> Iterator[Check]:
    with _executor() as (executor, runner):
        yield lambda texts: arrives_unchanged(executor, runner, texts)


def arrives_unchanged(
    executor: PrimitiveExecutor, runner: asyncio.Runner, texts: list[str]
) -> None:
    """A text reaches a real shell unchanged, as an argument and at the end of an option."""
    word = "".join(texts)
    result = runner.run(executor.execute("echo", {"word": word}, use_lockfile=False))
    assert result.success, result.error
    printed = result.data["stdout"] if isinstance(result.data, dict) else json.dumps(result.data)
    assert printed == word * 2 or result.metadata.get("stdout") == word * 2, (word, result)


_READ = """# /// rye
# version = "1.0.0"
# executor_id = "rye/core/runtimes/bash_runtime"
# ///
for name in "${!RYE_PARAM_@}"; do printf '%s=%s\\0' "$name" "${!name}"; done
"""


def _shell_parameters() -> st.SearchStrategy[dict[str, Any]]:
    pieces = [
        *(text for text in _TEXTS if "\0" not in text and text.isprintable()),
        *(
            ",",
            ":",
            "[",
            "]",
            "{",
            "}",
            '"x":"y"',
            '","RYE":"',
            "\\\\",
            '\\"',
            "\\u0022",
            "\x01",
            "\x7f",
        ),
    ]
    texts = st.lists(st.sampled_from(pieces), max_size=6).map("".join)
    scalars = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | texts
    values = st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=6,
    )
    return st.dictionaries(st.sampled_from(("a", "b", "word", "x_1")), values, max_size=4)


@contextlib.contextmanager
def _reading() -> Iterator[Check]:
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        project = Project(Path(folder), shipped_system=True)
        project.tool("read.sh", _READ)
        executor = PrimitiveExecutor(context=project.context)
        yield lambda parameters: each_parameter_is_one_variable(executor, runner, parameters)
        runner.run(executor.aclose())


def each_parameter_is_one_variable(
    executor: PrimitiveExecutor, runner: asyncio.Runner, parameters: dict[str, Any]
) -> None:
    """Each parameter becomes exactly one variable, with its value."""
    result = runner.run(executor.execute("read", parameters, use_lockfile=False))
    assert result.success, result.error
    pairs = result.data["stdout"].split("\0")[:-1]
    found = dict(pair.removeprefix("RYE_PARAM_").split("=", 1) for pair in pairs)
    expected = {name.upper(): value for name, value in parameters.items() if value is not None}
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        arrived = found[name] if isinstance(value, str) else json.loads(found[name])
        assert arrived == value, (name, value, found[name])
