"""What a file declares that its tool may touch: ``permissions`` (``PERMISSIONS`` in Python).

::

    permissions:
      read:  ["{project_path}", "~/.config/gh"]    files and folders
      write: ["{project_path}/out", tmp]           tmp: a private folder, removed afterwards
      net:   false                                 or true, or ["api.github.com:443", unix]
      env:   [GITHUB_TOKEN, "AWS_*"]               variables, also from the project's .env
      run:   [git, "{project_path}/build/**"]      programs; system: all installed programs
      limits: {memory: 512MiB, cpu: 60, processes: 64, file_size: 1GiB}

A key that is absent grants nothing. A file without ``permissions`` does not confine its tool.
Everything is checked here, so that a file with a mistake cannot be signed. A key that this version
of Rye does not know is refused: a declaration that nothing enforces would be a false promise.
"""

from __future__ import annotations

from lilux.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

KEYS = ("read", "write", "net", "env", "run", "limits")
LIMITS = ("memory", "cpu", "processes", "file_size")
OWN_VARIABLES = "RYE_"
"""Rye passes its own values in variables that begin with this; no other source may set them."""
PROJECT = "{project_path}"
HOME = "~"
TMP = "tmp"
SYSTEM = "system"
UNIX = "unix"
ANY_HOST = "*"
FOLDER = "/**"
"""The end of a path of ``run`` that means every program below a folder."""

# At least one letter before the asterisk, so that no entry means every variable.
_NAME = r"[A-Za-z_][A-Za-z0-9_]*|_*[A-Za-z][A-Za-z0-9_]*\*"
_PROGRAM = r"[A-Za-z0-9_][A-Za-z0-9_.+-]*"
_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_UNITS = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_MAX_LIMIT = 2**53
_MAX_HOST = 253
_MAX_PORT = 65535
_PATH_ADVICE = f"expected a path that begins with {PROJECT}, ~ or /"


class Permissions(Record, frozen=True, kw_only=True):
    """The checked declaration; by default, nothing."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    """Paths, and :data:`TMP`."""
    net: tuple[str, ...] = ()
    """``host:port`` in lower case, :data:`UNIX`, and :data:`ANY_HOST` for ``true``."""
    env: tuple[str, ...] = ()
    """Names of variables, and beginnings of names with a final ``*``."""
    run: tuple[str, ...] = ()
    """Names of programs, paths, and :data:`SYSTEM`."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """Bytes, seconds and numbers, by the names in :data:`LIMITS`."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that ``net`` lists; empty also if it allows every host."""
        if ANY_HOST in self.net:
            return ()
        return tuple([one for one in self.net if one != UNIX])


def permissions_from(value: object, where: str) -> tuple[Permissions, str]:
    """Return the permissions and an empty text, or why ``value`` is refused."""
    if not isinstance(value, dict):
        return Permissions(), f"expected a mapping in '{where}'"
    fields: dict[str, Any] = {}
    for key, given in value.items():
        if key not in KEYS:
            known = f"{', '.join(KEYS[:-1])} or {KEYS[-1]}"
            return Permissions(), f"expected {known}, got '{key}' in '{where}'"
        fields[key], fault = _CHECKS[key](given, f"{where}.{key}")
        if fault:
            return Permissions(), fault
    return Permissions(**fields), ""


def permissions_to_json(permissions: Permissions | None) -> dict[str, Any] | None:
    """As a JSON value, for the disk cache."""
    if permissions is None:
        return None
    lists = {key: list(getattr(permissions, key)) for key in KEYS[:-1]}
    return {**lists, "limits": dict(permissions.limits)}


def permissions_from_json(value: Any) -> Permissions | None:
    """The inverse of :func:`permissions_to_json`."""
    if value is None:
        return None
    lists = {key: tuple(value[key]) for key in KEYS[:-1]}
    return Permissions(**lists, limits=value["limits"])


def joined(parts: list[Permissions]) -> Permissions:
    """Everything that any of them grants. Of two limits, the higher one is used."""
    fields: dict[str, Any] = {
        key: tuple(dict.fromkeys([one for each in parts for one in getattr(each, key)]))
        for key in KEYS[:-1]
    }
    limits: dict[str, int] = {}
    for each in parts:
        for name, limit in each.limits.items():
            limits[name] = max(limit, limits.get(name, 0))
    return Permissions(**fields, limits=limits)


def _entries(
    value: object, where: str, what: str, check: Callable[[str, str], str]
) -> tuple[tuple[str, ...], str]:
    if not isinstance(value, list):
        return (), f"expected a list of {what} in '{where}'"
    for index, entry in enumerate(value):
        place = f"{where}[{index}]"
        fault = check(entry if isinstance(entry, str) else "", place)
        if fault:
            return (), fault
    return tuple(value), ""


