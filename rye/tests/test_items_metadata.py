"""What a file says of itself: Python, YAML and comment blocks, and every way to get it wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
from rye.errors import ItemFormatError, NoMetadataError
from rye.items.element import ItemFile, Metadata
from rye.items.metadata import parse_metadata

MEND = "; correct it and sign again"


def parse(name: str, text: str | bytes) -> Metadata:
    content = text.encode() if isinstance(text, str) else text
    return parse_metadata(ItemFile(path=Path("/space/.ai/tools") / name, content=content))


def refusal(name: str, text: str | bytes) -> str:
    """The message without the folder."""
    with pytest.raises(ItemFormatError) as caught:
        parse(name, text)
    return str(caught.value).removeprefix("/space/.ai/tools/")


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
)

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
name: keys that nobody knows are left alone
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
"""


def block(body: str, comment: str = "#") -> str:
    lines = [f"{comment} {line}".rstrip() for line in body.splitlines()]
    return "\n".join([f"{comment} /// rye", *lines, f"{comment} ///", ""])


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
def test_every_language_declares_the_same(name: str, text: str) -> None:
    assert parse(name, text) == FULL


def test_a_file_is_never_run(tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    text = f'__executor_id__ = "a/b"\nopen({str(witness)!r}, "w").close()\nraise SystemExit\n'
    assert parse("a.py", text).executor_id == "a/b"
    assert not witness.exists()


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
        f"{name}: declares no {spelling}; declare {spelling}: "
        "the id of a runtime, or an explicit none for a primitive"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.py", "x = 1\n"), ("a.py", '__version__ = "1"\n'), ("a.yaml", "x: 1\n"), ("a.sh", "ls\n")],
)
def test_a_helper_file_that_declares_nothing_is_told_apart(name: str, text: str) -> None:
    with pytest.raises(NoMetadataError, match="declares no metadata, so it is no item; "):
        parse(name, text)


@pytest.mark.parametrize("value", ["../x", "/etc/x", "a//b", "", "a\\b"])
def test_an_executor_id_that_is_no_id_is_refused(value: str) -> None:
    message = refusal("a.py", f"\n__executor_id__ = {value!r}\n")
    assert message.startswith("a.py:2: expected an item id in '__executor_id__' (item id '")
    assert message.endswith(MEND)


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
    assert message.endswith(MEND)


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
def test_a_misspelt_name_is_refused_for_it_would_be_silently_ignored(
    name: str, key: str, reason: str
) -> None:
    assert refusal(name, f"\n{key}\n").startswith(f"{name}:2: {reason}")


@pytest.mark.parametrize("line", ["OUTPUT = 1", "INPUT = f()", "CONFIGS = g()", "__all__ = []"])
def test_constants_of_a_script_are_not_taken_for_slips(line: str) -> None:
    assert parse("a.py", f'__executor_id__ = "a/b"\n{line}\n').executor_id == "a/b"


# ── python ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("CONFIG = load()", "expected a literal in 'CONFIG'"),
        ('CONFIG = {"a": os.environ["X"]}', "expected a literal in 'CONFIG.a'"),
        ('CONFIG = {"a": [f"{x}"]}', "expected a literal in 'CONFIG.a[0]'"),
        ('CONFIG = {"a": "x" + "y"}', "expected a literal in 'CONFIG.a'"),
        ("CONFIG = {**BASE}", "expected text as a key in 'CONFIG'"),
        ("CONFIG = {1: 2}", "expected text as a key in 'CONFIG'"),
        ('CONFIG = {"a": 1, "a": 2}', "has the key 'a' twice in 'CONFIG'"),
        ('CONFIG = {"a": {1, 2}}', "expected a literal in 'CONFIG.a'"),
        ('CONFIG = {"a": b"x"}', "expected text, a number, a list or a mapping, got bytes in 'CON"),
        ('CONFIG = {"a": 2j}', "expected text, a number, a list or a mapping, got complex in 'CO"),
        ('CONFIG = {"a": ...}', "expected text, a number, a list or a mapping, got ellipsis in"),
        ('CONFIG = {"a": "\\ud800"}', "expected text without surrogates in 'CONFIG.a'"),
        ('CONFIG = {"\\ud800": 1}', "expected text without surrogates in 'CONFIG.?'"),
        ('CONFIG = {"a": 1e999}', "expected a finite number in 'CONFIG.a'"),
        ('CONFIG = {"a": -True}', "expected a literal in 'CONFIG.a'"),
        ("CONFIG = (lambda: {})()", "expected a literal in 'CONFIG'"),
        ("if True: CONFIG = {}", "CONFIG is not a plain assignment at the top level"),
        ("for CONFIG in []: pass", "CONFIG is not a plain assignment at the top level"),
        ("CONFIG, x = {}, 1", "CONFIG is not a plain assignment at the top level"),
        ("CONFIG |= {}", "CONFIG is not a plain assignment at the top level"),
        ('CONFIG["a"] = 1', "CONFIG is not a plain assignment at the top level"),
        ("del CONFIG", "CONFIG is not a plain assignment at the top level"),
        ("(CONFIG := {})", "CONFIG is not a plain assignment at the top level"),
        ("def CONFIG(): pass", "CONFIG is not a plain assignment at the top level"),
        ("import x as CONFIG", "CONFIG is not a plain assignment at the top level"),
        ("from x import CONFIG", "CONFIG is not a plain assignment at the top level"),
        ("__executor_id__ = 'c/d'", "__executor_id__ is assigned twice, first at line 1"),
        ("x =", "is not Python (invalid syntax)"),
        ("x = 'a", "is not Python (unterminated string literal (detected at line 2))"),
    ],
)
def test_python_that_is_no_literal_or_no_python_is_refused_with_its_line(
    line: str, reason: str
) -> None:
    message = refusal("a.py", f"__executor_id__ = 'a/b'\n{line}\n")
    assert message.startswith(f"a.py:2: {reason}")
    assert message.endswith(MEND)


