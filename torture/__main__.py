"""``python -m torture [--quick] [NAMES…]``: the long version of every scenario, in one table."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "testing"))

from torture.catalogue import SCENARIOS
from torture.report import HEAD, run


def main(arguments: list[str]) -> int:
    """Gives 1 if anything was lost."""
    names = [scenario.name for scenario in SCENARIOS]
    parser = argparse.ArgumentParser(
        prog="python -m torture",
        description="Faults and load, repeated until something would be lost.",
        epilog=f"Names: {', '.join(names)}. Exit code 1 if anything was lost.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="run these only")
    parser.add_argument("--quick", action="store_true", help="the short version of the tests")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in names]:
        parser.error(f"no scenario is called {unknown[0]!r}; one of: {', '.join(names)}")
    chosen = [each for each in SCENARIOS if not options.names or each.name in options.names]
    print(HEAD)
    any_lost = False
    for row in run(chosen, quick=options.quick):
        print(row, flush=True)
        any_lost |= row.lost
    print("something was lost" if any_lost else "nothing was lost")
    return int(any_lost)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
