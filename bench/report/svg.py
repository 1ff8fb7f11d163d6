"""What the pictures consist of: two themes, text that fits, and the frame around a chart.

A picture is 520 units wide, so that its text can be read at the width of a README and, scaled down,
on a phone. Fonts are those of the reader's system; widths are estimated with a wide font, so that
no text is cut or overlaps with another font.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, MARGIN = 520, 20
INNER = WIDTH - 2 * MARGIN
TITLE, LABEL, SMALL = 20, 16, 13.5
BOLD, END, MIDDLE = ' font-weight="600"', ' text-anchor="end"', ' text-anchor="middle"'
FONTS = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif"


@dataclass(frozen=True)
class Theme:
    """Colours. All text has a contrast of at least 4.5 to 1, all shapes of at least 3 to 1."""

    name: str
    background: str
    text: str
    faint: str
    rule: str
    ours: str
    theirs: str
    series: tuple[str, str, str]


LIGHT = Theme(
    "light", "#ffffff", "#1f2328", "#59636e", "#d1d9e0", "#0969da", "#818b98",
    ("#0969da", "#b35900", "#6e40c9"),
)  # fmt: skip
DARK = Theme(
    "dark", "#0d1117", "#f0f6fc", "#9198a1", "#3d444d", "#4493f8", "#7d8590",
    ("#4493f8", "#f0883e", "#bc8cff"),
)  # fmt: skip
THEMES = (LIGHT, DARK)


def width_of(text: str, size: float) -> float:
    """Return about how wide the text is in a wide font such as DejaVu Sans."""
    narrow, wide = "iljtfI.,:;'|!()[]/ ", "mwMW@%÷≤≥—→"
    units = sum(0.39 if c in narrow else 0.98 if c in wide else 0.66 for c in text)
    return units * size


def wrapped(text: str, size: float, width: float = INNER) -> list[str]:
    """Return the lines of the text at that width."""
    lines: list[str] = []
    for word in text.split():
        if lines and width_of(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def label(x: float, y: float, words: str, size: float, fill: str, *, more: str = "") -> str:
    """Return one line of text; ``y`` is its baseline."""
    start = f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{fill}"{more}>'
    return f"{start}{escape(words)}</text>"


def rectangle(x: float, y: float, width: float, height: float, fill: str) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:.1f}" height="{height:g}" rx="2" fill="{fill}"/>'
    )


def figure(value: float) -> str:
    """Return a figure with three digits, as people write it."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 10 or value < 0.1 else f"{value:.2f}"


@dataclass(frozen=True)
class Frame:
    """What every picture says around its chart."""

    title: str
    about: str
    footer: Sequence[str]
    described: str


def framed(frame: Frame, theme: Theme, chart: list[str], height: float) -> str:
    """Return the picture. The chart is drawn from 0 downwards and has that height."""
    top: list[str] = []
    y = 34.0
    for line in wrapped(frame.title, TITLE):
        top.append(label(MARGIN, y, line, TITLE, theme.text, more=BOLD))
        y += TITLE * 1.3
    for line in wrapped(frame.about, SMALL):
        top.append(label(MARGIN, y, line, SMALL, theme.faint))
        y += SMALL * 1.4
    chart_top = y
    y += height + 12
    bottom = [rectangle(MARGIN, y - 6, INNER, 1, theme.rule)]
    y += 14
    for fact in frame.footer:
        for line in wrapped(fact, SMALL):
            bottom.append(label(MARGIN, y, line, SMALL, theme.faint))
            y += SMALL * 1.4
    total = round(y)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{total}" '
        f'viewBox="0 0 {WIDTH} {total}" role="img" aria-labelledby="title desc" '
        f'font-family="{FONTS}">'
    )
    return "\n".join(
        [
            head,
            f'<title id="title">{escape(frame.title)}</title>',
            f'<desc id="desc">{escape(frame.described)}</desc>',
            f'<rect width="{WIDTH}" height="{total}" rx="8" fill="{theme.background}"/>',
            *top,
            f'<g transform="translate(0 {chart_top:g})">',
            *chart,
            "</g>",
            *bottom,
            "</svg>\n",
        ]
    )
