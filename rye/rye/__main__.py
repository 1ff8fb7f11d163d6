"""``python -m rye`` is the command ``rye``."""

from rye.cli.entry import main

main()
