"""Search for marked secrets in every place where they could leak.

::

    project, hunt = marked_project(tmp_path), Hunt(SECRETS)
    ...  # run something, passing SECRETS["the parameter"] as a parameter
    hunt.look("the messages of the server", *messages)
    assert hunt.found == []

A test of a new command or server passes all of its output to ``look``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import psutil
from rye_project import Project

SECRETS = {
    "the variable": "mark-1d1cc7a0-environ",
    "the .env": "mark-77e0b3f2-dotenv",
    "the parameter": "mark-c2f4e9aa-parameter",
    "the declared variable": "mark-1d1cc7a0-environ/declared",
}


def marked_project(root: Path) -> Project:
    """Return a project with secrets in ``$TOKEN`` and, through ``.env``, in ``$FROM_DOTENV``."""
    project = Project(root, shipped_system=True, environ={"TOKEN": SECRETS["the variable"]})
    (project.path / ".env").write_text(f"FROM_DOTENV={SECRETS['the .env']}\n")
    return project


class Hunt:
    """Collects the places where a marked secret appears, without the secret itself."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self.secrets = dict(secrets)
        self.found: list[str] = []

    def look(self, place: str, *things: object) -> None:
        """Search bytes and strings directly, and anything else in its repr."""
        for thing in things:
            text = _text(thing)
            self.found += [
                f"{name} in {place}" for name, mark in self.secrets.items() if mark in text
            ]

    def command_lines(self) -> int:
        """Search the command lines of all processes; return how many were searched."""
        seen = 0
        for process in psutil.process_iter():
            with contextlib.suppress(OSError):
                self.look(
                    f"the command line of {process.pid}",
                    Path(f"/proc/{process.pid}/cmdline").read_bytes(),
                )
                seen += 1
        return seen

    def environments(self, processes: Iterable[psutil.Process], but: Collection[str] = ()) -> None:
        """Search the environments of these processes for all secrets but the named ones."""
        hunted = Hunt({name: mark for name, mark in self.secrets.items() if name not in but})
        for process in processes:
            content = Path(f"/proc/{process.pid}/environ").read_bytes()
            hunted.look(f"the environment of {process.name()}", content)
        self.found += hunted.found

    def files(self, folder: Path, but: Collection[Path] = ()) -> int:
        """Search every file below the folder; return how many were searched."""
        files = [path for path in folder.rglob("*") if path.is_file() and path not in but]
        for path in files:
            self.look(str(path), path.read_bytes())
        return len(files)


def _text(thing: object) -> str:
    if isinstance(thing, bytes):
        return thing.decode("utf-8", "replace")
    return thing if isinstance(thing, str) else repr(thing)
