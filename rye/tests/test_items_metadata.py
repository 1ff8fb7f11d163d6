"""Metadata in every format: the same fields, types, names and encodings."""

from pathlib import Path

import pytest
from item_metadata import FIX, block, parse, refusal
from rye.errors import NoMetadataError
from rye.items.element import Metadata
from rye.items.permissions import Permissions

FULL = Metadata(
    version="1.2.3",
    tool_type="tool",
    executor_id="rye/core/runtimes/python_runtime",
    category="demo",
    description="does it",
    config_schema={"type": "object", "properties": {"n": {"type": "integer"}}},
    env_config={"env": {"A": "1"}},
    config={"args": ["{n}", -1, 1.5, True], "timeout": 30},
    anchor={"mode": "auto"},
    verify_deps={"scope": "anchor"},
    inputs=("text",),
    outputs=("json", "text"),
    child_constraints={"a/b": {"min_version": "1.0.0", "max_version": "2.0.0"}},
    annotations={"read_only": True},
    permissions=Permissions(env=("TOKEN", "AWS_*")),
)

NOT_A_NAME = "expected the name of a variable, such as TOKEN or AWS_*, in"

PYTHON_FULL = """#!/usr/bin/env python3
'''A tool.'''
import os
__version__ = "1.2.3"
__tool_type__: str = "tool"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "demo"
__tool_description__ = "does " "it"
CONFIG_SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
ENV_CONFIG = {"env": {"A": "1"}}
CONFIG = {"args": ("{n}", -1, 1.5, True), "timeout": 30}
ANCHOR = {"mode": "auto"}
VERIFY_DEPS = {"scope": "anchor"}
INPUTS = ["text"]
OUTPUTS = ("json", "text")
CHILD_CONSTRAINTS = {"a/b": {"min_version": "1.0.0", "max_version": "2.0.0"}}
ANNOTATIONS = {"read_only": True}
PERMISSIONS = {"env": ["TOKEN", "AWS_*"]}
LIMIT = os.cpu_count()
def main(n):
    CONFIG = n
    return CONFIG
"""

YAML_FULL = """# a tool
version: "1.2.3"
tool_type: tool
executor_id: rye/core/runtimes/python_runtime
category: demo
description: does it
config_schema: {type: object, properties: {n: {type: integer}}}
env_config:
  env: {A: "1"}
config:
  args: ["{n}", -1, 1.5, yes]
  timeout: 30
anchor: {mode: auto}
verify_deps: {scope: anchor}
inputs: [text]
outputs:
- json
- text
child_constraints: {a/b: {min_version: 1.0.0, max_version: 2.0.0}}
annotations: {read_only: true}
permissions: {env: [TOKEN, AWS_*]}
name: unknown keys are ignored
tags: [a, b]
"""

