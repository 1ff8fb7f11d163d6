"""Metadata in comment blocks."""

import pytest
from item_metadata import FIX, block, parse, refusal

OPEN = '# /// rye\n# executor_id = "a/b"\n'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ls\n" + OPEN + "ls\n", "a.sh:2: has a rye block without the closing line '# ///'"),
        (OPEN, "a.sh:1: has a rye block without the closing line '# ///'"),
        (OPEN + "#no blank\n# ///\n", "a.sh:1: has a rye block without the closing line '# ///'"),
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
def test_an_invalid_block_is_refused_with_its_line(text: str, reason: str) -> None:
    message = refusal("a.sh", text)
    assert message.startswith(reason)
    assert message.endswith(FIX)


def test_the_error_for_a_missing_block_says_how_to_write_one() -> None:
    assert refusal("a.ts", block('executor_id = "a/b"')) == (
        "a.ts: is not a tool: it has no metadata; add TOML between '// /// rye' and '// ///'"
    )


def test_a_block_of_another_program_is_ignored() -> None:
    script = "# /// script\n# dependencies = []\n# ///\n"
    assert parse("a.sh", script + block('executor_id = "a/b"')).executor_id == "a/b"
