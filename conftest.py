"""Settings for all tests."""

from __future__ import annotations

import os


def pytest_xdist_auto_num_workers() -> int:
    """Three tests for each two processors: half of a test is waiting for another process."""
    return max(2, (os.cpu_count() or 2) * 3 // 2)
