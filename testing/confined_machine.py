"""What the machine that runs the tests can enforce."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from rye.executor.permitted import probe
from rye.executor.run.confine import NOT_REQUIRED


@cache
def missing_parts() -> dict[str, str]:
    """The parts of a confinement that this machine cannot enforce, with the reasons."""
    return {one.part: one.reason for one in probe().missing}


def accept_missing_parts(user_space: Path) -> None:
    """Let tests that are not about permissions run on a machine that cannot enforce them."""
    if missing_parts().keys() - set(NOT_REQUIRED):
        folder = user_space / ".ai"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.yaml").write_text("permissions: {unenforced: allow}\n")


def needs(*parts: str) -> pytest.MarkDecorator:
    """Skip a test on a machine that cannot enforce these parts, and say why."""
    missing = [f"{part}: {missing_parts()[part]}" for part in parts if part in missing_parts()]
    return pytest.mark.skipif(bool(missing), reason=f"not tried: {'; '.join(missing)}")
