"""Set up a project for ``rye init``. Existing files are not changed.

Everything that it creates is signed or a folder, so a new project needs no approval. Unsigned parts
that the folder already has are not approved here: the user may have just unpacked them.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

from lilux.primitives.signing import PRIVATE_KEY_FILE

from rye.cli.new.templates import TEMPLATES
from rye.cli.new.tool import new_tool
from rye.cli.sign.signing import key_folder
from rye.context import Context
from rye.spaces.resolver import Resolver
from rye.trust.signer import Signer

FIRST_TOOL = "hello"
_FIRST_DESCRIPTION = "Greets someone: a first tool to try and change"


class Setup(NamedTuple):
    """A project that is set up. ``created`` is empty if it already was."""

    project: Path
    key_folder: Path
    fingerprint: str
    created: tuple[Path, ...]
    first_tool: str | None
    """The example tool, if this call or an earlier one created it."""
    notes: tuple[str, ...]


def set_up(folder: Path) -> Setup:
    """Create what is missing in an existing directory; a first tool only if there is no other.

    Raises :class:`KeyStoreError` if the user's key cannot be used, and the system's ``OSError``.
    """
    context = Context.from_machine(folder)
    created: list[Path] = []
    keys = key_folder(context)
    had_key = (keys / PRIVATE_KEY_FILE).exists()
    signer = Signer.of_user(keys)
    if not had_key:
        created.append(keys)
    tools = context.project_path / ".ai" / "tools"
    if not tools.is_dir():
        tools.mkdir(parents=True)
        created.append(tools)
    resolver = Resolver(context)
    items = [found.item_id for found in resolver.iter_items(resolver.spaces[0])]
    if not items:
        made = new_tool(FIRST_TOOL, TEMPLATES[0], context, resolver, description=_FIRST_DESCRIPTION)
        created.append(made.path)
    return Setup(
        project=context.project_path,
        key_folder=keys,
        fingerprint=signer.fingerprint,
        created=tuple(created),
        first_tool=FIRST_TOOL if not items or FIRST_TOOL in items else None,
        notes=tuple(_notes(context)),
    )


def _notes(context: Context) -> list[str]:
    """Warn if git ignores the tools or would commit the key, and of parts that are not approved."""
    project = context.project_path
    notes = []
    if _git_ignores(project, ".ai/tools") is True:
        notes.append("git ignores .ai/tools; to share your tools, add !/.ai/ to .gitignore")
    if project == context.user_space and _git_ignores(project, ".ai/keys") is False:
        notes.append("your key is in this git repository; add /.ai/keys/ to .gitignore")
    return notes + _unapproved(context)


def _unapproved(context: Context) -> list[str]:
    from lilux.primitives.errors import ConfigurationError

    from rye.errors import RyeError
    from rye.trust.project_approval import COMMAND, ProjectApproval, unsigned_parts

    try:
        parts = unsigned_parts(context)
        if parts.is_empty or not ProjectApproval(context).why_not(parts):
            return []
    except (RyeError, ConfigurationError):
        return []  # the call that needs the file reports it
    found = [*([".env"] if parts.env_names else []), *parts.folders]
    found += [".ai/config.yaml"] if parts.config is not None else []
    return [f"{', '.join(found)} will be used after you approve this project with: {COMMAND}"]


def _git_ignores(project: Path, path: str) -> bool | None:
    """True if git ignores ``path``; ``None`` without git or a repository."""
    try:
        done = subprocess.run(
            ["git", "-C", str(project), "check-ignore", "--quiet", "--no-index", path],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return {0: True, 1: False}.get(done.returncode)
