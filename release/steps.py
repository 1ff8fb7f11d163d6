"""One command of a release, with its whole output if it fails."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

SECONDS = 1800


class StepError(Exception):
    """A command of the release failed, or printed something unexpected."""


def run(
    command: Sequence[str | Path], *, cwd: Path, environ: Mapping[str, str] | None = None
) -> str:
    """Run a command and return its stdout. Raises :class:`StepError` with all of its output."""
    words = list(map(str, command))
    try:
        done = subprocess.run(
            words,
            cwd=cwd,
            env=None if environ is None else dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise StepError(f"{words[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise StepError(f"{' '.join(words)} did not end within {SECONDS} s") from None
    if done.returncode != 0:
        output = f"{done.stdout}{done.stderr}".strip()
        raise StepError(f"{' '.join(words)} ended with exit code {done.returncode}:\n{output}")
    return done.stdout
