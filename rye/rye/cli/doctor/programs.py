"""Programs that runtimes start: their versions, and how to get them on this machine."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

_SECONDS = 10
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_PYVENV_VERSION = re.compile(r"^version(?:_info)?\s*=\s*(\d+(?:\.\d+)+)", re.MULTILINE)


class Program(NamedTuple):
    """What is known of a program beside its name."""

    minimum: tuple[int, ...] = ()
    """The oldest version that the runtime works with."""
    packages: Mapping[str, str] = {}
    """Package manager → package; ``*`` stands for those that are not named."""
    otherwise: str = ""
    """How to get it where no manager has it."""


_PROGRAMS = {
    "bash": Program(minimum=(4, 4), packages={"*": "bash"}),
    "node": Program(minimum=(20,), packages={"brew": "node", "*": "nodejs"}),
    "python3": Program(
        minimum=(3, 9),
        packages={"brew": "python", "pacman": "python", "*": "python3"},
        otherwise="make a virtual environment in the project: python3 -m venv .venv",
    ),
    "uv": Program(
        packages=dict.fromkeys(("brew", "pacman", "apk", "dnf", "zypper"), "uv"),
        otherwise="install it with: pip install uv",
    ),
}

_MANAGERS = (
    ("brew", "brew install"),
    ("apt-get", "sudo apt-get install"),
    ("dnf", "sudo dnf install"),
    ("pacman", "sudo pacman -S"),
    ("apk", "sudo apk add"),
    ("zypper", "sudo zypper install"),
)


def how_to_get(name: str, environ: Mapping[str, str]) -> str:
    """A command for the package manager of this machine, or the nearest to one."""
    from lilux.runtime.env_resolver.interpreters import which

    program = _PROGRAMS.get(name, Program())
    for manager, command in _MANAGERS:
        if which(manager, environ) is not None:
            package = program.packages.get(manager) or program.packages.get("*")
            if package is not None:
                return f"install it with: {command} {package}"
    return program.otherwise or f"install {name} and put it on PATH"


def minimum_of(name: str) -> tuple[int, ...]:
    """The oldest version of the program that serves; empty if any does."""
    return _PROGRAMS.get(name, Program()).minimum


def version_of(path: Path, project: Path) -> str | None:
    """What the program says its version is; ``None`` if it does not say.

    What lies in the project is not started for that: a checkout must not run code by being looked
    at. Of a virtual environment, its own file tells the version.
    """
    if path.is_relative_to(project):
        return _version_of_venv(path)
    try:
        done = subprocess.run(
            [str(path), "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(done.stdout.decode(errors="replace")[:1000])
    return found[0] if done.returncode == 0 and found else None


def is_too_old(version: str, minimum: tuple[int, ...]) -> bool:
    """Whether a version such as ``3.2.57`` is below the minimum."""
    return tuple(int(part) for part in version.split("."))[: len(minimum)] < minimum


def _version_of_venv(path: Path) -> str | None:
    try:
        with (path.parent.parent / "pyvenv.cfg").open(encoding="utf-8", errors="replace") as file:
            found = _PYVENV_VERSION.search(file.read(10_000))
    except OSError:
        return None
    return found[1] if found else None
