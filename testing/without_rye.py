"""A pytest plugin that makes ``import rye`` fail, as if only the kernel were installed."""

import sys

sys.modules["rye"] = None  # type: ignore[assignment] # makes the import fail
