"""Fixtures shared by the kernel's tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback_http import LoopbackServer, respond
from process_transports import TRANSPORTS, Execute, open_transport


@pytest.fixture
def no_proxy_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove proxy variables, so that requests reach the test's server directly."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def server(no_proxy_variables: None) -> Iterator[LoopbackServer]:
    """A server on loopback that returns ``{"ok": true}`` at its root."""
    with LoopbackServer() as running:
        running.on("/", respond(json={"ok": True}))
        yield running


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty project folder."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty home folder."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture(params=TRANSPORTS)
def execute(request: pytest.FixtureRequest) -> Iterator[Execute]:
    """Run a command, once over each transport of the process client."""
    with open_transport(request.param) as run:
        yield run
