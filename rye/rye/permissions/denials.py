"""Why a confined tool failed, if it tried something that its permissions do not include.

A job is not watched for this: that would make each call half as long again (ADR 24). The programs
say themselves what they were refused, and here it is compared with the policy: a path is named only
if the policy refuses it and the user's own rights do not. An ordinary lack of rights is not blamed
on the permissions.
"""

from __future__ import annotations

import os
import re
import stat

from lilux.record import Record, replaced

from rye.permissions.locations import is_inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from lilux.primitives.subprocess.confinement import Confinement

    from rye.items.permissions import Permissions

USER_DECIDES = "the user decides whether it may"

_MAX_TEXT = 64 * 1024
_MAX_NAMED = 3
_MAX_LINES = 200
_MAX_TRACEBACK = 12
_MAX_PATH = 4096
_MIN_SECRET = 6

_NO_UNIX = "no unix in permissions.net"
_NEITHER = "not in permissions.read or permissions.write"

_REFUSED = re.compile(
    r"permission denied|operation not permitted|read-only file system"
    r"|\bEACCES\b|\bEPERM\b|\bEROFS\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"'([^']+)'|\"([^\"]+)\"|`([^`']+)[`']|\u2018([^\u2019]+)\u2019|\u201c([^\u201d]+)\u201d"
)
_SPAWNED = re.compile(r"spawn(?:Sync)? (\S+) E")
_ABSOLUTE = re.compile(r"(?:unix://)?(/[^\s:'\"`<>|;,()\[\]]+)")

# The text around a refusal that tells writing from reading. Without it, a file that exists and is
# in neither list was opened, for one or the other.
_WRITES = re.compile(
    r"read-only file system|\bEROFS\b"
    r"|\b(?:creat|writ|remov|delet|unlink|mkdir|rmdir|renam|mov|touch|append|overwrit|truncat|lock)"
    r"|\b(?:os|shutil)\.replace|\bmode='[wax]|, ['\"][wax][bt+]*['\"]",
    re.IGNORECASE,
)

_NAME = re.compile(r"^[^\0]*\w[^\0]*$")
_CANNOT = re.compile(r"^(?:cannot|can't|could not|unable to|failed to) [a-z ]*?(?=\S+$)")

_NO_NETWORK = re.compile(
    r"could not resolve|unable to resolve|name or service not known|getaddrinfo"
    r"|temporary failure in name resolution|failed to lookup address|no such host"
    r"|network is unreachable|\bENETUNREACH\b|\bEAI_AGAIN\b|\bENOTFOUND\b",
    re.IGNORECASE,
)
_HOST = re.compile(
    r"(?:resolve host(?:name)?(?: address)?:? |EAI_AGAIN |ENOTFOUND |lookup )"
    r"[\u2018'\"]?([A-Za-z0-9][A-Za-z0-9.-]*[A-Za-z0-9])"
)
# The answers of the proxy that enforces a list of hosts.
_NOT_ALLOWED = re.compile(r"(\S+:\d+) is not an allowed host")
_TUNNEL_REFUSED = re.compile(r"tunnel failed, response 403|HTTP code 403 from proxy")
_NETWORK_WORDS = re.compile(r"socket|connect|urlopen|https?:|\bssh\b", re.IGNORECASE)
_NO_PATH = re.compile(r"(?:permission denied|not permitted)\W*$", re.IGNORECASE)


class Denial(Record, frozen=True):
    """Something that a tool tried, and the permission that does not include it."""

    tried: str
    """``read``, ``write``, ``open`` (one of these), ``run`` or ``connect to``."""
    target: str
    """A path, a host, ``the network`` or ``a socket``."""
    key: str
    """The key of ``permissions``."""
    reason: str = ""

    def text(self, home: str) -> str:
        """In words: ``tried to write ~/.config/gh/hosts.yml; not in permissions.write``."""
        target = self.target
        if home != "/" and is_inside(target, home):
            target = f"~{target[len(home) :]}"
        return f"tried to {self.tried} {target}; {self.reason or f'not in permissions.{self.key}'}"


def denials(
    text: str, policy: Confinement, cwd: str, search: str, *, mounted: bool = False
) -> list[Denial]:
    """What a tool was refused because of ``policy``, from what it and its programs printed.

    ``search`` is the job's PATH. ``mounted`` tells that the job saw everything but ``write`` as a
    read-only file system: then what was refused in another way was not written. Each denial is
    listed once, in the order of the text.
    """
    lines = text[-_MAX_TEXT:].splitlines()[-_MAX_LINES:]
    found: dict[Denial, None] = {}
    for at, line in enumerate(lines):
        if _REFUSED.search(line):
            writes = bool(_WRITES.search("\n".join([*_traceback(lines[:at]), line])))
            for path in _paths(line, cwd, search):
                reads = mounted and not writes
                if denial := _of_path(path, policy, writes=writes, reads=reads):
                    found[denial] = None
    if policy.net != "all":
        hosts = () if policy.net == "none" else tuple(policy.net)
        found.update(dict.fromkeys(_of_network(lines, hosts)))
    return list(found)


def without_values(
    found: Sequence[Denial], declared: Permissions | None, env: Mapping[str, str]
) -> list[Denial]:
    """The denials with names instead of the values of declared variables, which may be secret."""
    asked = () if declared is None else declared.env
    values = {
        value: name
        for name, value in env.items()
        if len(value) >= _MIN_SECRET
        and any(name == one or (one[-1] == "*" and name.startswith(one[:-1])) for one in asked)
    }

    def shown(target: str) -> str:
        for value in sorted(values, key=len, reverse=True):
            target = target.replace(value, f"${{{values[value]}}}")
        return target

    return [replaced(one, target=shown(one.target)) for one in found]


