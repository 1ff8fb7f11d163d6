"""The pictures: what each shows, and of which benchmark."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bench.report import charts, machine
from bench.report.results import Results
from bench.report.svg import THEMES, Frame, framed


@dataclass(frozen=True)
class Picture:
    """One picture. ``groups`` are the samples in it, each with the heading that readers see."""

    name: str
    benchmark: str
    title: str
    about: str
    groups: dict[str, str] = field(default_factory=dict)
    """Empty for all samples under their own names."""
    sizes: str = ""
    """What the horizontal axis of lines counts."""

    def samples(self, results: Results) -> dict[str, Any]:
        """Return the samples by heading; none if the benchmark did not run."""
        found = results.get(self.benchmark, {}).get("samples", {})
        wanted = self.groups or {name: name for name in found}
        return {heading: found[name] for name, heading in wanted.items() if name in found}

    def described(self, results: Results) -> str:
        """Return all that the picture shows, in words."""
        kind = "Lines" if self.sizes else "Bars"
        return f"{kind}. {self.title}. {charts.described(self.samples(results))}"


LOWER = "Milliseconds, medians; shorter is better."
PICTURES = (
    Picture(
        "calls",
        "calls",
        "One call beside asyncio, subprocess.run and ryeos",
        f"{LOWER} Rye verifies signatures and the lockfile in each call, confines the shell and "
        "records the run. Each group has its own scale.",
        {
            "/bin/true": "A process: /bin/true",
            "rye/bash/bash, warm": "A tool: bash -c 'echo hi'",
        },
    ),
    Picture(
        "first-calls",
        "calls",
        "The first call beside ryeos",
        f"{LOWER} The tool is rye/bash/bash, which runs 'echo hi'. Each group has its own scale.",
        {
            "rye/bash/bash, cold": "A new executor in a running process",
            "rye/bash/bash, new process": "A new process, from import to result",
        },
    ),
    Picture(
        "python-tools",
        "warm",
        "Python tools, cold and warm",
        f"{LOWER} A warm call is a fork of a process that has imported the tool; a cold call "
        "starts an interpreter. Each group has its own scale.",
        {"empty": "A tool that imports nothing", "imports": "A tool that imports httpx2"},
    ),
    Picture(
        "mcp-server",
        "mcp_server",
        "MCP servers over stdio",
        "From the start of the process to the first list of tools, and the resident memory of the "
        "server after a call; medians, less is better. Each group has its own scale.",
        {"start": "Start to the first tools/list", "memory": "Memory after a call"},
    ),
    Picture(
        "confinement",
        "confinement",
        "Confinement beside bubblewrap",
        f"{LOWER} Each call starts /bin/true through the same helper.",
        {"/bin/true": "A process: /bin/true"},
    ),
    Picture(
        "batch",
        "batch",
        "A batch beside GNU parallel",
        "Calls a second, from the start of the command to its end; longer is better. All have the "
        "same number of jobs at once. Each group has its own scale.",
        {"true": "A process: /bin/true", "imports": "A Python tool that imports httpx2"},
    ),
    Picture(
        "batch-ray",
        "batch_ray",
        "A batch on a Ray cluster, beside a local one and Ray tasks",
        "Calls a second; longer is better. All use the same two cores, the cluster as two nodes. A "
        "Ray task only starts the program, and may do so twice.",
        {"true": "A process: /bin/true"},
    ),
    Picture(
        "growth-tools",
        "growth",
        "Growth with the number of tools",
        "Milliseconds, medians, with an index on disk or in memory, as in daily use. "
        "Both axes are logarithmic.",
        {"tools": "By the number of tools"},
        "tools in the project",
    ),
    Picture(
        "growth-chain",
        "growth",
        "Growth with the length of the chain",
        "Milliseconds, medians. A warm call of /bin/true with all checks, and the checks alone. "
        "Both axes are logarithmic.",
        {"chain": "By the length of the chain"},
        "files in the chain of the tool",
    ),
    Picture(
        "growth-output",
        "growth",
        "Growth with the size of the output",
        "Milliseconds, medians. By default, Lilux keeps the first and the last 5 MiB. "
        "Both axes are logarithmic.",
        {"output": "By the size of the output"},
        "bytes of output",
    ),
)


def drawn(picture: Picture, results: Results) -> dict[str, str]:
    """Return the files of a picture by name, light and dark; none without its samples."""
    groups = picture.samples(results)
    if not groups:
        return {}
    part = results[picture.benchmark]
    frame = Frame(
        picture.title,
        picture.about,
        [
            f"Measured on {part['date']}: {machine.sentence(part['machine'])}",
            f"Repeat it: uv run python -m bench {picture.benchmark}",
        ],
        picture.described(results),
    )
    files = {}
    for theme in THEMES:
        if picture.sizes:
            (group,) = groups.values()
            chart, height = charts.lines(group, picture.sizes, theme)
        else:
            chart, height = charts.bars(groups, theme)
        files[f"{picture.name}-{theme.name}.svg"] = framed(frame, theme, chart, height)
    return files
