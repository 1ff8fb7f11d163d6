"""Peers from the package index, each in an environment of its own below ``.peers/``.

They are not in the environment of the project, because some of them have packages with our names.
``python -m bench --peers`` creates the environments; nothing else installs anything.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / ".peers"
PEERS = {
    "ryeos": ("ryeos==0.1.0", "lillux==0.1.0"),
    "fastmcp": ("fastmcp>=4,<5",),
}


class PeerMissingError(Exception):
    """The peer is not installed; the message says how to install it."""


def python_of(peer: str) -> Path:
    """Return the interpreter of a peer's environment. Raises :class:`PeerMissingError`."""
    python = FOLDER / peer / "bin" / "python"
    if not python.exists():
        raise PeerMissingError("not installed; run: uv run python -m bench --peers")
    return python


def version_of(peer: str, package: str) -> str:
    """Return the installed version of a package of the peer."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    command = [str(python_of(peer)), "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def install() -> None:
    """Create the environments that do not exist."""
    for peer, packages in PEERS.items():
        folder = FOLDER / peer
        if not folder.exists():
            print(f"installing {', '.join(packages)} into {folder}", flush=True)
            subprocess.run(["uv", "venv", "--quiet", str(folder)], check=True)
            command = ["uv", "pip", "install", "--quiet", "--python", str(folder), *packages]
            subprocess.run(command, check=True)
