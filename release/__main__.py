"""``python -m release``: build the wheels, check them, and say how to install them."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from release.check import INSTALLERS, check
from release.steps import StepError
from release.wheels import build

ROOT = Path(__file__).resolve().parents[1]


def main(arguments: list[str]) -> int:
    """Return 1 if a wheel cannot be built, or does not work where it is installed."""
    parser = argparse.ArgumentParser(
        prog="python -m release",
        description="Build the wheels of Rye for this platform, with the compiled helper inside, "
        "and check that they can be installed and used without cargo.",
        epilog="Building needs uv and cargo. Checking downloads the other packages.",
    )
    parser.add_argument("--out", type=Path, default=ROOT / "dist", metavar="DIR", help="dist")
    parser.add_argument("--no-check", action="store_true", help="only build")
    parser.add_argument(
        "--installer",
        action="append",
        choices=list(INSTALLERS),
        help="check only with this installer; repeatable",
    )
    options = parser.parse_args(arguments)
    try:
        wheels = build(ROOT, options.out.resolve())
        for wheel in wheels:
            print(f"built    {wheel}")
        for name in () if options.no_check else options.installer or INSTALLERS:
            with tempfile.TemporaryDirectory(prefix="rye-release-") as folder:
                for line in check(name, wheels, Path(folder)):
                    print(f"checked  {name}: {line}", flush=True)
    except StepError as error:
        print(f"failed   {error}", file=sys.stderr)
        return 1
    print("\ninstall them with one of:")
    for command in INSTALLERS.values():
        print(f"  {command}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
