"""A pytest plugin that makes ``import rye`` fail, as where only the kernel is installed."""

import sys

sys.modules["rye"] = None  # type: ignore[assignment] # how Python is told that there is none
