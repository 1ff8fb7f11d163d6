"""The checks of ``rye doctor``. They return findings and change nothing."""
