"""The table of formats in the system space."""

from pathlib import Path

import pytest
from rye.errors import ItemFormatError
from rye.formats import (
    FALLBACK,
    Format,
    format_of,
    format_table,
    known_extensions,
    may_be_item,
    read_table,
)

import rye


@pytest.mark.parametrize(
    ("name", "kind", "comment"),
    [
        ("a.py", "python", "#"),
        ("a.yaml", "yaml", "#"),
        ("a.yml", "yaml", "#"),
        ("a.sh", "block", "#"),
        ("a.rb", "block", "#"),
        ("a.pl", "block", "#"),
        ("a.awk", "block", "#"),
        ("a.js", "block", "//"),
        ("a.ts", "block", "//"),
        ("a.lua", "block", "--"),
        ("a.clj", "block", ";"),
        ("a.erl", "block", "%"),
        ("a.vim", "block", '"'),
        ("a.unheard", "block", "#"),
        ("script", "block", "#"),
        ("a.test.js", "block", "//"),
    ],
)
def test_the_extension_decides_the_format(name: str, kind: str, comment: str) -> None:
    found = format_of(Path("/x") / name)
    assert (found.kind, found.comment) == (kind, comment)


def test_the_table_ships_in_the_system_space_and_is_yaml_too() -> None:
    import yaml

    path = Path(rye.__file__).parent / ".ai" / "formats.yaml"
    assert read_table(path) == format_table()
    as_yaml = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert [each for row in as_yaml["formats"] for each in row["extensions"]] == list(
        known_extensions()
    )


def test_no_extension_is_both_an_item_and_never_one() -> None:
    assert not format_table().never & set(known_extensions())
    assert all(extension.startswith(".") for extension in known_extensions())


@pytest.mark.parametrize("extension", ["", ".odd", ".c++", ".x_1"])
def test_an_unlisted_extension_may_be_an_item(extension: str) -> None:
    assert may_be_item(extension)


@pytest.mark.parametrize("extension", [".md", ".py~", ".bak", ".a b", "." + "x" * 17, "."])
def test_a_backup_or_document_is_not_an_item(extension: str) -> None:
    assert not may_be_item(extension)


def test_a_new_language_is_one_entry_in_the_table(tmp_path: Path) -> None:
    path = tmp_path / "formats.yaml"
    path.write_text(
        "# a comment\n"
        '{"formats": [{"kind": "block", "comment": "BTW", "extensions": [".lol"]}],'
        ' "never": [".md"], "skipped": ["lib"]}\n'
    )
    table = read_table(path)
    assert table.formats == {".lol": Format(kind="block", comment="BTW")}
    assert table.never == frozenset({".md"})
    assert table.skipped == frozenset({"lib"})
    assert Format(kind="block", comment="#") == FALLBACK


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "list indices must be integers or slices, not str"),
        ("{}", "'formats'"),
        (
            '{"formats": [{"kind": "exe", "comment": "#", "extensions": []}]}',
            "kind 'exe' with comment '#'",
        ),
        (
            '{"formats": [{"kind": "yaml", "comment": "#", "extensions": [".a", ".a"]}]}',
            "an extension occurs twice",
        ),
        ('{"formats": [], "never": ".md", "skipped": []}', "expected a list of strings"),
        ("{", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
    ],
)
def test_an_invalid_table_is_a_typed_error(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "formats.yaml"
    path.write_text(text)
    with pytest.raises(ItemFormatError) as caught:
        read_table(path)
    assert str(caught.value) == f"{path}: is not a table of formats ({reason}); reinstall rye"
