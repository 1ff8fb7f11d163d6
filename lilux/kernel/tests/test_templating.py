"""Templating: one pass, inserted text is not parsed, types are kept."""

import copy
import shlex
import subprocess
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lilux.templating import (
    Placeholder,
    env_value,
    param_text,
    render,
    substitute,
    whole_placeholder,
)

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
TEMPLATE_LIKE = st.lists(
    st.sampled_from(["${SECRET}", "${SECRET:-x}", "{env}", "{other}", "$", "{", "}", ":-", "a b"])
    | st.text(max_size=5)
).map("".join)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("${SET}", "value"),
        ("${SET:-default}", "value"),
        ("${EMPTY}", ""),
        ("${EMPTY:-default}", "default"),
        ("${UNSET}", ""),
        ("${UNSET:-default}", "default"),
        ("${UNSET:-}", ""),
        ("${UNSET:-two words: $x [name]}", "two words: $x [name]"),
        ("${UNSET:-up to {name} only", "up to {name only"),
        ("${UNSET:-${SET}}", "${SET}"),
        ("${UNSET:-{name}}", "{name}"),
        ("${_X9}", "underscore"),
        ("a${SET}b${SET}c", "avaluebvaluec"),
        ("$${SET}", "$value"),
    ],
)
def test_environment_placeholders(template: str, expected: str) -> None:
    env = {"SET": "value", "EMPTY": "", "_X9": "underscore"}
    assert render(template, params={"name": "text"}, env=env) == expected


@pytest.mark.parametrize(
    "text",
    [
        "${name}",
        "${VAR-x}",
        "${VAR:=x}",
        "${VAR:+x}",
        "${Mixed}",
        "${n}",
        "${nAME}",
        "${9X}",
        "${VAR",
        "$VAR",
        "{unknown}",
        "{9x}",
        "{a-b}",
        "{ name }",
        "{}",
        "{name",
        "${#VAR}",
        '{"name": 1}',
        "${VÄR}",
    ],
)
def test_other_text_is_unchanged(text: str) -> None:
    assert render(text, params={"name": "text", "VAR": "text"}, env={"VAR": "v"}) == text


def test_an_environment_placeholder_is_not_a_dollar_and_a_parameter() -> None:
    assert render("x ${VAR}", params={"VAR": "from params"}, env={}) == "x "


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        (True, "true"),
        (None, "null"),
        (3, "3"),
        (1.5, "1.5"),
        ({"a": 1, "b": ["ü"]}, '{"a":1,"b":["ü"]}'),
        ([], "[]"),
        (Path("some") / "file", "some/file"),
    ],
)
def test_an_embedded_parameter_is_inserted_as_text_or_json(value: object, text: str) -> None:
    assert render("<{value}>", params={"value": value}, env={}) == f"<{text}>"


@pytest.mark.parametrize("value", [b"s3cret", {"s3cret"}, float("nan"), {"a": object()}])
def test_an_embedded_parameter_without_a_json_form_is_named_but_not_shown(value: object) -> None:
    with pytest.raises(ValueError, match="parameter 'body'") as caught:
        render("<{body}>", params={"body": value}, env={})
    assert str(caught.value) == (
        f"parameter 'body' ({type(value).__name__}) cannot be written as JSON inside text; "
        "pass a string"
    )


def test_a_circular_parameter_is_an_error_and_not_a_crash() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(ValueError, match=r"^parameter 'c' \(list\) cannot be written as JSON"):
        param_text("c", circle)


def test_a_string_of_one_placeholder_gives_the_same_object() -> None:
    marker = object()
    assert render("{it}", params={"it": marker}, env={}) is marker
    assert render({"k": ["{it}"]}, params={"it": b"raw"}, env={}) == {"k": [b"raw"]}


def test_a_placeholder_followed_by_a_newline_is_text() -> None:
    assert render("{n}\n", params={"n": 3}, env={}) == "3\n"
    assert render("{n}{n}", params={"n": 3}, env={}) == "33"


