"""Building the three wheels, and looking into them."""

from __future__ import annotations

import fcntl
import zipfile
from pathlib import Path

from release.steps import StepError, run

PACKAGES = {
    # the package: what its wheel must contain
    "lilux-proc": ".data/scripts/lilux-proc",
    "lilux": "lilux/py.typed",
    "rye": "rye/.ai/tools/rye/bash/bash.yaml",
}


def build(root: Path, out: Path) -> list[Path]:
    """Build a wheel of each package in ``out``, and return their paths.

    Older wheels of these packages are removed from ``out``: the commands that install them match
    all that are there. Raises :class:`StepError`.
    """
    out.mkdir(parents=True, exist_ok=True)
    # Two builds of the helper at once would write to the same file.
    with (root / "pyproject.toml").open() as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        return _build(root, out)


def _build(root: Path, out: Path) -> list[Path]:
    wheels = []
    for package, content in PACKAGES.items():
        pattern = f"{package.replace('-', '_')}-*.whl"
        for old in out.glob(pattern):
            old.unlink()
        words = ["uv", "build", "--quiet", "--wheel", "--package", package, "--out-dir", str(out)]
        run(words, cwd=root)
        found = list(out.glob(pattern))
        if len(found) != 1:
            raise StepError(f"expected one wheel of {package} in {out}, found {len(found)}")
        _require(found[0], content)
        wheels += found
    return wheels


def _require(wheel: Path, content: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    if not any(name.endswith(content) for name in names):
        raise StepError(f"{wheel.name} does not contain {content}")
