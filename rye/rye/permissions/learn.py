"""The smallest declaration that would have sufficed for a call that was observed.

Starting from nothing, each access that a declaration does not allow adds an entry, until every
access is allowed; then each entry that is not needed is removed. What a declaration allows is not
guessed here: it is the confinement that Lilux would get for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence

from lilux.primitives.subprocess.confinement import Confinement
from lilux.primitives.subprocess.observation import Access
from lilux.record import Record, field, replaced

from rye.items.permissions import ANY_HOST, FOLDER, HOME, PROJECT, TMP, UNIX, Permissions
from rye.permissions.base import NAMES, PREFIXES
from rye.permissions.locations import Places, is_inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_MANY = 3
"""From so many files on, the folder is granted instead."""
_MAX_ROUNDS = 500
_WRITES = frozenset({"write", "create", "remove", "change"})
_INTERNET = frozenset({"connect", "bind"})
_SOCKETS = ("inet", "inet6", "raw")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{2,}")
# Of the process itself, or of its terminal. Programs do without them.
_OWN = re.compile(r"/proc/self/|/dev/(?:std(?:in|out|err)|tty|fd|pts)(?:/|$)|/proc/\d+/")


class Seen(Record, frozen=True, kw_only=True):
    """What was observed, and what it is compared with."""

    accesses: Sequence[Access]
    confinement_of: Callable[[Permissions], Confinement]
    """What Lilux gets for a declaration, with what the runtimes declare for themselves."""
    places: Places
    tmp: str
    """The private folder that the call had as its TMPDIR."""
    path: str
    """The PATH of the call."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables that the tool reads, with how that is known."""


class Learned(Record, frozen=True, kw_only=True):
    """A declaration, and what was seen for each of its entries."""

    permissions: Permissions
    reasons: Mapping[tuple[str, str], str]
    """By key and entry."""
    left_out: tuple[str, ...]
    """Accesses that no declaration can name, or that programs do without."""


def learn(seen: Seen) -> Learned:
    """The declaration for what was seen."""
    wanted = [one for one in seen.accesses if _matters(one)]
    found = Permissions(net=_net(wanted), env=tuple(sorted(seen.variables)))
    open_ends: list[Access] = []
    for _ in range(_MAX_ROUNDS):
        missing = [one for one in _refused(wanted, found, seen) if one not in open_ends]
        if not missing:
            break
        more = _with_entry(found, missing[0], missing, seen)
        if more == found:
            open_ends.append(missing[0])
        found = more
    found = _pruned(found, [one for one in wanted if one not in open_ends], seen)
    own = [one.target for one in seen.accesses if _OWN.match(one.target) and one.what == "read"]
    left_out = dict.fromkeys([*own, *(one.target for one in open_ends)])
    return Learned(
        permissions=found, reasons=_reasons(found, wanted, seen), left_out=tuple(left_out)
    )


def variables_read(
    files: Iterable[tuple[str, str]], environ: Iterable[str], sockets: Mapping[str, str]
) -> dict[str, str]:
    """Variables of ``environ`` that the texts of ``files`` mention, or that name a unix socket.

    No system call tells which variables a program reads. ``files`` are names with texts, and
    ``sockets`` maps variables to the sockets that were connected and that they contain.
    """
    names = {
        one
        for one in environ
        if _VARIABLE.fullmatch(one) and one not in NAMES and not one.startswith(PREFIXES)
    }
    found = {name: f"contains {path}" for name, path in sockets.items() if name in names}
    for file, text in files:
        for name in names & set(_VARIABLE.findall(text)):
            found.setdefault(name, f"mentioned in {file}")
    return found


def _matters(one: Access) -> bool:
    """False for an attempt to use what does not exist, and for what belongs to the process."""
    if one.what in ("read", "execute", "unix") and not one.exists:
        return False
    return not _OWN.match(one.target)


def _net(accesses: Sequence[Access]) -> tuple[str, ...]:
    internet = any(
        one.what in _INTERNET or (one.what == "socket" and one.target in _SOCKETS)
        for one in accesses
    )
    unix = any(one.what == "unix" for one in accesses)
    return ((ANY_HOST,) if internet else ()) + ((UNIX,) if unix else ())


def _refused(accesses: Sequence[Access], given: Permissions, seen: Seen) -> list[Access]:
    """The accesses to files that a declaration does not allow."""
    policy = seen.confinement_of(given)
    tmp = [seen.tmp] if policy.tmp else []
    write = [*[os.fspath(one) for one in policy.write], *tmp]
    read = [*[os.fspath(one) for one in (*policy.read, *policy.execute)], *write]

    def allowed(one: Access) -> bool:
        path = one.target
        if one.what == "read":
            return _within(path, read) and not _within(path, policy.hidden)
        if one.what == "execute":
            return _within(path, policy.execute)
        if one.what in _WRITES:
            # Rye creates a declared folder before the tool starts.
            inside = _within(_changed(one), write) or (one.what == "create" and path in write)
            return inside and not _within(path, policy.read_only)
        return True

    return [one for one in accesses if not allowed(one)]


def _changed(one: Access) -> str:
    """What must be writable: the file, or the folder whose list of names changes."""
    if one.what in ("create", "remove"):
        return os.path.dirname(one.target)  # noqa: PTH120 - a text
    return one.target


