"""Item ids: which are valid, and the messages for those that are not."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rye.errors import ItemIdError
from rye.spaces.ids import check_item_id

HINT = "write the path below .ai/tools/ without its extension, like rye/bash/bash"


@pytest.mark.parametrize(
    "item_id", ["bash", "rye/bash/bash", "a b/c", "größe/日本", "v1.2/tool-x_y", "a" * 200, "a@b"]
)
def test_a_valid_id_is_returned(item_id: str) -> None:
    assert check_item_id(item_id) == item_id


@pytest.mark.parametrize(
    ("item_id", "message"),
    [
        ("", "item id '' is empty"),
        ("..", "item id '..' has the part '..', which begins with a dot"),
        ("a/../b", "item id 'a/../b' has the part '..', which begins with a dot"),
        ("a/./b", "item id 'a/./b' has the part '.', which begins with a dot"),
        ("a/.git/b", "item id 'a/.git/b' has the part '.git', which begins with a dot"),
        ("/etc/passwd", "item id '/etc/passwd' is an absolute path"),
        ("C:/x", "item id 'C:/x' is an absolute path"),
        ("a//b", "item id 'a//b' has an empty part"),
        ("a/", "item id 'a/' has an empty part"),
        ("a\\b", "item id 'a\\b' has a backslash"),
        ("a/ b", "item id 'a/ b' has a part that starts or ends with a space"),
        ("a\0b", "item id 'a\\x00b' has an unprintable character"),
        ("a\nb", "item id 'a\\nb' has an unprintable character"),
        ("a\x1b[2J", "item id 'a\\x1b[2J' has an unprintable character"),
        ("a\u202eb", "item id 'a\\u202eb' has an unprintable character"),
        ("a\udc80", "item id 'a\\udc80' has an unprintable character"),
        ("a" * 201, f"item id '{'a' * 79}…' has a part longer than 200 bytes"),
        ("a/" * 300 + "b", f"item id '{('a/' * 300)[:79]}…' is longer than 512 bytes"),
    ],
)
def test_an_invalid_id_is_refused(item_id: str, message: str) -> None:
    with pytest.raises(ItemIdError, match=f"^{re.escape(f'{message}; {HINT}')}$"):
        check_item_id(item_id)


def test_an_id_that_is_not_a_string_is_refused() -> None:
    with pytest.raises(ItemIdError, match=r"^an item id must be a string, not int; "):
        check_item_id(7)  # type: ignore[arg-type]  # as an untyped caller may


@given(st.text())
def test_any_text_is_a_safe_id_or_a_typed_error(text: str) -> None:
    refusal = None
    try:
        check_item_id(text)
    except ItemIdError as error:
        refusal = str(error)
    if refusal is None:
        assert not text.startswith("/")
        assert all(part not in {"", ".", ".."} for part in text.split("/"))
        assert "\0" not in text
    else:
        assert refusal.isprintable()
        assert refusal.endswith(HINT)