TOML_FULL = """version = "1.2.3"
tool_type = "tool"
executor_id = "rye/core/runtimes/python_runtime"
category = "demo"
description = "does it"
inputs = ["text"]
outputs = ["json", "text"]
config_schema = {type = "object", properties = {n = {type = "integer"}}}

[env_config.env]
A = "1"

[config]
args = ["{n}", -1, 1.5, true]
timeout = 30

[anchor]
mode = "auto"
[verify_deps]
scope = "anchor"
[child_constraints."a/b"]
min_version = "1.0.0"
max_version = "2.0.0"
[annotations]
read_only = true
[permissions]
env = ["TOKEN", "AWS_*"]
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", PYTHON_FULL),
        ("a.py", PYTHON_FULL.replace("\n", "\r\n")),
        ("a.yaml", YAML_FULL),
        ("a.yml", "---\n" + YAML_FULL.replace("\n", "\r\n") + "...\n"),
        ("a.sh", "#!/bin/sh\n" + block(TOML_FULL) + "echo hi\n"),
        ("a.sh", ("#!/bin/sh\n" + block(TOML_FULL)).replace("\n", "\r\n")),
        ("a.rb", block(TOML_FULL)),
        ("a.js", '"use strict";\n' + block(TOML_FULL, "//") + "console.log(1)\n"),
        ("a.ts", block(TOML_FULL, "//")),
        ("a.lua", block(TOML_FULL, "--")),
        ("a.clj", block(TOML_FULL, ";")),
        ("a.vim", block(TOML_FULL, '"')),
        ("a.unheard", block(TOML_FULL)),
    ],
)
def test_every_format_declares_the_same_metadata(name: str, text: str) -> None:
    assert parse(name, text) == FULL


def test_a_file_is_never_run(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    text = f'__executor_id__ = "a/b"\nopen({str(marker)!r}, "w").close()\nraise SystemExit\n'
    assert parse("a.py", text).executor_id == "a/b"
    assert not marker.exists()


# ── the executor id ──────────────────────────────────────────────────────────────────────────


def test_only_an_explicit_none_makes_a_primitive() -> None:
    assert parse("a.py", "__executor_id__ = None\n").executor_id is None
    for spelling in ("null", "~", ""):
        assert parse("a.yaml", f"executor_id: {spelling}\n").executor_id is None


@pytest.mark.parametrize(
    ("name", "text", "spelling"),
    [
        ("a.py", 'CONFIG = {"a": 1}\n', "__executor_id__"),
        ("a.yaml", "config: {a: 1}\n", "executor_id"),
        ("a.sh", block('tool_type = "tool"\n'), "executor_id"),
    ],
)
def test_a_missing_executor_id_is_an_error_and_not_none(
    name: str, text: str, spelling: str
) -> None:
    assert refusal(name, text) == (
        f"{name}: does not declare {spelling}; declare {spelling}: "
        "the id of a runtime, or none for a primitive"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.py", "x = 1\n"), ("a.py", '__version__ = "1"\n'), ("a.yaml", "x: 1\n"), ("a.sh", "ls\n")],
)
def test_a_file_without_metadata_has_its_own_error(name: str, text: str) -> None:
    with pytest.raises(NoMetadataError, match="is not a tool: it has no metadata; "):
        parse(name, text)


@pytest.mark.parametrize("value", ["../x", "/etc/x", "a//b", "", "a\\b"])
def test_an_invalid_executor_id_is_refused(value: str) -> None:
    message = refusal("a.py", f"\n__executor_id__ = {value!r}\n")
    assert message.startswith("a.py:2: expected an item id in '__executor_id__' (item id '")
    assert message.endswith(FIX)


# ── types ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("version: 1.0", "expected text in quotes, got a number in 'version'"),
        ("version: ../../up", "expected a version like 1.0.0 in 'version'"),
        ('version: ""', "expected a version like 1.0.0 in 'version'"),
        ("tool_type: [a]", "expected text, got a list in 'tool_type'"),
        ("category: yes", "expected text, got true or false in 'category'"),
        ("description: {a: 1}", "expected text, got a mapping in 'description'"),
        ("executor_id: no", "expected an item id or an explicit none, got true or false in 'exec"),
        ("config: text", "expected a mapping, got text in 'config'"),
        ("config:", "expected a mapping, got nothing in 'config'"),
        ("config_schema: []", "expected a mapping, got a list in 'config_schema'"),
        ("env_config: 7", "expected a mapping, got a number in 'env_config'"),
        ("anchor: true", "expected a mapping, got true or false in 'anchor'"),
        ("inputs: text", "expected a list of texts, got text in 'inputs'"),
        ("outputs: [a, 1]", "expected text, got a number in 'outputs[1]'"),
        ("child_constraints: {a/b: 1}", "expected a mapping, got a number in 'child_constraints"),
        (
            "child_constraints: {a/b: {at_least: 1.0.0}}",
            "expected min_version or max_version, got 'at_least' in 'child_constraints.a/b'",
        ),
        (
            "child_constraints: {a/b: {min_version: 1.0}}",
            "expected text in quotes, got a number in 'child_constraints.a/b.min_version'",
        ),
        (
            "child_constraints: {min_version: 1.0}",
            "expected text in quotes, got a number in 'child_constraints.min_version'",
        ),
        (
            "child_constraints: {min_version: 1.0.0, a/b: {}}",
            "expected a mapping, got text in 'child_constraints.min_version'",
        ),
        ("permissions: [TOKEN]", "expected a mapping in 'permissions'"),
        (
            "permissions: {envs: []}",
            "expected read, write, net, env, run or limits, got 'envs' in 'permissions'",
        ),
        ("permissions: {env: TOKEN}", "expected a list of variable names in 'permissions.env'"),
        ("permissions: {env: [A, 1]}", f"{NOT_A_NAME} 'permissions.env[1]'"),
        ("permissions: {env: ['*']}", f"{NOT_A_NAME} 'permissions.env[0]'"),
        ("permissions: {env: ['_*']}", f"{NOT_A_NAME} 'permissions.env[0]'"),
        ("permissions: {env: ['*_TOKEN']}", f"{NOT_A_NAME} 'permissions.env[0]'"),
        ("permissions: {env: ['A*B*']}", f"{NOT_A_NAME} 'permissions.env[0]'"),
        ("permissions: {env: ['A=B']}", f"{NOT_A_NAME} 'permissions.env[0]'"),
        ("permissions: {env: [9A]}", f"{NOT_A_NAME} 'permissions.env[0]'"),
        ("permissions: {env: ['A B']}", f"{NOT_A_NAME} 'permissions.env[0]'"),
        ("permissions: {env: ['']}", f"{NOT_A_NAME} 'permissions.env[0]'"),
        (
            "permissions: {env: ['RYE_*']}",
            "'RYE_*' in 'permissions.env[0]' is a variable of Rye, which no file may supply",
        ),
        (
            "permissions: {env: [rye_param_x]}",
            "'rye_param_x' in 'permissions.env[0]' is a variable of Rye, which no file may supply",
        ),
        ("config: {a: [.nan]}", "expected a finite number in 'config.a[0]'"),
        ("config: {a: 99999999999999999999999}", "expected a number of 64 bits in 'config.a'"),
    ],
)
def test_a_field_of_the_wrong_type_is_refused_with_its_line_and_place(
    line: str, reason: str
) -> None:
    text = f"executor_id: a/b\n{line}\n"
    if line.startswith("executor_id"):
        text = f"tool_type: x\n{line}\n"
    message = refusal("a.yaml", text)
    assert message.startswith(f"a.yaml:2: {reason}")
    assert message.endswith(FIX)


@pytest.mark.parametrize(
    ("name", "key", "reason"),
    [
        ("a.yaml", "executorId: null", "unknown key 'executorId' (did you mean 'executor_id'?)"),
        ("a.yaml", "EXECUTOR_ID: null", "unknown key 'EXECUTOR_ID' (did you mean 'executor_id'?)"),
        ("a.yaml", "confg: {}", "unknown key 'confg' (did you mean 'config'?)"),
        ("a.yaml", "conifg: {}", "unknown key 'conifg' (did you mean 'config'?)"),
        ("a.yaml", "config-schema: {}", "unknown key 'config-schema' (did you mean 'config_schema"),
        ("a.py", "__executer_id__ = 1", "unknown name '__executer_id__' (did you mean '__executor"),
        ("a.py", "CONFIG_SHEMA = {}", "unknown name 'CONFIG_SHEMA' (did you mean 'CONFIG_SCHEMA'"),
        ("a.py", "__description__ = ''", "unknown name '__description__' (did you mean '__tool_de"),
    ],
)
def test_a_misspelt_name_is_refused(name: str, key: str, reason: str) -> None:
    assert refusal(name, f"\n{key}\n").startswith(f"{name}:2: {reason}")


@pytest.mark.parametrize("line", ["OUTPUT = 1", "INPUT = f()", "CONFIGS = g()", "__all__ = []"])
def test_constants_of_a_script_are_not_treated_as_typos(line: str) -> None:
    assert parse("a.py", f'__executor_id__ = "a/b"\n{line}\n').executor_id == "a/b"


# ── encodings ────────────────────────────────────────────────────────────────────────────────

SAVE_AS_UTF8 = "; save it as UTF-8 and sign again"


@pytest.mark.parametrize("name", ["a.py", "a.yaml", "a.sh"])
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\xef\xbb\xbfexecutor_id: a/b\n", "1: starts with a byte order mark"),
        ("executor_id: a/b\n".encode("utf-16"), "1: is not UTF-8"),
        (b"x: 1\n# caf\xe9\n", "2: is not UTF-8"),
        (b"x: 1\n\n# \0\n", "3: contains a NUL character"),
    ],
)
def test_a_text_in_another_encoding_than_utf8_is_refused(
    name: str, content: bytes, reason: str
) -> None:
    assert refusal(name, content) == f"{name}:{reason}{SAVE_AS_UTF8}"


@pytest.mark.parametrize(
    ("cookie", "line"),
    [("# -*- coding: utf-7 -*-\n", 1), ("#!/x\n# vim: set fileencoding=latin-1 :\n", 2),
     ("#!/x\n# rye:signed:x\n# coding: cp037\n", 3)],
)  # fmt: skip
def test_python_that_declares_another_encoding_is_refused(cookie: str, line: int) -> None:
    assert refusal("a.py", f"{cookie}__executor_id__ = None\n") == (
        f"a.py:{line}: declares an encoding other than UTF-8{SAVE_AS_UTF8}"
    )


def test_python_that_declares_utf8_is_read() -> None:
    text = "# -*- coding: utf-8 -*-\n__executor_id__ = None\n__category__ = 'größe'\n"
    assert parse("a.py", text).category == "größe"
