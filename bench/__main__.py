"""``python -m bench [NAME…]``: measure, print tables, write the JSON, draw the pictures."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "testing"))

from bench import peers
from bench.registry import BENCHMARKS, benchmark, title_of
from bench.report import drawing, results

ROOT = Path(__file__).resolve().parent.parent


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
    """Run each benchmark in a process of its own, so that none sees the memory of another."""
    command = [sys.executable, "-m", "bench", "--out", str(out.resolve())]
    codes = [subprocess.run([*command, name], cwd=ROOT, check=False).returncode for name in names]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