@pytest.mark.parametrize(
    "bomb",
    [
        "(" * 100_000,
        "[" * 190 + "]" * 190,
        "-" * 200_000 + "1",
        "1" + "+1" * 100_000,
        "a" + ".b" * 100_000,
        "9" * 5000,
    ],
)
def test_python_made_to_exhaust_the_parser_is_a_typed_error(bomb: str) -> None:
    assert refusal("a.py", f"CONFIG = {bomb}\n").endswith(MEND)


# ── yaml ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: 1\na: 2\n", "a.yaml:2: has the key 'a' twice"),
        ("config:\n  b: 1\n  'b': 2\n", "a.yaml:3: has the key 'b' twice"),
        ("a: &x [1]\n", "a.yaml:1: has an anchor '&x'"),
        ("a: *x\n", "a.yaml:1: has an alias '*x'"),
        ("*x : 1\n", "a.yaml:1: has an alias '*x'"),
        ("a: !!python/object/apply:os.system [ls]\n", "a.yaml:1: has a tag 'tag:yaml.org,2002:pyt"),
        ("a: !!str 1\n", "a.yaml:1: has a tag 'tag:yaml.org,2002:str'"),
        ("a: 2026-01-01\n", "a.yaml:1: has a date; put it in quotes"),
        ("config:\n  <<: {a: 1}\n", "a.yaml:2: has a merge key; put it in quotes"),
        ("1: a\n", "a.yaml:1: has a key that is not text; put it in quotes"),
        ("yes: a\n", "a.yaml:1: has a key that is not text; put it in quotes"),
        ("? [a]\n: b\n", "a.yaml:1: has a key that is not text; put it in quotes"),
        ("- a\n", "a.yaml:1: expected a mapping at the top"),
        ("text\n", "a.yaml:1: expected a mapping at the top"),
        ("", "a.yaml:1: is empty"),
        ("# only a comment\n", "a.yaml:1: is empty"),
        ("a: 1\n---\nb: 2\n", "a.yaml:2: has a second document"),
        ("a: [1\nb: 2\n", "a.yaml:2: is not YAML ("),
        ("a:\n\t- b\n", "a.yaml:2: is not YAML ("),
        ("a: " + "[" * 40 + "]" * 40, "a.yaml:1: has more than 32 levels"),
        ("a: " + "{b: " * 40 + "}" * 40, "a.yaml:1: has more than 32 levels"),
        ("a: \x07\n", "a.yaml: is not YAML ("),
        (
            "a: " + "9" * 5000,
            "a.yaml:1: has a number of more than 100 characters; put it in quotes",
        ),
    ],
)
def test_yaml_that_could_mean_two_things_is_refused(text: str, reason: str) -> None:
    message = refusal("a.yaml", text)
    assert message.startswith(reason)
    assert message.endswith(MEND)


def test_a_billion_laughs_stop_at_the_first_anchor() -> None:
    lines = ["a0: &a0 [lol, lol]"]
    lines += [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40)]
    assert refusal("a.yaml", "\n".join(lines)) == f"a.yaml:1: has an anchor '&a0'{MEND}"


def test_a_file_of_nothing_but_brackets_ends_at_once() -> None:
    assert refusal("a.yaml", "a: " + "[" * 1_000_000) == (
        f"a.yaml:1: has more than 32 levels{MEND}"
    )


