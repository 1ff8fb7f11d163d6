"""Writes what is made from the results: the pictures, the page about speed, parts of others."""

from __future__ import annotations

from pathlib import Path

from bench.report import page, results
from bench.report.pictures import PICTURES, drawn

RESULTS = Path("bench/results.json")
PAGE = Path("docs/performance.md")
README = Path("README.md")
SCALE = Path("docs/scale.md")


def files(root: Path) -> dict[Path, str]:
    """Return what each file below ``root`` that is made from its results should contain."""
    found = results.read(root / RESULTS)
    made = {
        page.FOLDER / name: text
        for picture in PICTURES
        for name, text in drawn(picture, found).items()
    }
    made[PAGE] = page.text(found)
    if (root / README).exists():
        made[README] = page.readme(found, (root / README).read_text())
    if (root / SCALE).exists():
        made[SCALE] = page.scale(found, (root / SCALE).read_text())
    return made


def draw(root: Path) -> None:
    """Write these files, and remove pictures that are no longer made."""
    made = files(root)
    for path in (root / page.FOLDER).glob("*.svg"):
        if page.FOLDER / path.name not in made:
            path.unlink()
    for name, text in made.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
