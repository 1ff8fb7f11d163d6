"""The page about ``rye ui`` has a picture of each page, in light and dark."""

from __future__ import annotations

import re
import struct
from importlib import import_module
from pathlib import Path

from rye.ui.app import MODULES, sections_of

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MAX_BYTES = 150_000
PICTURE = re.compile(
    r'<picture>\n  <source media="\(prefers-color-scheme: dark\)" srcset="(\S+)-dark.png">\n'
    r'  <img src="\1-light.png" width="800" alt="[^"]{30,}">\n</picture>'
)


def shown() -> list[str]:
    """The names of the pictures on the page, without their colours."""
    return PICTURE.findall((DOCS / "ui.md").read_text())


def test_each_section_of_the_page_has_a_picture() -> None:
    routes = [route for name in MODULES for route in import_module(f"rye.ui.pages.{name}").ROUTES]
    for section in sections_of(routes):
        assert f"pictures/ui-{section.lower()}" in shown()


def test_each_picture_is_used_and_small_and_as_large_as_the_other() -> None:
    files = {path.name for path in (DOCS / "pictures").glob("*.png")}
    assert files == {
        f"{Path(name).name}-{each}.png" for name in shown() for each in ("light", "dark")
    }
    for name in files:
        content = (DOCS / "pictures" / name).read_bytes()
        assert content[:8] == b"\x89PNG\r\n\x1a\n", name
        assert len(content) < MAX_BYTES, name
        width, _ = struct.unpack(">II", content[16:24])
        assert width == 1120, name


def test_the_readme_and_the_guide_lead_to_it() -> None:
    assert "](docs/ui.md)" in (ROOT / "README.md").read_text()
    assert "](ui.md)" in (DOCS / "guide.md").read_text()
