"""The pictures, the page about speed and the README show exactly what was measured."""

from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from bench.report import drawing, results, svg
from bench.report.page import FOLDER, readme
from bench.report.pictures import PICTURES, drawn
from bench.table import Report, Row, Samples

ROOT = Path(__file__).parents[1]
FOUND = results.read(ROOT / drawing.RESULTS)
SVG = "{http://www.w3.org/2000/svg}"
BARS = {
    "/bin/true": Samples("ms", {"Rye, signed and pinned tool": 1.2, "asyncio": 0.8}),
    "rye/bash/bash, warm": Samples("ms", {"Rye": 3.456, "ryeos": 45.6}),
}


def files_of(name: str, report: Report) -> dict[str, str]:
    (picture,) = (each for each in PICTURES if each.name == name)
    return drawn(picture, {picture.benchmark: results.part_of(report, 1)})


def texts(picture: str) -> list[str]:
    return [each.text or "" for each in ET.fromstring(picture).iter(f"{SVG}text")]  # noqa: S314 - ours


def test_everything_drawn_is_what_the_results_in_the_tree_give() -> None:
    made = drawing.files(ROOT)
    assert {path.name for path in (ROOT / FOLDER).glob("*.svg")} == {
        path.name for path in made if path.parent == FOLDER
    }
    for path, text in made.items():
        assert (ROOT / path).read_text() == text, f"run: uv run python -m bench --draw ({path})"


def test_the_readme_opens_with_a_picture_and_its_figures() -> None:
    page = (ROOT / "README.md").read_text()
    opening = page[: page.index("\n## ")]
    assert f'<img src="{FOLDER}/calls-light.svg"' in opening
    calls = FOUND["calls"]["samples"]["/bin/true"]["values"]
    quoted = svg.figure(calls["Rye, signed and pinned tool"])
    assert f"A signed and pinned tool that runs `/bin/true` takes {quoted} ms" in opening


def test_a_warm_call_adds_as_little_as_the_readme_claims() -> None:
    assert "(a warm call adds less than a millisecond to its process)" in " ".join(
        (ROOT / "README.md").read_text().split()
    )
    calls = FOUND["calls"]["samples"]["/bin/true"]["values"]
    assert calls["Rye, signed and pinned tool"] - calls["os.posix_spawn, the floor"] < 1


def test_another_figure_changes_picture_page_and_readme(tmp_path: Path) -> None:
    for path in (drawing.RESULTS, drawing.README):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    before = drawing.files(tmp_path)
    found = results.read(tmp_path / drawing.RESULTS)
    found["calls"]["samples"]["/bin/true"]["values"]["asyncio"] = 77.7
    found["calls"]["rows"][0]["value"] = 77.7
    results.write(tmp_path / drawing.RESULTS, found)
    drawing.draw(tmp_path)
    changed = [path for path, text in before.items() if (tmp_path / path).read_text() != text]
    expected = {FOLDER / f"calls-{theme}.svg" for theme in ("light", "dark")}
    assert set(changed) == expected | {drawing.PAGE, drawing.README}
    assert "Lilux ÷ asyncio is 77.70, the limit is ≤ 0.85." in (tmp_path / drawing.PAGE).read_text()


def test_a_picture_that_is_no_longer_made_is_removed(tmp_path: Path) -> None:
    old = tmp_path / FOLDER / "old-light.svg"
    old.parent.mkdir(parents=True)
    old.write_text("<svg/>")
    drawing.draw(tmp_path)
    assert not old.exists()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_picture_says_what_where_when_and_how_to_repeat_it(theme: str) -> None:
    picture = files_of("calls", Report([Row("a ÷ b", 1, 2)], BARS))[f"calls-{theme}.svg"]
    shown = " ".join(texts(picture))
    assert "One call beside asyncio, subprocess.run and ryeos" in shown
    assert re.search(r"Measured on \d{4}-\d\d-\d\d: .+, \d+ cores, \d+ GiB, .+, Python 3", shown)
    assert "Repeat it: uv run python -m bench calls" in shown
    tree = ET.fromstring(picture)  # noqa: S314 - ours
    assert tree.findtext(f"{SVG}title") == "One call beside asyncio, subprocess.run and ryeos"
    assert "Rye: 3.46 ms; ryeos: 45.6 ms." in (tree.findtext(f"{SVG}desc") or "")


def test_bars_are_as_long_as_their_figures_and_ours_have_another_colour() -> None:
    picture = files_of("calls", Report([], BARS))["calls-light.svg"]
    bars = [
        (float(each.attrib["width"]), each.attrib["fill"])
        for each in ET.fromstring(picture).iter(f"{SVG}rect")  # noqa: S314 - ours
        if each.get("height") == "14"
    ]
    assert bars[0][0] / bars[1][0] == pytest.approx(1.2 / 0.8, rel=0.01)
    assert bars[2][0] / bars[3][0] == pytest.approx(3.456 / 45.6, rel=0.01)
    assert [fill for _, fill in bars] == [svg.LIGHT.ours, svg.LIGHT.theirs] * 2


@pytest.mark.parametrize("path", sorted((ROOT / FOLDER).glob("*.svg")), ids=lambda path: path.stem)
def test_no_text_of_a_picture_in_the_tree_is_cut_or_overlaps(path: Path) -> None:
    boxes: list[tuple[float, float, float, float, str]] = []
    for top, parent in offsets(ET.fromstring(path.read_text())):  # noqa: S314 - ours
        for each in parent.findall(f"{SVG}text"):
            words, size = each.text or "", float(each.attrib["font-size"])
            width = svg.width_of(words, size)
            anchor = {"end": width, "middle": width / 2}.get(each.get("text-anchor", ""), 0)
            left, base = float(each.attrib["x"]) - anchor, float(each.attrib["y"]) + top
            boxes.append((left, base - size * 0.8, left + width, base + size * 0.2, words))
    for left, upper, right, lower, words in boxes:
        assert 0 <= left < right <= svg.WIDTH, words
        for other in boxes:
            apart = right <= other[0] or other[2] <= left or lower <= other[1] or other[3] <= upper
            assert other[4] is words or apart, (words, other[4])


def offsets(tree: ET.Element) -> list[tuple[float, ET.Element]]:
    """Return the elements that contain text, with their offset."""
    groups = tree.findall(f"{SVG}g")
    return [(0.0, tree)] + [
        (float(group.attrib["transform"].split()[1].rstrip(")")), group) for group in groups
    ]


@pytest.mark.parametrize("theme", svg.THEMES, ids=lambda theme: theme.name)
def test_text_and_shapes_have_enough_contrast(theme: svg.Theme) -> None:
    for color in (theme.text, theme.faint):
        assert contrast(color, theme.background) >= 4.5
    for color in (theme.ours, theme.theirs, *theme.series):
        assert contrast(color, theme.background) >= 3


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours as WCAG defines it."""

    def luminance(color: str) -> float:
        channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_a_readme_without_the_marks_is_left_alone() -> None:
    assert readme(FOUND, "# Another\n") == "# Another\n"
