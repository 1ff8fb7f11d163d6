"""The schema of a Python tool, read from ``def main(…)`` and its docstring."""

from __future__ import annotations

from typing import Any

import pytest
from item_metadata import parse, refusal

HEAD = '__executor_id__ = "rye/core/runtimes/python_runtime"\n'


def schema(text: str, head: str = HEAD) -> Any:
    return parse("a.py", head + text).config_schema


def one(annotation: str, default: str = "") -> Any:
    """The schema of one parameter."""
    equals = f" = {default}" if default else ""
    return schema(f"def main(x: {annotation}{equals}): ...\n")["properties"]["x"]


def test_a_signature_gives_types_defaults_choices_and_descriptions() -> None:
    text = '''
from typing import Literal

def main(city: str, days: int = 3, units: Literal["c", "f"] = "c") -> dict:
    """Forecast the weather.

    Args:
        city: Where,
            with its country
        days (int): How far ahead
    """
'''
    assert schema(text) == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where, with its country"},
            "days": {"type": "integer", "description": "How far ahead", "default": 3},
            "units": {"type": "string", "enum": ["c", "f"], "default": "c"},
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    assert parse("a.py", HEAD + text).description == "Forecast the weather"


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("float", {"type": "number"}),
        ("bool", {"type": "boolean"}),
        ("list", {"type": "array"}),
        ("list[str]", {"type": "array", "items": {"type": "string"}}),
        ("typing.List[int]", {"type": "array", "items": {"type": "integer"}}),
        ("tuple[int, ...]", {"type": "array", "items": {"type": "integer"}}),
        ("tuple[int, str]", {"type": "array"}),
        ("dict", {"type": "object"}),
        ("dict[str, int]", {"type": "object", "additionalProperties": {"type": "integer"}}),
        ("Optional[str]", {"type": ["string", "null"]}),
        ("str | None", {"type": ["string", "null"]}),
        ("Union[int, str]", {"type": ["integer", "string"]}),
        (
            "list[str] | None",
            {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        ),
        ("'int'", {"type": "integer"}),
        ("Literal[1, 'a']", {"enum": [1, "a"]}),
        ("Annotated[str, 'Where']", {"type": "string", "description": "Where"}),
        (
            "Annotated[int, Field(description='How many')]",
            {"type": "integer", "description": "How many"},
        ),
        ("Any", {}),
        ("Weather", {}),
        ("'not python ('", {}),
        ("print('evaluated')", {}),
    ],
)
def test_an_annotation_is_parsed_and_never_evaluated(annotation: str, expected: object) -> None:
    assert one(annotation) == expected


@pytest.mark.parametrize(
    ("annotation", "default", "expected"),
    [
        ("int", "-1", {"type": "integer", "default": -1}),
        ("int", "None", {"type": ["integer", "null"], "default": None}),
        ("list[int]", "(1, 2)", {"type": "array", "items": {"type": "integer"}, "default": [1, 2]}),
        ("dict", "{'a': 1}", {"type": "object", "default": {"a": 1}}),
        ("str", "os.environ['HOME']", {"type": "string"}),
        ("float", "1e999", {"type": "number"}),
    ],
)
def test_a_default_is_taken_if_it_is_a_literal(
    annotation: str, default: str, expected: object
) -> None:
    assert one(annotation, default) == expected
    assert "required" not in schema(f"def main(x: {annotation} = {default}): ...\n")


def test_an_alias_in_the_module_is_followed() -> None:
    found = schema("Units = Literal['c', 'f']\nasync def main(*, units: Units): ...\n")
    assert found["properties"] == {"units": {"type": "string", "enum": ["c", "f"]}}
    assert found["required"] == ["units"]


def test_keyword_arguments_allow_more_parameters() -> None:
    assert "additionalProperties" not in schema("def main(a, **more): ...\n")
    assert schema("def main(**params): ...\n") is None


@pytest.mark.parametrize(
    "text",
    [
        "def execute(params, project_path): ...\n",
        "@command\ndef main(a): ...\n",
        "def main(a): ...\nmain = wrap(main)\n",
        "def main(a): ...\nfrom x import main\n",
        "main = print\n",
        "class Tool:\n    def main(self): ...\n",
    ],
)
def test_without_a_plain_main_there_is_no_schema(text: str) -> None:
    assert schema(text) is None


def test_an_explicit_schema_takes_precedence() -> None:
    assert schema("CONFIG_SCHEMA = {}\ndef main(a: int): ...\n") == {}


def test_only_a_runtime_that_calls_main_gets_its_schema() -> None:
    assert schema("def main(a): ...\n", '__executor_id__ = "uv_script_runtime"\n') is None
    assert schema("def main(a): ...\n", '__executor_id__ = "python_runtime"\n') is not None


def test_a_parameter_without_a_name_is_refused() -> None:
    assert refusal("a.py", HEAD + "def main(a, /): ...\n") == (
        "a.py:2: main takes 'a' only by position, but parameters have names; remove the '/'; "
        "correct it and sign again"
    )


@pytest.mark.parametrize(
    "docstring",
    [
        "Args:\n    a: The first\n    b: The second\n\nReturns:\n    c: nothing\n",
        "Parameters\n----------\na : int\n    The first\nb\n    The second\n\nReturns\n---\nc\n  x",
        ":param a: The first\n:param int b: The second\n:returns: c: nothing\n",
    ],
)
def test_the_three_styles_of_docstrings_describe_parameters(docstring: str) -> None:
    body = "".join(f"    {line}\n" for line in f'"""Summary.\n\n{docstring}\n"""'.splitlines())
    found = schema(f"def main(a, b, c=1):\n{body}")["properties"]
    assert found["a"] == {"description": "The first"}
    assert found["b"] == {"description": "The second"}
    assert found["c"] == {"default": 1}


def test_the_description_comes_from_main_then_from_the_module() -> None:
    assert (
        parse("a.py", f'"""Does it.\n\nMore."""\n{HEAD}def main(): ...\n').description == "Does it"
    )
    both = f'"""Does it."""\n{HEAD}def main():\n    """Does this: one\n    thing. Then two."""\n'
    assert parse("a.py", both).description == "Does this: one thing. Then two."
    declared = f'"""Does it."""\n{HEAD}__tool_description__ = "Declared"\n'
    assert parse("a.py", declared).description == "Declared"
