"""The page about speed, and the parts of other pages that show figures."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from bench.registry import title_of
from bench.report import machine
from bench.report.pictures import PICTURES, Picture
from bench.report.results import Results, rows_of
from bench.report.svg import figure
from bench.scale_model import PARTS, parts_of, tables
from bench.table import Row

FOLDER = Path("docs/pictures")
BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"
INTRODUCTION = """\
# Performance

`uv run python -m bench` measures Rye and Lilux beside their peers, and writes
[bench/results.json](../bench/results.json), the pictures and this page; do not edit it by hand.

A figure is a ratio or an amount, measured in one run on one machine. The calls that are compared
alternate within that run, so that other load slows down both, and their medians are divided. The
limit is what we require, the aim is what we hope for, and a row without a limit is a floor of the
machine. The command fails if a limit is missed.
"""
REPEATING = """\
## Repeat it

```sh
uv run python -m bench --peers       # installs FastMCP and ryeos below .peers/
uv run python -m bench               # everything
uv run python -m bench calls warm    # some of it; the other results stay as they are
uv run python -m bench --draw        # measures nothing, only draws
```

Nothing but `--peers` installs anything. A peer that is not installed is left out, and the command
says so. bubblewrap and GNU parallel are packages of the operating system. Leave the machine alone
while it measures.
"""
PEERS = {
    "asyncio": "`asyncio.create_subprocess_exec` and `communicate`, of the Python that runs Rye",
    "subprocess.run": "of the same Python",
    "os.posix_spawn": "the least that Python can do to start a process; the floor",
    "ryeos": "the best known predecessor, from the package index, with its helper for processes",
    "server of the MCP SDK": "a minimal stdio server with one static tool, on the official SDK",
    "server of FastMCP": "the same on FastMCP",
    "bubblewrap": "`bwrap --unshare-all --ro-bind / /`, started by the same helper",
}


def text(results: Results) -> str:
    """Return the page."""
    return "\n".join([INTRODUCTION, *sections(results)])


def sections(results: Results) -> Iterator[str]:
    if missed := list(misses(results)):
        yield "## Missed limits\n\n" + "\n".join(missed) + "\n"
    for name, part in results.items():
        yield f"## {name}\n\n{title_of(name)}\n"
        for picture in PICTURES:
            if picture.benchmark == name and picture.samples(results):
                yield shown(picture, results, Path("pictures")) + "\n"
        yield table(rows_of(part)) + "\n"
        for note in part["notes"]:
            yield f"{note[0].upper()}{note[1:]}.\n"
        for peer, reason in part["missing"].items():
            yield f"Not measured: {peer} ({reason}).\n"
        where = machine.sentence(part["machine"])
        yield (
            f"Measured on {part['date']} in {part['seconds']:.0f} s: {where}.\n"
            f"Repeat it: `uv run python -m bench {name}`.\n"
        )
    yield peers(results)
    yield REPEATING


def misses(results: Results) -> Iterator[str]:
    for name, part in results.items():
        for row in rows_of(part):
            if not row.within_limit:
                yield (
                    f"- [{name}](#{name}): {row.what} is {row.shown_value}, "
                    f"the limit is {row.shown_limit}."
                )


def table(rows: list[Row]) -> str:
    lines = ["| what | measured | limit | aim | figures |", "|---|---|---|---|---|"]
    for row in rows:
        value = row.shown_value if row.within_limit else f"**{row.shown_value}, missed**"
        cells = (row.what, value, row.shown_limit, row.shown_aim, row.detail)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def peers(results: Results) -> str:
    versions: dict[str, str] = {}
    for part in results.values():
        versions |= part.get("peers", {})
    names = [*PEERS, *(name for name in versions if name not in PEERS)]
    lines = ["## The peers", "", "| peer | what it is | version |", "|---|---|---|"]
    lines += [f"| {name} | {PEERS.get(name, '')} | {versions.get(name, '')} |" for name in names]
    return "\n".join(lines) + "\n"


def shown(picture: Picture, results: Results, folder: Path) -> str:
    """Return the element that shows the picture, light or dark as the reader prefers."""
    dark, light = (folder / f"{picture.name}-{theme}.svg" for theme in ("dark", "light"))
    return (
        "<picture>\n"
        f'  <source media="(prefers-color-scheme: dark)" srcset="{dark}">\n'
        f'  <img src="{light}" width="640" alt="{escape(picture.described(results))}">\n'
        "</picture>"
    )


def readme(results: Results, before: str) -> str:
    """Return the README with the present figures between its two marks."""
    return between_marks(before, f"\n{opening(results)}\n\n") if "calls" in results else before


def scale(results: Results, before: str) -> str:
    """Return the page about scale with the tables of the model between its two marks."""
    values = results.get("scale", {}).get("samples", {}).get("parts", {}).get("values", {})
    known = all(name in values for name in PARTS)
    return between_marks(before, f"\n{tables(parts_of(values))}\n") if known else before


def between_marks(before: str, text: str) -> str:
    """Replace what is between the marks; a page without them is left alone."""
    head, begin, rest = before.partition(BEGIN)
    _, end, tail = rest.partition(END)
    return f"{head}{BEGIN}{text}{END}{tail}" if begin and end else before


def opening(results: Results) -> str:
    """Return the first picture, and what it shows in a sentence."""
    picture = PICTURES[0]
    processes, tools = picture.samples(results).values()
    process, tool = processes["values"], tools["values"]
    ours, theirs = process["Rye, signed and pinned tool"], process["asyncio"]
    peer = f"; ryeos takes {figure(tool['ryeos'])} ms" if "ryeos" in tool else ""
    return f"""{shown(picture, results, FOLDER)}

A signed and pinned tool that runs `/bin/true` takes {figure(ours)} ms; bare `asyncio` takes
{figure(theirs)} ms. A warm call of the confined shell takes {figure(tool["Rye"])} ms{peer}.
[docs/performance.md](docs/performance.md) has all figures."""
