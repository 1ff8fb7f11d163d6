"""Patterns that are compiled when they are used."""

from __future__ import annotations

import re

import pytest
from lilux.patterns import pattern


def test_a_pattern_does_what_a_compiled_one_does() -> None:
    word = pattern(r"(?P<word>[a-z]+)\d", re.IGNORECASE)
    match = word.fullmatch("AB1")
    assert match is not None
    assert (match["word"], word.sub("x", "a1 b2")) == ("AB", "x x")
    assert word.fullmatch("1") is None


def test_it_is_compiled_at_its_first_use_and_not_before() -> None:
    broken = pattern("(")
    with pytest.raises(re.error):
        broken.match("")
