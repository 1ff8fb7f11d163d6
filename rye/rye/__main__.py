"""``python -m rye`` runs the command ``rye``."""

from rye.cli.entry import main

main()