def explanation(found: Sequence[Denial], home: str) -> str:
    """The denials as one text, of which the first few are named."""
    named = [one.text(home) for one in found[:_MAX_NAMED]]
    rest = len(found) - len(named)
    if rest:
        named.append(f"and {rest} more")
    return "; ".join(named)


def _traceback(before: Sequence[str]) -> list[str]:
    """The indented lines right above an error of Python: its source, from the inside out."""
    found: list[str] = []
    for line in reversed(before):
        if not line.startswith(" ") or len(found) == _MAX_TRACEBACK:
            break
        if not line.lstrip().startswith("File "):
            found.append(line)
    return found


def _paths(line: str, cwd: str, search: str) -> Iterator[str]:
    """The real paths that a line is about.

    They are in quotes, or right before or after the reason, as in ``cat: notes.txt: Permission
    denied``. If there are none, any absolute path is taken.
    """
    names = [next(filter(None, groups)) for groups in _QUOTED.findall(line)]
    names += _SPAWNED.findall(line)
    if refused := _REFUSED.search(line):
        program, _, name = line[: refused.start()].rstrip(" :").rpartition(": ")
        if program:
            names.append(_CANNOT.sub("", name))
        names += _ABSOLUTE.findall(line[refused.end() :])
    real = [path for name in names for path in _real(name.strip(), cwd, search)]
    for name in () if real else _ABSOLUTE.findall(line):
        real += _real(name, cwd, search)
    yield from dict.fromkeys(real)


def _real(name: str, cwd: str, search: str) -> list[str]:
    """The real path of a file, of a program on the search path, or of a file to be created."""
    from lilux.runtime.env_resolver.interpreters import which

    name = name.removeprefix("unix://")
    if len(name) >= _MAX_PATH or not _NAME.search(name) or _REFUSED.fullmatch(name):
        return []
    path = os.path.join(cwd, name)  # noqa: PTH118 - a text
    if "/" not in name and not os.path.lexists(path):
        if program := which(name, {"PATH": search}):
            return [os.path.realpath(program)]
        if " " in name:
            return []
    return [os.path.realpath(path)]


def _of_path(path: str, policy: Confinement, *, writes: bool, reads: bool) -> Denial | None:
    """The denial of a path; ``None`` if the policy allows it, or the user may not do it either."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - a text
    except OSError:
        mode = 0
    if stat.S_ISSOCK(mode):
        return None if policy.unix else Denial("connect to", path, "net", _NO_UNIX)
    protected = _within(path, policy.read_only)
    writable = _within(path, policy.write) and not protected
    readable = writable or _within(path, (*policy.read, *policy.write, *policy.execute))
    if _is_program(path, mode) and not _within(path, policy.execute):
        return Denial("run", path, "run")
    if mode and not readable and not writes:
        if not os.access(path, os.R_OK):
            return None
        return Denial("read", path, "read") if reads else Denial("open", path, "read", _NEITHER)
    # A file that was only to be read, and may be, is mentioned for another reason: it is the
    # program that reports the error.
    if writable or (mode and reads) or not _may_write(path, mode):
        return None
    reason = "read-only inside permissions.write" if protected else ""
    return Denial("write", path, "write", reason)


def _is_program(path: str, mode: int) -> bool:
    return stat.S_ISREG(mode) and mode & 0o111 != 0 and os.access(path, os.X_OK)


def _may_write(path: str, mode: int) -> bool:
    """True if the user's own rights are enough to write or create the path."""
    if mode:
        return os.access(path, os.W_OK)
    while (parent := os.path.dirname(path)) != path:  # noqa: PTH120 - a text
        if os.path.lexists(parent):
            return os.path.isdir(parent) and os.access(parent, os.W_OK | os.X_OK)  # noqa: PTH112
        path = parent
    return False


def _within(path: str, folders: Iterable[str | os.PathLike[str]]) -> bool:
    return any(is_inside(path, os.fspath(one)) for one in folders)


def _of_network(lines: Sequence[str], allowed: Sequence[str]) -> Iterator[Denial]:
    """The hosts that a tool tried to reach and that are not allowed, as far as its output tells."""
    hosts = [host for line in lines for host in _HOST.findall(line) if _NO_NETWORK.search(line)]
    hosts = [host for host in hosts if not any(_names(one, host) for one in allowed)]
    hosts += [host for line in lines for host in _NOT_ALLOWED.findall(line)]
    if hosts:
        yield from [Denial("connect to", host, "net") for host in hosts]
    elif allowed:
        # Without the name of the host, this may be one that is allowed.
        if any(_TUNNEL_REFUSED.search(line) for line in lines):
            yield Denial("connect to", "another host", "net")
    elif any(_NO_NETWORK.search(line) for line in lines):
        yield Denial("connect to", "the network", "net")
    elif _refused_sockets(lines):
        yield Denial("open", "a socket", "net")


def _names(entry: str, host: str) -> bool:
    """True if an entry of ``net`` is about the host."""
    name, host = entry.rpartition(":")[0], host.lower().rstrip(".")
    return host.endswith(name[1:]) if name.startswith("*.") else host == name


def _refused_sockets(lines: Sequence[str]) -> bool:
    """True if creating a socket was refused: an error without a path, among words of a network."""
    refused = any(_NO_PATH.search(line) and "rrno" in line for line in lines)
    return refused and any(_NETWORK_WORDS.search(line) for line in lines)
