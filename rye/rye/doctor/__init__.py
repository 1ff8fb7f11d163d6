"""What is wrong with a setup, and how to fix it, for ``rye doctor`` and the page."""
