"""Canonical JSON: one text for one value, and an error for values without one."""

import datetime as dt
import decimal
import enum
import hashlib
import json
import re
import subprocess
import sys
from collections import OrderedDict, UserDict, defaultdict, namedtuple
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lilux.primitives.errors import IntegrityError, LiluxError
from lilux.primitives.integrity import canonical_json, compute_integrity

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
MODEST = settings(max_examples=100, deadline=None)


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


@MODEST
@given(JSON_VALUES)
def test_the_text_is_the_one_of_the_specification(data: Any) -> None:
    documented = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    assert canonical_json(data) == documented
    assert compute_integrity(data) == hashlib.sha256(documented.encode()).hexdigest()


@MODEST
@given(JSON_VALUES)
def test_parsing_it_gives_the_same_value_and_text(data: Any) -> None:
    text = canonical_json(data)
    assert json.loads(text) == data
    assert canonical_json(json.loads(text)) == text


@MODEST
@given(JSON_VALUES)
def test_the_order_of_keys_does_not_matter(data: Any) -> None:
    assert canonical_json(reversed_keys(data)) == canonical_json(data)


@MODEST
@given(JSON_VALUES)
def test_is_ascii(data: Any) -> None:
    assert canonical_json(data).isascii()


@MODEST
@given(JSON_VALUES, JSON_VALUES)
def test_one_text_means_one_value(one: Any, other: Any) -> None:
    if canonical_json(one) == canonical_json(other):
        assert one == other


@MODEST
@given(st.text(st.characters(categories=["Cs", "Lu"]), min_size=1))
def test_lone_surrogates_do_not_give_two_strings_the_same_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        with pytest.raises(IntegrityError):
            canonical_json(text)
    else:
        assert json.loads(canonical_json(text)) == text


def test_example_without_whitespace_and_with_sorted_keys() -> None:
    data = {"b": [1, 2.5, None, True], "a": {"z": "ü", "y": "😀"}}
    assert canonical_json(data) == r'{"a":{"y":"\ud83d\ude00","z":"\u00fc"},"b":[1,2.5,null,true]}'


def test_the_digest_is_a_fixed_sha256() -> None:
    assert (
        compute_integrity({"name": "tool", "version": "1.0.0"})
        == "d45507bd546d6034654cda57ffd53d503881c39e213a9f84c293aabf859fe33b"
    )


def test_integers_and_floats_differ() -> None:
    assert compute_integrity([1]) != compute_integrity([1.0])
    assert compute_integrity([0.0]) != compute_integrity([-0.0])
    assert compute_integrity([1]) != compute_integrity([True])


class Colour(enum.StrEnum):
    RED = "red"


Point = namedtuple("Point", ["x", "y"])


@pytest.mark.parametrize(
    ("data", "plain"),
    [
        ((1, (2,)), [1, [2]]),
        (Point(1, 2), [1, 2]),
        (OrderedDict(b=1, a=2), {"a": 2, "b": 1}),
        (defaultdict(list, a=[1]), {"a": [1]}),
        ({Colour.RED: Colour.RED}, {"red": "red"}),
        (enum.IntEnum("Level", {"HIGH": 3}).HIGH, 3),  # type: ignore[attr-defined]  # made here
    ],
)
def test_tuples_and_subclasses_are_written_as_their_base_type(data: Any, plain: Any) -> None:
    assert canonical_json(data) == canonical_json(plain)