def test_values_are_walked_and_keys_and_other_types_are_not() -> None:
    template = {"{name}": ["{name}", {"deep": "${VAR}{name}"}], "n": 7, "s": {"{name}"}, "z": None}
    before = copy.deepcopy(template)
    rendered = render(template, params={"name": "x"}, env={"VAR": "v"})
    assert rendered == {"{name}": ["x", {"deep": "vx"}], "n": 7, "s": {"{name}"}, "z": None}
    assert template == before


def test_tuples_and_mappings_of_every_kind_are_walked() -> None:
    frozen = MappingProxyType({"{name}": ("{name}", MappingProxyType({"a": "${VAR}"}))})
    rendered = render(frozen, params={"name": 7}, env={"VAR": "v"})
    assert rendered == {"{name}": (7, {"a": "v"})}
    assert type(rendered) is type(rendered["{name}"][1]) is dict
    assert frozen["{name}"][0] == "{name}"


def test_a_container_given_as_parameter_is_not_walked() -> None:
    params = {"outer": {"deep": "{outer} ${VAR}"}}
    assert render(["{outer}"], params=params, env={"VAR": "v"}) == [{"deep": "{outer} ${VAR}"}]


@given(value=TEMPLATE_LIKE, other=TEMPLATE_LIKE)
def test_inserted_text_is_never_parsed_again(value: str, other: str) -> None:
    params = {"p": value, "env": "LEAK", "other": other}
    env = {"SECRET": "LEAK", "E": other}
    assert render("<{p}|{other}|${E:-none}>", params=params, env=env) == (
        f"<{value}|{other}|{other or 'none'}>"
    )


@given(value=TEMPLATE_LIKE, before=st.sampled_from(["", "$", "${", "{", "${A:-"]))
def test_inserted_text_does_not_combine_with_the_text_around_it(value: str, before: str) -> None:
    params = {"p": value, "SECRET": "LEAK", "env": "LEAK"}
    text = f"{before}}} {{p}}{{"
    assert render(text, params=params, env={"SECRET": "LEAK"}) == (
        f"{'' if before == '${A:-' else before + '}'} {value}{{"
    )


@given(text=st.text().filter(lambda text: "{" not in text))
def test_text_without_placeholders_is_unchanged(text: str) -> None:
    assert render(text, params={"a": "x"}, env={"A": "y"}) == text


@given(text=TEMPLATE_LIKE)
def test_substitute_that_fills_nothing_changes_nothing(text: str) -> None:
    assert substitute(text, lambda placeholder: None) == text


@given(name=NAMES, value=JSON_VALUES)
def test_a_whole_parameter_keeps_its_type(name: str, value: object) -> None:
    rendered = render(f"{{{name}}}", params={name: value}, env={})
    assert type(rendered) is type(value)
    assert rendered == value


def test_fill_receives_each_placeholder_with_its_position() -> None:
    seen: list[Placeholder] = []

    def fill(placeholder: Placeholder) -> str | None:
        seen.append(placeholder)
        return None

    text = "a {b} ${C} ${D:-e f}"
    assert substitute(text, fill) == text
    assert seen == [
        Placeholder("param", "b", None, 2, 5),
        Placeholder("env", "C", None, 6, 10),
        Placeholder("env", "D", "e f", 11, 20),
    ]


def test_a_whole_placeholder_is_recognised() -> None:
    assert whole_placeholder("{command}") == Placeholder("param", "command", None, 0, 9)
    assert whole_placeholder("${HOME:-/}") == Placeholder("env", "HOME", "/", 0, 10)
    assert whole_placeholder(" {command}") is None
    assert whole_placeholder("{command}\n") is None


@given(value=TEMPLATE_LIKE.filter(lambda text: "\0" not in text))
def test_substitute_can_be_used_for_shell_quoting(value: str) -> None:
    def quoted(placeholder: Placeholder) -> str | None:
        if placeholder.kind == "env":
            return shlex.quote(env_value(placeholder, {}))
        return shlex.quote(param_text(placeholder.name, value))

    script = substitute("printf %s {value} ${MORE:-a b}", quoted)
    assert shlex.split(script) == ["printf", "%s", value, "a b"]


def test_a_quoted_parameter_is_data_to_a_real_shell() -> None:
    hostile = "'; echo injected; '$(echo injected) ${HOME} {value}"
    script = substitute("printf %s {value}", lambda p: shlex.quote(param_text(p.name, hostile)))
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == hostile
