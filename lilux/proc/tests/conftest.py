"""Fixtures: every test runs the built binary, most of them on both platforms."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from proc_client import ProcClient
from processes import Tree


@pytest.fixture(params=["auto", "portable"])
def platform(request: pytest.FixtureRequest) -> str:
    """The mechanisms of Linux, and those of any Unix."""
    return str(request.param)


@pytest.fixture
def client(platform: str) -> Iterator[ProcClient]:
    """A helper on each platform."""
    with ProcClient("--platform", platform) as client:
        yield client


@pytest.fixture
def linux() -> Iterator[ProcClient]:
    """A helper that uses the mechanisms of Linux."""
    with ProcClient() as client:
        yield client


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A job with every kind of descendant."""
    return Tree(tmp_path / "tree")