def _with_entry(
    given: Permissions, one: Access, missing: Sequence[Access], seen: Seen
) -> Permissions:
    """The declaration with an entry that allows ``one``."""
    if one.what == "execute":
        return _added(given, "run", _program_entry(one.target, missing, seen))
    if is_inside(one.target, seen.tmp):
        return _added(given, "write", TMP)
    if one.what in _WRITES:
        return _added(given, "write", _entry(_written(one, missing), seen.places))
    return _added(
        given, "read", _entry(_read_folder(one.target, missing, seen.places), seen.places)
    )


def _added(given: Permissions, key: str, entry: str) -> Permissions:
    listed: tuple[str, ...] = getattr(given, key)
    return given if entry in listed else replaced(given, **{key: (*listed, entry)})


def _entry(path: str, places: Places) -> str:
    """A path as it is declared."""
    for name, folder in ((PROJECT, places.project), (HOME, places.home)):
        if folder != "/" and is_inside(path, folder):
            return name + path[len(folder) :]
    return path


def _written(one: Access, missing: Sequence[Access]) -> str:
    """The folder to write: the outermost one that the call has made, or the one with the file."""
    path = _changed(one)
    made = {other.target for other in missing if other.what == "create"}
    if one.what == "create" and os.path.isdir(one.target):  # noqa: PTH112 - a text
        path = one.target
    while (parent := os.path.dirname(path)) in made:  # noqa: PTH120 - a text
        path = parent
    return path


def _read_folder(path: str, missing: Sequence[Access], places: Places) -> str:
    """The file; or, if many files were read, the innermost folder that contains them.

    Of a project, that folder contains all the files that were read; elsewhere, it is one with many
    of them, inside the home folder.
    """
    read = [one.target for one in missing if one.what == "read"]
    if is_inside(path, places.project):
        inside = [one for one in read if is_inside(one, places.project)]
        if len(inside) < _MANY:
            return path
        common = os.path.commonpath(inside)
        return common if os.path.isdir(common) else os.path.dirname(common)  # noqa: PTH112, PTH120
    folder = os.path.dirname(path)  # noqa: PTH120 - a text
    while not is_inside(places.home, folder) and folder.count("/") > 1:
        if sum(is_inside(one, folder) for one in read) >= _MANY:
            return folder
        folder = os.path.dirname(folder)  # noqa: PTH120 - a text
    return path


def _program_entry(program: str, missing: Sequence[Access], seen: Seen) -> str:
    """The name of a program on PATH, or its path; a folder of the project with many programs."""
    names = []
    for folder in seen.path.split(os.pathsep):
        if not folder.startswith("/"):
            continue
        own = os.path.join(folder, os.path.basename(program))  # noqa: PTH118, PTH119 - texts
        if os.path.realpath(own) == program:
            return os.path.basename(own)  # noqa: PTH119 - a text
        names += _links_to(program, folder)
    if names:
        return names[0]
    folder = os.path.dirname(program)  # noqa: PTH120 - a text
    beside = [one for one in missing if one.what == "execute" and is_inside(one.target, folder)]
    if len(beside) >= _MANY and is_inside(folder, seen.places.project):
        return _entry(folder, seen.places) + FOLDER
    return _entry(program, seen.places)


def _links_to(program: str, folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            links = sorted(one.path for one in entries if one.is_symlink())
    except OSError:
        return []
    real = [one for one in links if os.path.realpath(one) == program]
    return [os.path.basename(one) for one in real]  # noqa: PTH119 - texts


def _pruned(given: Permissions, wanted: Sequence[Access], seen: Seen) -> Permissions:
    """The declaration without the entries that it does not need."""
    for key in ("read", "run", "write"):
        for entry in getattr(given, key):
            listed = tuple([one for one in getattr(given, key) if one != entry])
            less = replaced(given, **{key: listed})
            if not _refused(wanted, less, seen):
                given = less
    lists = {key: tuple(sorted(getattr(given, key))) for key in ("read", "run", "write")}
    return replaced(given, **lists)


def _reasons(
    given: Permissions, wanted: Sequence[Access], seen: Seen
) -> dict[tuple[str, str], str]:
    """What was seen for each entry: what is refused without it."""
    reasons = {("env", name): seen.variables[name] for name in given.env}
    for key in ("read", "write", "run"):
        for entry in getattr(given, key):
            listed = tuple([one for one in getattr(given, key) if one != entry])
            reasons[key, entry] = _told(_refused(wanted, replaced(given, **{key: listed}), seen))
    for entry in given.net:
        kinds = ("unix",) if entry == UNIX else ("connect", "bind")
        used = [one for one in wanted if one.what in kinds]
        sockets = [one for one in wanted if one.what == "socket" and one.target in _SOCKETS]
        reasons["net", entry] = _told(used or sockets)
    return reasons


def _told(accesses: Sequence[Access]) -> str:
    """In words: ``git: read .git/HEAD, .git/config and 3 more``."""
    by_program: dict[str, list[str]] = {}
    for one in accesses:
        program = os.path.basename(one.program) or "?"  # noqa: PTH119 - a text
        listed = by_program.setdefault(program, [])
        shown = os.path.basename(one.target) if one.target.startswith("/") else one.target  # noqa: PTH119
        text = f"{one.what} {shown}"
        if text not in listed:
            listed.append(text)
    parts = []
    for program, listed in by_program.items():
        more = len(listed) - _MANY
        rest = f" and {more} more" if more > 0 else ""
        parts.append(f"{program}: {', '.join(listed[:_MANY])}{rest}")
    return "; ".join(parts)


def _within(path: str, folders: Iterable[str | os.PathLike[str]]) -> bool:
    return any(is_inside(path, os.fspath(one)) for one in folders)
