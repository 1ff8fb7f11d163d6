"""Metadata of Python files that cannot be read unambiguously."""

import pytest
from item_metadata import FIX, refusal


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
def test_metadata_that_is_not_a_plain_literal_is_refused_with_its_line(
    line: str, reason: str
) -> None:
    message = refusal("a.py", f"__executor_id__ = 'a/b'\n{line}\n")
    assert message.startswith(f"a.py:2: {reason}")
    assert message.endswith(FIX)


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
def test_python_that_exhausts_the_parser_is_a_typed_error(bomb: str) -> None:
    assert refusal("a.py", f"CONFIG = {bomb}\n").endswith(FIX)