@pytest.mark.parametrize(
    "text",
    [
        "1", "-1", "+12", "0", "017", "0x1F", "0b101", "1_000", "1:30", "1.5", ".5", "1e3",
        "1.0e+3", "-.inf", "yes", "No", "on", "OFF", "true", "~", "null", "NULL", "", "1.0.0",
        "a b", "y", "0o7", "'1'", '"yes"', "=", "-", "=x", "1a", "12e", "| ", ">-\n    x\n    y",
        "a: b", "[]", "{}",
    ],
)  # fmt: skip
def test_a_scalar_has_the_type_that_the_safe_loader_gives_it(text: str) -> None:
    import yaml

    document = f"executor_id: a/b\nconfig:\n  v: {text}\n"
    try:
        expected: Any = yaml.safe_load(document)["config"]["v"]
        plain = json.dumps(expected, allow_nan=False)
    except (ValueError, yaml.YAMLError):
        assert refusal("a.yaml", document).endswith(MEND)
    else:
        assert json.dumps(parse("a.yaml", document).config["v"]) == plain


# ── comment blocks ───────────────────────────────────────────────────────────────────────────

OPEN = '# /// rye\n# executor_id = "a/b"\n'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ls\n" + OPEN + "ls\n", "a.sh:2: has a rye block without an end '# ///'"),
        (OPEN, "a.sh:1: has a rye block without an end '# ///'"),
        (OPEN + "#no blank\n# ///\n", "a.sh:1: has a rye block without an end '# ///'"),
        (block("a = 1\n") + block("b = 1\n"), "a.sh:4: has two rye blocks, the first at line 1"),
        (block("a = 1\na = 2\n"), "a.sh:3: has a rye block that is not TOML ("),
        (block("a = 1\nb = \n"), "a.sh:3: has a rye block that is not TOML (Invalid value)"),
        (block("a = " + "[" * 30_000), "a.sh:1: has a rye block that is not TOML ("),
        (block(f"a = '{'x' * 70_000}'"), "a.sh:1: has a rye block larger than 65536 bytes"),
        (block("executor_id = 7"), "a.sh:2: expected an item id or an explicit none, got a number"),
        (
            block('executor_id = "a/b"\n[config]\nd = 2026-01-01\n'),
            "a.sh:3: expected text, a number, a list or a mapping, got date in 'config.d'",
        ),
        (block("\nconifg = {}\n"), "a.sh:3: unknown key 'conifg' (did you mean 'config'?)"),
    ],
)
def test_a_block_that_cannot_be_read_is_refused_with_its_line(text: str, reason: str) -> None:
    message = refusal("a.sh", text)
    assert message.startswith(reason)
    assert message.endswith(MEND)


def test_a_file_without_a_block_is_told_how_to_write_one() -> None:
    assert refusal("a.ts", block('executor_id = "a/b"')) == (
        "a.ts: declares no metadata, so it is no item; "
        "add a block of TOML between '// /// rye' and '// ///'"
    )


def test_the_block_of_another_tool_is_left_alone() -> None:
    script = "# /// script\n# dependencies = []\n# ///\n"
    assert parse("a.sh", script + block('executor_id = "a/b"')).executor_id == "a/b"


# ── encodings ────────────────────────────────────────────────────────────────────────────────

ENCODING_MEND = "; save it as UTF-8 and sign again"


@pytest.mark.parametrize("name", ["a.py", "a.yaml", "a.sh"])
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\xef\xbb\xbfexecutor_id: a/b\n", "1: begins with a byte order mark"),
        ("executor_id: a/b\n".encode("utf-16"), "1: is not UTF-8"),
        (b"x: 1\n# caf\xe9\n", "2: is not UTF-8"),
        (b"x: 1\n\n# \0\n", "3: has a NUL character"),
    ],
)
def test_a_text_that_programs_may_read_differently_is_refused(
    name: str, content: bytes, reason: str
) -> None:
    assert refusal(name, content) == f"{name}:{reason}{ENCODING_MEND}"


@pytest.mark.parametrize(
    ("cookie", "line"),
    [("# -*- coding: utf-7 -*-\n", 1), ("#!/x\n# vim: set fileencoding=latin-1 :\n", 2),
     ("#!/x\n# rye:signed:x\n# coding: cp037\n", 3)],
)  # fmt: skip
def test_python_that_the_interpreter_would_decode_otherwise_is_refused(
    cookie: str, line: int
) -> None:
    assert refusal("a.py", f"{cookie}__executor_id__ = None\n") == (
        f"a.py:{line}: declares an encoding other than UTF-8{ENCODING_MEND}"
    )


def test_python_that_declares_utf8_is_read() -> None:
    text = "# -*- coding: utf-8 -*-\n__executor_id__ = None\n__category__ = 'größe'\n"
    assert parse("a.py", text).category == "größe"
