"""The profile of a chain: everything that its declarations and the user's grants allow.

Computed once for each chain. What may change between two calls is checked by each call: where the
declared paths lead, and which protected files exist.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence

from lilux.primitives.subprocess.confinement import (
    Confinement,
    ConfinementLimits,
)
from lilux.record import Record, replaced

from rye.context import Context
from rye.errors import PermissionsError
from rye.items.permissions import ANY_HOST, HOME, SYSTEM, TMP, UNIX, Permissions
from rye.permissions.base import (
    LOADERS,
    NAMES,
    PREFIXES,
    READ,
    SYSTEM_PROGRAMS,
    WRITE,
    real,
    settings,
)
from rye.permissions.locations import Places, create_folder, is_inside, steps_to
from rye.permissions.programs import Programs, folders_on, programs_of
from rye.permissions.repository import (
    FILE,
    NONE,
    kind_of_git,
    repository_outside,
    trusted_by_git,
)

NO_HOME = "/nonexistent"
"""The home of a tool that may use neither ``tmp`` nor a path below ``~``."""

_RESOLVER = "/etc/resolv.conf"


class Start(Record, frozen=True, kw_only=True):
    """What the process of a chain is started with."""

    commands: tuple[str, ...]
    """The command, and the interpreters of the chain."""
    path: str
    """``PATH``."""
    own: tuple[str, ...]
    """Files and folders of the tool and of its runtimes."""


class Profile(Record, frozen=True, kw_only=True):
    """What one tool may do on this machine."""

    permissions: Permissions
    names: frozenset[str]
    """The variables that are kept, in addition to the base names."""
    prefixes: tuple[str, ...]
    home: str | None
    """The value of ``HOME``; ``None`` if it is the real one, or a private folder."""

    def keeps(self, name: str) -> bool:
        """True if the tool gets the variable."""
        return name in NAMES or name in self.names or name.startswith(self.prefixes)


def profile_of(permissions: Permissions, set_names: frozenset[str]) -> Profile:
    """The profile of a chain that sets these variables itself."""
    names = {name for name in permissions.env if not name.endswith("*")}
    prefixes = [name[:-1] for name in permissions.env if name.endswith("*")]
    has_home = any(one.startswith(HOME) for one in (*permissions.read, *permissions.write))
    private = TMP in permissions.write
    return Profile(
        permissions=permissions,
        names=frozenset(names | set_names),
        prefixes=(*PREFIXES, *prefixes),
        home=None if has_home or private else NO_HOME,
    )


class Confiner:
    """Makes the confinements of one profile; the last one is kept while it is valid."""

    def __init__(self, profile: Profile, start: Start, tool: str, context: Context) -> None:
        self.profile = profile
        self._tool = tool
        self._places = Places(
            project=str(context.project_path), home=real(home_of(context.environ))
        )
        self._user_files = f"{context.user_space}/.ai"
        self._closures = f"{self._user_files}/cache/closures"
        self._base = self._base_of(start)
        self._known: tuple[object, Confinement] | None = None

    def confinement(self, require: tuple[str, ...]) -> Confinement:
        """The confinement for a call now, which needs the parts in ``require``.

        Raises :class:`PermissionsError` for a link that leads out of the project, and for the
        right to write to the copies that tools run from.
        """
        granted = self.profile.permissions
        read = self._places.granted(granted.read, self._tool)
        write = self._places.granted([one for one in granted.write if one != TMP], self._tool)
        for one in write:
            if is_inside(one, self._closures):
                raise PermissionsError(
                    f"{self._tool!r} may write {one}, where the copies are that tools run from",
                    hint="grant another folder",
                )
        git = kind_of_git(self._places.project)
        outside = repository_outside(self._places.project) if git == FILE else None
        if outside is not None:
            read += [outside] if self._places.project in read else []
            write += [outside] if self._places.project in write else []
        read_only, hidden = self._protected(read, write, git, outside)
        write = [path for path in dict.fromkeys(write) if self._is_needed(path, write)]
        state = (read, write, read_only, hidden, require)
        if self._known is None or self._known[0] != state:
            made = self._made(read, write, read_only, hidden)
            self._known = (state, replaced(made, require=require))
        return self._known[1]

    def _is_needed(self, path: str, write: list[str]) -> bool:
        """False if another path includes it. One that does not exist is made a folder."""
        # A file that is granted by itself could not be replaced, as most programs write files.
        if any(path != one and is_inside(path, one) for one in write):
            return False
        if not os.path.lexists(path):
            create_folder(path, self._tool)
        return True

    def _made(
        self, read: list[str], write: list[str], read_only: list[str], hidden: list[str]
    ) -> Confinement:
        granted = self.profile.permissions
        base = self._base
        has_home = any(one.startswith(HOME) for one in (*granted.read, *granted.write))
        tmp = ("TMPDIR",) if has_home else ("TMPDIR", "HOME")
        limits = {name: granted.limits.get(name) for name in ConfinementLimits.__annotations__}
        return Confinement(
            read=tuple(dict.fromkeys([*base.read, *read])),
            write=tuple(dict.fromkeys([*map(real, WRITE), *write])),
            execute=base.execute,
            read_only=tuple(read_only),
            hidden=tuple(hidden),
            net="all" if ANY_HOST in granted.net else granted.hosts or "none",
            unix=UNIX in granted.net,
            tmp=tmp if TMP in granted.write else (),
            limits=ConfinementLimits(**limits),
        )

    def _base_of(self, start: Start) -> Programs:
        """What does not change between calls."""
        granted = self.profile.permissions
        home = self._places.home
        named = [one for one in granted.run if "/" not in one and one != SYSTEM]
        needed = programs_of([*start.commands, *named], start.path, home)
        execute = [*map(real, LOADERS), *needed.execute]
        read = [*map(real, READ), *settings(), *needed.read, *map(real, start.own)]
        if granted.net:
            read.append(real(_RESOLVER))
        if SYSTEM in granted.run:
            written = [one for one in granted.write if one != TMP]
            writable = [self._places.project, *self._places.granted(written, self._tool)]
            on_path = folders_on(start.path, home, writable)
            execute += [*map(real, SYSTEM_PROGRAMS), *on_path.execute]
            read += on_path.read
        execute += self._places.granted([one for one in granted.run if "/" in one], self._tool)
        execute, read = _existing(execute), _existing(read)
        return Programs(_outermost(execute, execute), _outermost(read, [*execute, *read]))

    def _protected(
        self, read: list[str], write: list[str], git: int, outside: str | None
    ) -> tuple[list[str], list[str]]:
        """What stays read-only inside of ``write``, and what is hidden inside of both.

        Programs of the user trust these files: git runs hooks and settings, Rye reads ``.ai``, and
        everything reads ``.env``, of which a tool gets only the variables that it declares.
        """
        project = self._places.project
        exempt = {*write, *self._exempt(write, outside)}
        below = _prefixes(write)

        def is_protected(one: str) -> bool:
            return one.startswith(below) and one not in exempt

        names = dict.fromkeys([f"{project}/.ai", self._user_files])
        if not is_protected(self._user_files):
            # Whatever else of it a tool may write, what runs is not changed by a tool.
            names[self._closures] = None
        steps = [
            step for one in names if is_protected(one) for step in _existing_steps(one, project)
        ]
        if write and git != NONE:
            trusted = trusted_by_git(project, git, outside)
            steps += [
                step for one in trusted if is_protected(one) for step in steps_to(one, project)
            ]
        # A link on the way to such a file could be replaced as well.
        read_only = [
            step for step in dict.fromkeys(steps) if step.startswith(below) or step in write
        ]
        everywhere, inside = [*read, *write], (*below, *_prefixes(read))
        hidden = [
            _existing_steps(one, project)[-1:]
            for one in (f"{project}/.env", f"{self._user_files}/keys")
            if one.startswith(inside) and one not in everywhere
        ]
        return read_only, [path for found in hidden for path in found]

    def _exempt(self, write: list[str], outside: str | None) -> list[str]:
        """Files of a repository outside that a tool names as files of the project."""
        git = f"{self._places.project}/.git/"
        if outside is None:
            return []
        return [f"{outside}/{one[len(git) :]}" for one in write if one.startswith(git)]


def home_of(environ: Mapping[str, str]) -> str:
    """The home of the user, for ``~``."""
    return environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111 - a text


def _prefixes(folders: Sequence[str]) -> tuple[str, ...]:
    """What the paths below the folders begin with."""
    return tuple([one if one.endswith("/") else f"{one}/" for one in folders])


def _existing_steps(path: str, project: str) -> list[str]:
    """As :func:`steps_to`, but empty for a path that does not exist."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return []
    is_direct = os.path.dirname(path) == project  # noqa: PTH120 - on the way of each call
    return [path] if is_direct and not stat.S_ISLNK(mode) else steps_to(path, project)


def _existing(paths: Sequence[str]) -> list[str]:
    """Those that exist: the others would be skipped, but are checked again by each start."""
    return [one for one in dict.fromkeys(paths) if os.path.lexists(one)]


def _outermost(paths: Sequence[str], folders: Sequence[str]) -> tuple[str, ...]:
    """Those that are not below one of the folders: the kernel copies each rule for each job."""
    known = {*folders}
    return tuple([one for one in paths if known.isdisjoint(_above(one))])


def _above(path: str) -> Iterator[str]:
    while path != "/":
        path = os.path.dirname(path)  # noqa: PTH120 - a text
        yield path
