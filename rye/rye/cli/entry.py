"""Where the command starts. What a command does not need is not imported."""

from __future__ import annotations

import gc
import sys

from rye import __version__

# More objects than a short command ever makes: until there are so many more than before, nothing is
# looked through for garbage.
_OBJECTS = 100_000


def main() -> None:
    """The console script ``rye``."""
    arguments = sys.argv[1:]
    if arguments == ["--version"] and sys.stdout is not None:
        _tell_version()
        return
    gc.set_threshold(_OBJECTS)
    from rye.cli.conduct import conduct, leave

    code = conduct(arguments)
    # A server has threads and connections to take leave of.
    if "mcp" in arguments:
        sys.exit(code)
    leave(code)


def _tell_version() -> None:
    try:
        sys.stdout.write(f"rye {__version__}\n")
        sys.stdout.flush()
    except OSError as error:
        from rye.cli.conduct import leave
        from rye.cli.output.errors import OTHER, told

        leave(told(error) or OTHER)
