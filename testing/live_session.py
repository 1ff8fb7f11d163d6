"""Calls under way in other processes, and how the page ``rye ui`` shows them.

::

    with served_page(project) as page, command(project, "run", "tools/slow") as run:
        visitor = page.enter()
        wait_for(visitor, live_run(visitor), "began")
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from processes import wait_until
from rye_command import COMMAND, environment
from rye_project import Project
from ui_session import Visitor

SLOW = 'echo "began $1"; until [ -e go ]; do sleep 0.02; done; echo ended; exit 3'
"""Runs until a file ``go`` is in the project."""


@contextmanager
def command(project: Project, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A ``rye`` that runs beside the page; it is ended with the block."""
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=project.path,
        env=environment(project.user),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        (project.path / "go").touch()
        if process.poll() is None:
            process.terminate()
        process.communicate()


def live_run(visitor: Visitor) -> str:
    """Wait for the one call under way; return the address of its page."""
    found: list[str] = []

    def is_there() -> bool:
        table = visitor.get("/live").text.partition("Ended while this page ran")[0]
        found[:] = re.findall(r'href="(/runs/\w{20})"', table)
        return len(found) == 1

    wait_until(is_there, "one call is under way")
    return found[0]


def wait_for(visitor: Visitor, path: str, text: str) -> str:
    """Wait until a page contains the text; return the page."""
    shown = ""

    def has_it() -> bool:
        nonlocal shown
        shown = visitor.get(path).text
        return text in shown

    wait_until(has_it, f"{text!r} on {path}")
    return shown


def entries(project: Project) -> list[Path]:
    """What is in the folder of the calls under way."""
    return sorted((project.user / ".ai" / "live").glob("*"))
