"""Settings for all tests."""

from __future__ import annotations

import os


def pytest_xdist_auto_num_workers() -> int:
    """Two tests for each processor: half of a test is waiting for another process."""
    return 2 * (os.cpu_count() or 1)
