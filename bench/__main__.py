"""``python -m bench [NAME…]``: measure, print tables, write the JSON, draw the pictures."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "testing"))

from bench import peers
from bench.registry import BENCHMARKS, benchmark, title_of
from bench.report import drawing, results

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 600


def main(arguments: list[str]) -> int:
    """Run the chosen benchmarks. Returns 1 if a limit was exceeded."""
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure Rye beside its peers, and draw what was found.",
        epilog=f"Names: {', '.join(BENCHMARKS)}. The exit code is 1 if a limit was exceeded.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="run only these benchmarks")
    parser.add_argument("--draw", action="store_true", help="measure nothing, only draw")
    parser.add_argument("--peers", action="store_true", help="install peers, measure nothing")
    parser.add_argument(
        "--out",
        type=Path,
        default=ROOT,
        metavar="DIR",
        help="write bench/ and docs/ below this folder (default: this repository)",
    )
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in BENCHMARKS]:
        parser.error(f"unknown benchmark {unknown[0]!r}; choose from: {', '.join(BENCHMARKS)}")
    if options.peers:
        peers.install()
        return 0
    exceeded = 0
    if not options.draw:
        names = options.names or BENCHMARKS
        exceeded = run(names[0], options.out) if len(names) == 1 else run_all(names, options.out)
    drawing.draw(options.out)
    return exceeded


def run(name: str, out: Path) -> int:
    """Run one benchmark and put what it found into the JSON."""
    print(f"== {name}: {title_of(name)}", flush=True)
    started = time.perf_counter()
    report = benchmark(name)()
    path = out / drawing.RESULTS
    found = results.read(path) | {name: results.part_of(report, time.perf_counter() - started)}
    results.write(path, found)
    for row in report.rows:
        print(row)
    for peer, reason in report.missing.items():
        print(f"not measured: {peer} ({reason})")
    for note in report.notes:
        print(note)
    return int(not all(row.within_limit for row in report.rows))


def run_all(names: tuple[str, ...] | list[str], out: Path) -> int:
    """Run each benchmark in a process of its own, so that none sees the memory of another.

    One that fails or hangs does not stop the others; its old results stay. Returns 1 if any did,
    or if a limit was exceeded.
    """
    command = [sys.executable, "-m", "bench", "--out", str(out.resolve())]
    ends: dict[str, str] = {}
    begun = time.perf_counter()
    for name in names:
        before = results.read(out / drawing.RESULTS).get(name)
        started = time.perf_counter()
        try:
            subprocess.run([*command, name], cwd=ROOT, check=False, timeout=LONGEST)
        except subprocess.TimeoutExpired:
            print(f"{name} was ended after {LONGEST} s", flush=True)
        part = results.read(out / drawing.RESULTS).get(name)
        ends[name] = f"{time.perf_counter() - started:6.0f} s  {verdict(before, part)}"
    print(f"== {len(names)} benchmarks in {time.perf_counter() - begun:.0f} s")
    for name, end in ends.items():
        print(f"{name:16} {end}")
    return int(not all(end.endswith("ok") for end in ends.values()))


def verdict(before: dict[str, Any] | None, part: dict[str, Any] | None) -> str:
    """Return how a benchmark ended, from its part of the results before and after."""
    if part is None or part == before:
        return "did not finish; run it again by its name"
    exceeded = [row.what for row in results.rows_of(part) if not row.within_limit]
    return f"exceeded: {', '.join(exceeded)}" if exceeded else "ok"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
