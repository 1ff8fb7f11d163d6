"""Every test talks to the built binary; most do so on both sets of mechanisms."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from proc_client import ProcClient
from processes import Tree


@pytest.fixture(params=["auto", "portable"])
def platform(request: pytest.FixtureRequest) -> str:
    """What Linux offers, and what any Unix does."""
    return str(request.param)


@pytest.fixture
def client(platform: str) -> Iterator[ProcClient]:
    """A helper on each platform."""
    with ProcClient("--platform", platform) as client:
        yield client


@pytest.fixture
def linux() -> Iterator[ProcClient]:
    """A helper with Linux's mechanisms."""
    with ProcClient() as client:
        yield client


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A job with descendants of every kind."""
    return Tree(tmp_path / "tree")
