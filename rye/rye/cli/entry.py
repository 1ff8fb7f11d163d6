"""Where the command starts. What a command does not need is not imported."""

from __future__ import annotations

import sys

from rye import __version__


def main() -> None:
    """The console script ``rye``."""
    arguments = sys.argv[1:]
    if arguments == ["--version"] and sys.stdout is not None:
        sys.stdout.write(f"rye {__version__}\n")
        return
    from rye.cli.conduct import conduct, leave

    code = conduct(arguments)
    if arguments[:1] == ["run"]:
        leave(code)
    sys.exit(code)