NUMBER = "is not a JSON number; use a finite number or null"
SURROGATE = "contains a lone surrogate; use text that UTF-8 can encode"
CONVERT = "cannot be written as JSON; convert it to a JSON type first"
KEYS = "not str; use string keys"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (float("nan"), f"$: nan {NUMBER}"),
        ({"a": [float("inf")]}, f"$.a[0]: inf {NUMBER}"),
        ({"steps": [1, 2, {"timeout": float("-inf")}]}, f"$.steps[2].timeout: -inf {NUMBER}"),
        ({1: "a"}, f"$: a key is int, {KEYS}"),
        ({"a": {None: 1}}, f"$.a: a key is NoneType, {KEYS}"),
        ({"a": [{True: 1}]}, f"$.a[0]: a key is bool, {KEYS}"),
        ({"a": ({1.5: 1},)}, f"$.a[0]: a key is float, {KEYS}"),
        ({1: "a", "1": "b"}, f"$: a key is int, {KEYS}"),
        ({("t",): 1}, f"$: a key is tuple, {KEYS}"),
        ({b"k": 1}, f"$: a key is bytes, {KEYS}"),
        (OrderedDict({"a": OrderedDict({2: 1})}), f"$.a: a key is int, {KEYS}"),
        ({"when": dt.date(2026, 1, 30)}, f"$.when: date {CONVERT}"),
        ({"a": {1, 2}}, f"$.a: set {CONVERT}"),
        ({"a": b"x"}, f"$.a: bytes {CONVERT}"),
        ({"a": decimal.Decimal(1)}, f"$.a: Decimal {CONVERT}"),
        ([UserDict()], f"$[0]: UserDict {CONVERT}"),
        ({"a b": {"c.d": object()}}, f'$["a b"]["c.d"]: object {CONVERT}'),
        ({"": [object()]}, f'$[""][0]: object {CONVERT}'),
        ({"a": "\ud800"}, f"$.a: {SURROGATE}"),
        ({"a": "\ud83d\ude00"}, f"$.a: {SURROGATE}"),
        ({"a": {"\udfff": 1}}, f"$.a: a key {SURROGATE}"),
        ({"a": 10**5000}, "$.a: integer has too many digits; write it as a string"),
    ],
)
def test_a_value_without_a_canonical_form_is_refused_with_its_path(data: Any, message: str) -> None:
    with pytest.raises(IntegrityError, match=f"^{re.escape(message)}$"):
        canonical_json(data)
    with pytest.raises(IntegrityError, match=f"^{re.escape(message)}$"):
        compute_integrity(data)


def test_the_first_of_several_faults_is_reported() -> None:
    with pytest.raises(IntegrityError, match=r"^\$\.b\[1\]: nan is not"):
        canonical_json({"b": [1, float("nan"), object()], "a": object()})


def test_a_refused_value_is_not_quoted() -> None:
    class Token:
        def __repr__(self) -> str:
            return "s3cret"

    with pytest.raises(IntegrityError) as caught:
        canonical_json({"token": Token()})
    assert str(caught.value) == f"$.token: Token {CONVERT}"
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_data_that_contains_itself_is_refused() -> None:
    data: dict[str, Any] = {"a": []}
    data["a"].append(data)
    with pytest.raises(IntegrityError, match=r"^\$\.a\[0\]: contains itself; break the cycle$"):
        canonical_json(data)


def test_a_value_that_occurs_twice_is_not_a_cycle() -> None:
    shared = [1]
    assert canonical_json([shared, shared]) == "[[1],[1]]"


def test_data_nested_too_deeply_is_refused() -> None:
    data: list[Any] = []
    for _ in range(100_000):
        data = [data]
    with pytest.raises(IntegrityError, match=r"^\$: nested too deeply; flatten the data$"):
        canonical_json(data)
    while data:  # freed from the outside in, since freeing it at once would recurse
        data = data[0]


def test_the_error_is_a_lilux_error_and_a_value_error() -> None:
    assert issubclass(IntegrityError, LiluxError)
    assert issubclass(IntegrityError, ValueError)


def test_the_hash_is_the_same_in_another_process() -> None:
    data = {"set": sorted({"b", "a", "c"}), "n": 0.1, "t": "é"}
    code = (
        "import json, sys\n"
        "from lilux.primitives.integrity import compute_integrity\n"
        "print(compute_integrity(json.loads(sys.argv[1])))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(data)],
        env={"PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == compute_integrity(data)
