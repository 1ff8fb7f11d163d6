"""The user's approval of the unsigned parts of a project.

::

    .env              values for the names that signed files ask for
    .venv             the interpreter and the packages of the project's Python tools
    node_modules      the packages of the project's JavaScript tools
    .ai/config.yaml   the tools that ``rye mcp`` features

    {user}/.ai/approved_projects/{SHA-256 of the project's path}.toml

These parts come with a checkout and have no signature, so they are used only after the user has
approved the project. An approval holds for one path and one digest. The digest covers the content
of ``config.yaml``, the names in ``.env``, which of the two folders exist, and where else in
``.ai/tools`` a ``node_modules`` is; it does not cover the values in ``.env`` and the content of the
folders. A job in CI can give the digest in ``RYE_APPROVE_PROJECT`` instead. Approvals are used only
if nobody else can write to their folder. Programs in the ``pins`` of tools need an approval too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path

from lilux.record import Record
from lilux.sha256 import sha256

from rye.context import Context
from rye.errors import KeyStoreError, UnapprovedProjectError
from rye.items.reader import read_item
from rye.ownership import guard, guard_above
from rye.spaces.folders import is_settled, stamp_from
from rye.trust.key_folder import KeyFileProblem, access_to, read_key_file
from rye.trust.key_format import (
    EntryFormatError,
    parse_project_digest,
    render_project_approval,
    time_now,
)

VARIABLE = "RYE_APPROVE_PROJECT"
"""The caller's environment may approve a digest for one process. A ``.env`` cannot set it."""
FOLDERS = (".venv", "node_modules")
COMMAND = "rye trust project"
APPROVED_PROJECTS = "approved_projects"
"""The folder of the approvals, in the user's ``.ai``."""

_MAX_NAMES = 5
_PACKAGES = "node_modules"


