"""Permissions in words: what a tool may do, and what a new version may do in addition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rye.items.permissions import (
    ANY_HOST,
    FOLDER,
    HOME,
    LIMITS,
    PROJECT,
    SYSTEM,
    TMP,
    UNIX,
    Permissions,
)

UNCONFINED = "unconfined"
PARTS = {
    "fs": "reading, writing and running files",
    "net": "the network",
    "unix": "unix sockets",
    "signals": "signals to other processes",
    "privileges": "no more rights than the tool started with",
    "syscalls": "system calls that reach around the rest",
    "attributes": "modes, owners and times of other files",
    "read_only": "protected files inside writable folders",
    "hidden": "hidden files",
    "memory": "the limit of memory",
    "cpu": "the limit of processor time",
    "processes": "the limit of processes",
    "file_size": "the limit of file sizes",
}
"""What the parts of a confinement are."""

_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def explained(permissions: Permissions) -> Iterator[tuple[str, str]]:
    """Yield a word and a sentence for each kind of permission."""
    paths = [one for one in permissions.write if one != TMP]
    read = [*permissions.read, *[one for one in paths if one not in permissions.read]]
    yield "reads", _listed(map(_path, read)) or "nothing beyond what programs need to start"
    private = ["a private temporary folder"] if TMP in permissions.write else []
    yield "writes", _listed([*map(_path, paths), *private]) or "nothing"
    yield "network", _network(permissions)
    yield "variables", _listed(["the base names", *permissions.env])
    yield "programs", _listed(["its interpreter", *map(_program, permissions.run)])
    yield "home", _home(permissions)
    limits = [
        f"{name} {limit_text(name, permissions.limits[name])}" for name in _limited(permissions)
    ]
    yield "limits", _listed(limits) or "none"


def in_short(permissions: Permissions | None) -> str:
    """One line, for `rye show`."""
    if permissions is None:
        return f"everything that you can do ({UNCONFINED})"
    words = dict(explained(permissions))
    return f"read {words['reads']}; write {words['writes']}; network: {words['network']}"


def widened(old: Mapping[str, object] | None, new: Permissions | None) -> list[str]:
    """What ``new`` allows beyond ``old``, such as ``write ~/.config``.

    ``old`` are the permissions in a lockfile as JSON; ``None`` if it has none.
    """
    if old is None:
        return []
    if new is None:
        return [UNCONFINED]
    found = []
    for key in ("read", "write", "net", "env", "run"):
        before = old.get(key)
        known = before if isinstance(before, list) else []
        found += [f"{key} {one}" for one in getattr(new, key) if one not in known]
    limits = old.get("limits")
    for name, limit in limits.items() if isinstance(limits, dict) else ():
        raised = new.limits.get(name)
        if raised is None:
            found.append(f"any {name}")
        elif isinstance(limit, int) and raised > limit:
            found.append(f"{name} {limit_text(name, raised)}")
    return found


def limit_text(name: str, limit: int) -> str:
    """A limit as an author writes it."""
    if name == "cpu":
        return f"{limit} s"
    if name in ("memory", "file_size"):
        for size, unit in _UNITS:
            if limit % size == 0:
                return f"{limit // size} {unit}"
        return f"{limit} bytes"
    return str(limit)


def _limited(permissions: Permissions) -> list[str]:
    return [name for name in LIMITS if name in permissions.limits]


def _path(entry: str) -> str:
    if entry == PROJECT:
        return "the project"
    if entry == HOME:
        return "your home folder"
    return entry.replace(f"{PROJECT}/", "")


def _network(permissions: Permissions) -> str:
    text = "all hosts" if ANY_HOST in permissions.net else _listed(permissions.hosts) or "none"
    return f"{text}, and unix sockets" if UNIX in permissions.net else text


def _program(entry: str) -> str:
    if entry == SYSTEM:
        return "all installed programs"
    return (
        f"those in {_path(entry.removesuffix(FOLDER))}" if entry.endswith(FOLDER) else _path(entry)
    )


def _home(permissions: Permissions) -> str:
    if any(one.startswith(HOME) for one in (*permissions.read, *permissions.write)):
        return "yours, of which it sees the paths above"
    return "an empty private folder" if TMP in permissions.write else "none"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words)
