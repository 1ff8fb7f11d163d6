"""``python -m torture [--quick] [NAME…]``: run scenarios and print one table."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "testing"))

from torture.catalogue import SCENARIOS
from torture.report import HEAD, run


def main(arguments: list[str]) -> int:
    """Run the chosen scenarios. Returns 1 if any of them failed."""
    names = [scenario.name for scenario in SCENARIOS]
    parser = argparse.ArgumentParser(
        prog="python -m torture",
        description="Repeat load and faults many times, and report every failure.",
        epilog=f"Names: {', '.join(names)}. The exit code is 1 if a scenario failed.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="run only these scenarios")
    parser.add_argument(
        "--quick", action="store_true", help="run the short version, as the test suite does"
    )
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in names]:
        parser.error(f"unknown scenario {unknown[0]!r}; choose from: {', '.join(names)}")
    chosen = [each for each in SCENARIOS if not options.names or each.name in options.names]
    print(HEAD)
    any_failed = False
    for row in run(chosen, quick=options.quick):
        print(row, flush=True)
        any_failed |= row.failed
    print("some scenarios failed" if any_failed else "all scenarios passed")
    return int(any_failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