def _read(value: object, where: str) -> tuple[tuple[str, ...], str]:
    return _entries(value, where, "paths", path_fault)


def _write(value: object, where: str) -> tuple[tuple[str, ...], str]:
    return _entries(
        value, where, "paths", lambda one, place: "" if one == TMP else path_fault(one, place)
    )


def path_fault(path: str, where: str) -> str:
    """Why a path is refused; empty if it may be declared."""
    root, _, rest = path.partition("/")
    if root not in ("", PROJECT, HOME) or not path:
        return f"{_PATH_ADVICE} in '{where}'"
    if "\0" in path or "*" in path or "{" in rest:
        return f"expected a path without patterns and placeholders in '{where}'"
    if ".." in rest.split("/"):
        return f"expected a path without '..' in '{where}'"
    return ""


def _net(value: object, where: str) -> tuple[tuple[str, ...], str]:
    if isinstance(value, bool):
        return ((ANY_HOST,) if value else ()), ""
    if not isinstance(value, list):
        return (), f"expected true, false or a list of hosts in '{where}'"
    found, fault = _entries(value, where, "hosts", host_fault)
    return tuple([one.lower() for one in found]), fault


def host_fault(entry: str, where: str) -> str:
    """Why an entry of ``net`` is refused; empty if it is a host with a port, or ``unix``."""
    if entry in (UNIX, ANY_HOST):
        return ""
    host, _, port = entry.rpartition(":")
    fault = f"expected a host and a port, such as api.example.org:443, in '{where}'"
    if not (port.isascii() and port.isdigit() and 0 < int(port) <= _MAX_PORT):
        return fault
    return "" if _is_host(host.lower()) else fault


def _is_host(host: str) -> bool:
    import re

    if host.startswith("["):
        import ipaddress

        try:
            return host.endswith("]") and ipaddress.ip_address(host[1:-1]).version == 6
        except ValueError:
            return False
    labels = host.removeprefix("*.").split(".")
    if host.startswith("*.") and len(labels) < 2:
        return False
    if all(label.isdigit() for label in labels):
        return len(labels) == 4 and all(int(label) < 256 for label in labels)
    return len(host) <= _MAX_HOST and all(re.fullmatch(_LABEL, label) for label in labels)


def _env(value: object, where: str) -> tuple[tuple[str, ...], str]:
    return _entries(value, where, "variable names", _name_fault)


def _name_fault(name: str, where: str) -> str:
    import re

    if re.fullmatch(_NAME, name) is None:
        return f"expected the name of a variable, such as TOKEN or AWS_*, in '{where}'"
    if name.upper().startswith(OWN_VARIABLES):
        return f"'{name}' in '{where}' is a variable of Rye, which no file may supply"
    return ""


def _run(value: object, where: str) -> tuple[tuple[str, ...], str]:
    return _entries(value, where, "programs", _program_fault)


def _program_fault(entry: str, where: str) -> str:
    import re

    if re.fullmatch(_PROGRAM, entry) is not None:
        return ""
    if "/" not in entry:
        return f"expected the name of a program, or a path, in '{where}'"
    return path_fault(entry.removesuffix(FOLDER), where)


def _limits(value: object, where: str) -> tuple[dict[str, int], str]:
    limits: dict[str, int] = {}
    if not isinstance(value, dict):
        return limits, f"expected a mapping in '{where}'"
    for name, given in value.items():
        place = f"{where}.{name}"
        if name not in LIMITS:
            return limits, f"expected {', '.join(LIMITS)}, got '{name}' in '{where}'"
        sized = name in ("memory", "file_size")
        limit = size_of(given) if sized and isinstance(given, str) else given
        if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit < _MAX_LIMIT:
            what = "a size such as 512MiB" if sized else "a positive whole number"
            return limits, f"expected {what} in '{place}'"
        limits[name] = limit
    return limits, ""


def size_of(text: str) -> int:
    """The bytes of ``512MiB``; 0 if it is not a size."""
    digits = text.rstrip("KMGTiB")
    unit = _UNITS.get(text[len(digits) :], 0)
    return int(digits) * unit if digits.isascii() and digits.isdigit() and len(digits) < 16 else 0


_CHECKS: dict[str, Callable[[object, str], tuple[Any, str]]] = {
    "read": _read,
    "write": _write,
    "net": _net,
    "env": _env,
    "run": _run,
    "limits": _limits,
}
