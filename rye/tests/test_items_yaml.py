"""Metadata in YAML: strict, with the types of PyYAML's safe loader."""

import json
from typing import Any

import pytest
from item_metadata import FIX, parse, refusal


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
def test_ambiguous_yaml_is_refused(text: str, reason: str) -> None:
    message = refusal("a.yaml", text)
    assert message.startswith(reason)
    assert message.endswith(FIX)


def test_a_billion_laughs_attack_is_refused_at_the_first_anchor() -> None:
    lines = ["a0: &a0 [lol, lol]"]
    lines += [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40)]
    assert refusal("a.yaml", "\n".join(lines)) == f"a.yaml:1: has an anchor '&a0'{FIX}"


def test_a_million_brackets_are_refused_at_once() -> None:
    assert refusal("a.yaml", "a: " + "[" * 1_000_000) == (f"a.yaml:1: has more than 32 levels{FIX}")


@pytest.mark.parametrize(
    "text",
    [
        "1", "-1", "+12", "0", "017", "0x1F", "0b101", "1_000", "1:30", "1.5", ".5", "1e3",
        "1.0e+3", "-.inf", "yes", "No", "on", "OFF", "true", "~", "null", "NULL", "", "1.0.0",
        "a b", "y", "0o7", "'1'", '"yes"', "=", "-", "=x", "1a", "12e", "| ", ">-\n    x\n    y",
        "a: b", "[]", "{}",
    ],
)  # fmt: skip
def test_scalars_have_the_same_types_as_with_the_safe_loader(text: str) -> None:
    import yaml

    document = f"executor_id: a/b\nconfig:\n  v: {text}\n"
    try:
        expected: Any = yaml.safe_load(document)["config"]["v"]
        plain = json.dumps(expected, allow_nan=False)
    except (ValueError, yaml.YAMLError):
        assert refusal("a.yaml", document).endswith(FIX)
    else:
        assert json.dumps(parse("a.yaml", document).config["v"]) == plain
