"""The page about the architecture names files and rooms that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SOURCES = {"rye/": "rye/rye/", "lilux/primitives/": "lilux/kernel/lilux/primitives/"}


def steps() -> list[str]:
    """The second column of the table of steps."""
    table = PAGE.partition("## Follow one call")[2].partition("\n## ")[0]
    return [row.split("|")[2] for row in table.splitlines() if re.match(r"\| \d+ \|", row)]


def source(name: str, folder: Path) -> Path:
    """The file that ``name`` means; a bare name is in the folder of the name before it."""
    if "/" not in name.rstrip("/"):
        return folder / name
    for prefix, real in SOURCES.items():
        if name.startswith(prefix):
            return ROOT / real / name.removeprefix(prefix)
    return ROOT / name


def test_every_file_on_the_way_of_a_call_exists() -> None:
    assert len(steps()) == 19
    for step in steps():
        folder = ROOT
        for name in re.findall(r"`([^`]+)`", step):
            path = source(name, folder)
            assert path.exists(), f"docs/architecture.md names {name}"
            folder = path.parent


def test_every_room_of_rye_is_on_the_page() -> None:
    tree = PAGE.partition("## rye\n")[2].partition("\n## ")[0]
    rye = ROOT / "rye" / "rye"
    rooms = [path.parent.name for path in rye.glob("*/__init__.py")]
    rooms += [path.parent.name for path in rye.glob("executor/*/__init__.py")]
    assert [room for room in rooms if f"{room}/" not in tree] == []
