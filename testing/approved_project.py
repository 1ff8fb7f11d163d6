"""The approval of a project by its user, as ``rye trust project --yes`` gives it."""

from __future__ import annotations

from lilux.primitives.errors import ConfigurationError
from rye.context import Context
from rye.errors import RyeError
from rye.trust.project_approval import ProjectApproval, unsigned_parts


def approve(context: Context) -> None:
    """Approve a project as it is now."""
    ProjectApproval(context).approve(unsigned_parts(context))


def approved(context: Context) -> Context:
    """Approve a project if it contains something unsigned that can be read, or pinned programs."""
    try:
        locked = any((context.project_path / ".ai" / "lockfiles").rglob("*.json"))
        if locked or not unsigned_parts(context).is_empty:
            approve(context)
    except (RyeError, ConfigurationError):
        pass  # the test is about the unusable file
    return context
