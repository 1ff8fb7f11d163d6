"""Arbitrary bytes in a file give metadata or a typed error."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rye.errors import ItemFormatError
from rye.items.element import ItemFile
from rye.items.metadata import parse_metadata

NAMES = ["a.py", "a.yaml", "a.sh", "a.js"]
PIECES = [
    "executor_id", "__executor_id__", "config", "CONFIG", "version", ": ", " = ", "null", "None",
    "'a/b'", "\n", "\n  ", "- ", "[", "]", "{", "}", ",", "&a", "*a", "!!str", "<<", "1.0", "0x1",
    "2026-01-01", "# /// rye\n", "# ///\n", "// /// rye\n", "# ", "// ", '"', "'", "\\", "\t", "é",
    "---\n", "...\n", "? ", "|\n", "%YAML 9.9\n", "if x:\n  ", "import ", "\r", "\u2028", "@", "`",
]  # fmt: skip

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=20)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda children: st.lists(children, max_size=4)
    | st.dictionaries(st.text(max_size=8), children, max_size=4),
    max_leaves=20,
)  # fmt: skip


def parses_or_is_refused(name: str, content: bytes) -> None:
    path = Path("/space") / name
    with contextlib.suppress(ItemFormatError):
        metadata = parse_metadata(ItemFile(path=path, content=content))
        # Accepted metadata can be written as JSON.
        json.dumps([metadata.config, metadata.config_schema], allow_nan=False).encode()


@pytest.mark.parametrize("name", NAMES)
@given(content=st.binary(max_size=200))
@settings(max_examples=60, deadline=None)
def test_arbitrary_bytes_are_parsed_or_refused(name: str, content: bytes) -> None:
    parses_or_is_refused(name, content)


@pytest.mark.parametrize("name", NAMES)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=25))
@settings(max_examples=200, deadline=None)
def test_arbitrary_syntax_is_parsed_or_refused(name: str, pieces: list[str]) -> None:
    parses_or_is_refused(name, "".join(pieces).encode())


@given(value=st.dictionaries(st.text(max_size=8), json_values, max_size=5))
@settings(max_examples=100, deadline=None)
def test_a_python_literal_is_read_back(value: dict[str, object]) -> None:
    text = f"__executor_id__ = None\nCONFIG = {value!r}\n"
    item = ItemFile(path=Path("/space/a.py"), content=text.encode())
    assert parse_metadata(item).config == value


@given(value=st.dictionaries(st.text(max_size=8), json_values, max_size=5))
@settings(max_examples=100, deadline=None)
def test_json_in_yaml_is_read_like_the_safe_loader_reads_it(value: dict[str, object]) -> None:
    import yaml

    text = f"executor_id: null\nconfig: {json.dumps(value)}\n"
    with contextlib.suppress(ItemFormatError):
        item = ItemFile(path=Path("/space/a.yaml"), content=text.encode())
        assert parse_metadata(item).config == yaml.safe_load(text)["config"]