class UnsignedParts(Record, frozen=True, kw_only=True):
    """The unsigned parts of a project at one moment."""

    config: str | None
    """SHA-256 of ``.ai/config.yaml``; ``None`` if the project has none."""
    env_names: tuple[str, ...]
    """The names in ``.env``, sorted."""
    folders: tuple[str, ...]
    """Those of :data:`FOLDERS` that exist, and each ``node_modules`` in ``.ai/tools``."""

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to approve."""
        return self.config is None and not self.env_names and not self.folders

    @property
    def digest(self) -> str:
        """What an approval holds for."""
        parts = [self.config, self.env_names, self.folders]
        return sha256(json.dumps(["rye project", 1, *parts]).encode()).hexdigest()


def unsigned_parts(
    context: Context, *, env_names: Iterable[str] | None = None, config: bytes | None = None
) -> UnsignedParts:
    """Look at a project. ``env_names`` and ``config`` are what the caller has already read.

    Raises what reading an item raises for ``config.yaml``, and Lilux's ``ConfigurationError`` for
    a ``.env`` that cannot be used.
    """
    project = context.project_path
    if env_names is None:
        from lilux.runtime.env_resolver.dotenv import read_dotenv

        env_names = read_dotenv(project / ".env")
    path = context.config_path
    if config is None and os.path.lexists(path):
        config = read_item(path, path.parent).content
    return UnsignedParts(
        config=None if config is None else sha256(config).hexdigest(),
        env_names=tuple(sorted(env_names)),
        folders=(
            *[name for name in FOLDERS if os.path.lexists(project / name)],
            *sorted(_packages_in(project)),
        ),
    )


def _packages_in(project: Path) -> Iterator[str]:
    """The folders ``node_modules`` from which node loads packages for tools of the project."""
    if os.path.lexists(project / f".ai/{_PACKAGES}"):
        yield f".ai/{_PACKAGES}"
    pending = [".ai/tools"]
    while pending:
        place = pending.pop()
        try:
            with os.scandir(project / place) as entries:
                found = list(entries)
        except OSError:
            continue
        for entry in found:
            if entry.name == _PACKAGES:
                yield f"{place}/{entry.name}"
            elif entry.is_dir(follow_symlinks=False):
                pending.append(f"{place}/{entry.name}")


class ProjectApproval:
    """The user's decision about one project.

    Threads may share it: what is remembered of a path is replaced as a whole.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        # A resolved path, so that a link to the project is the same project.
        self._project = os.path.realpath(context.project_path)
        user = context.user_space / ".ai"
        name = sha256(os.fsencode(self._project)).hexdigest()
        self._folder = user / APPROVED_PROJECTS
        self.path = self._folder / f"{name}.toml"
        """The file of the approval, which may not exist."""
        self.is_needed = context.project_path != context.user_space
        """False for the user space, which did not come with a checkout."""
        self._config = str(context.config_path)
        self._record = str(self.path)
        self._folders = [str(context.project_path / name) for name in FOLDERS]
        self._guarded = (str(self._folder), str(user))
        self._remembered: dict[str, Hashable] = {}

    def require_for_dotenv(self, tool: str, used: Iterable[str], env_names: Iterable[str]) -> None:
        """Require the approval for a tool that takes the values of ``used`` from ``.env``.

        ``env_names`` are all names in ``.env``. Raises :class:`UnapprovedProjectError` unless the
        project is approved as it is now. A repeated call only looks at the status of the files.
        """
        if reason := self._refusal(env_names):
            names = sorted(used)
            listed = ", ".join(names[:_MAX_NAMES])
            if len(names) > _MAX_NAMES:
                listed = f"{listed} and {len(names) - _MAX_NAMES} more"
            where = self._context.project_path / ".env"
            raise _unapproved(f"'{tool}' would take {listed} from {where}", reason)

    def require_for_program(self, tool: str, path: str, env_names: Iterable[str]) -> None:
        """Require the approval for a tool that runs or loads ``path``; as for ``.env``."""
        if reason := self._refusal(env_names, path):
            raise _unapproved(f"'{tool}' would run code of {path}", reason)

    def _refusal(self, env_names: Iterable[str], path: str = "") -> str:
        if not self.is_needed:
            return ""
        names = frozenset(env_names)
        # Everything that the answer depends on, without reading a file.
        config, record = _status(self._config), _status(self._record)
        folders = [os.path.lexists(folder) for folder in self._folders]
        access = [access_to(folder) for folder in self._guarded]
        look = (names, config, record, *folders, *access)
        if look == self._remembered.get(path):
            return ""
        reason = self.why_not(unsigned_parts(self._context, env_names=names))
        if not reason and _is_settled(config) and _is_settled(record):
            self._remembered[path] = look
        return reason

    def why_not(self, parts: UnsignedParts) -> str:
        """Return why ``parts`` may not be used; empty if they are approved."""
        digest = parts.digest
        given = self._context.environ.get(VARIABLE)
        if not self.is_needed or given == digest:
            return ""
        try:
            recorded = self._recorded()
        except KeyFileProblem as problem:
            return f"your approval of this project cannot be used: {problem}"
        if recorded == digest:
            return ""
        if recorded is not None:
            return "the unsigned parts of this project have changed since you approved them"
        if given:
            return f"{VARIABLE} is not the digest of the unsigned parts of this project"
        return "you have not approved the unsigned parts of this project"

    def approve(self, parts: UnsignedParts) -> None:
        """Remember the approval of ``parts``, which the user has seen.

        If the project has changed since then, the approval does not hold for it. Raises
        :class:`KeyStoreError` if the file cannot be written or would not be used.
        """
        from lilux.files.atomic import atomic_write

        data = render_project_approval(self._project, parts.digest, time_now())
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            atomic_write(self.path, data, mode=0o600)
            self._recorded()
        except OSError as error:
            raise KeyStoreError(
                f"cannot write {self.path}: {error.strerror}",
                hint="use a user space that you can write to",
            ) from error
        except KeyFileProblem as problem:
            raise KeyStoreError.of_problem(f"the project is not approved yet: {problem}") from None

    def withdraw(self) -> bool:
        """Remove the approval; false if there is none. Raises :class:`KeyStoreError`."""
        try:
            self.path.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise KeyStoreError(
                f"cannot remove {self.path}: {error.strerror}",
                hint="use a user space that you can write to",
            ) from error
        return True

    def _recorded(self) -> str | None:
        """The approved digest; raises :class:`KeyFileProblem` if the file cannot be trusted."""
        if not os.path.lexists(self.path):
            return None
        try:
            problem = guard(self._folder, self._folder.stat()) or guard_above(self._folder)
        except OSError as error:
            problem = f"cannot read {self._folder}: {error.strerror}; make it readable"
        if problem:
            raise KeyFileProblem(problem)
        try:
            return parse_project_digest(read_key_file(self.path, guarded=True))
        except EntryFormatError as error:
            raise KeyFileProblem(f"{self.path}: {error}; remove it") from None


def hint_for(reason: str) -> str:
    """Return what the user does about a reason of :meth:`ProjectApproval.why_not`."""
    if reason.startswith(VARIABLE):
        return f"review them, and set it to the digest that this prints: {COMMAND} --show"
    return f"review and approve them with: {COMMAND}"


def _unapproved(use: str, reason: str) -> UnapprovedProjectError:
    return UnapprovedProjectError.of_problem(f"{use}, but {reason}", hint_for(reason))


def _status(path: str) -> tuple[int, ...] | None:
    """Return a value that changes with a file or the target of a link; ``None`` if missing."""
    try:
        status = os.stat(path)  # noqa: PTH116 - on every call that uses an unsigned part
    except OSError:
        return None
    return *stamp_from(status), status.st_size, status.st_mode, status.st_uid


def _is_settled(status: tuple[int, ...] | None) -> bool:
    return status is None or is_settled((status[0], status[1], status[2], status[3]))
