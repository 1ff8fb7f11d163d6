"""Links and pictures in the pages lead somewhere. Addresses on the network are not visited."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("*", "docs/**/*", "lilux/*/*", "rye/*", "examples/*")
PAGES = sorted(path for folder in FOLDERS for path in ROOT.glob(f"{folder}.md"))
CODE = re.compile(r"^ *(`{3,})[^\n]*\n.*?^ *\1 *$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(
    r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"|^\[[^\]]+\]: (\S+)", re.MULTILINE
)


def links(page: Path) -> Iterator[str]:
    """Yield the targets of a page, without those on the network or in code."""
    for found in LINK.findall(CODE.sub("", page.read_text())):
        target = "".join(found)
        if not re.match(r"[a-z]+:", target):
            yield target


def anchors(page: Path) -> set[str]:
    """Return the names of the headings, as GitHub makes them."""
    text = re.sub(r"^ *(`{3,}).*?^ *\1 *$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    found: list[str] = []
    for heading in re.findall(r"^#+ (.*)", text, re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        same = sum(re.fullmatch(rf"{re.escape(slug)}(-\d+)?", each) is not None for each in found)
        found.append(f"{slug}-{same}" if same else slug)
    return set(found)


def broken(page: Path) -> list[str]:
    """Return the targets that do not exist."""
    missing = []
    for target in links(page):
        name, _, anchor = target.partition("#")
        path = page.parent / name if name else page
        if not path.exists() or (anchor and (path.suffix != ".md" or anchor not in anchors(path))):
            missing.append(target)
    return missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_the_page_exists(page: Path) -> None:
    assert broken(page) == []


def test_missing_files_headings_and_pictures_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b`, and c\n[one](#a-b-and-c) [two](#nowhere) [three](absent.md) [four](page.md#x)\n"
        '<img src="picture.svg" alt="">\n[five]: other.md\n`[six](code.md)`\n'
        "```\n[seven](code.md)\n# not-a-heading\n```\n[eight](https://example.org/x) "
        "[nine](#not-a-heading)\n"
    )
    assert broken(page) == [
        "#nowhere",
        "absent.md",
        "page.md#x",
        "picture.svg",
        "other.md",
        "#not-a-heading",
    ]
