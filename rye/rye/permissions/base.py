"""The base set: what programs need to start, which every confined tool may use."""

from __future__ import annotations

import os
import stat

NAMES = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR"),
        *("LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM", "NO_COLOR"),
    }
)
"""The variables that every tool gets."""
PREFIXES = ("LC_",)

LIBRARIES = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/nix/store")
"""Read by nearly every program. The programs in it are executed only if ``run`` names them."""
SYSTEM_PROGRAMS = (*LIBRARIES, "/opt", "/snap", "/usr/local")
READ = (
    *LIBRARIES,
    *("/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"),
    # How many processors and how much memory there are; not the other processes.
    *("/proc/cpuinfo", "/proc/filesystems", "/proc/loadavg", "/proc/meminfo", "/proc/stat"),
    *("/proc/sys", "/proc/uptime", "/proc/version", "/sys/devices/system", "/sys/fs/cgroup"),
)
WRITE = ("/dev/null",)
LOADERS = (
    *("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-linux-armhf.so.3"),
    *("/lib/ld-linux.so.2", "/lib/ld-linux-riscv64-lp64d.so.1", "/lib64/ld64.so.2"),
    *("/lib/ld64.so.1", "/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1"),
)
"""The kernel executes one of these for each dynamically linked program."""

_SETTINGS = "/etc"
_MAX_RULES = 200
_MAX_DEPTH = 8


def real(path: str) -> str:
    """The path without symbolic links."""
    return os.path.realpath(path)


def settings() -> tuple[str, ...]:
    """``/etc``, as far as every user may read it.

    Programs tolerate a missing file there, but not one that they may not read. For everybody but
    root, the kernel checks the modes of files anyway. For root, a folder with a file that others
    may not read (``/etc/shadow``, ``/etc/ssl/private``) is replaced by what else it contains.
    """
    if os.geteuid() != 0:
        return (_SETTINGS,)
    if not _for_root:
        found, whole = _readable(_SETTINGS, _MAX_DEPTH)
        paths = [_SETTINGS] if whole else sorted(found, key=lambda path: path.count("/"))
        _for_root.extend(paths[:_MAX_RULES])
    return tuple(_for_root)


_for_root: list[str] = []


def _readable(folder: str, depth: int) -> tuple[list[str], bool]:
    """The files and folders that everybody may read, and whether there are no others."""
    found: list[str] = []
    whole = depth > 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries if whole else ():
                if entry.is_symlink():
                    continue
                mode = entry.stat(follow_symlinks=False).st_mode
                inner, readable = [entry.path], bool(mode & stat.S_IROTH)
                if readable and stat.S_ISDIR(mode):
                    inner, readable = _readable(entry.path, depth - 1)
                    inner = [entry.path] if readable else inner
                elif not readable:
                    inner = []
                found += inner
                whole = whole and readable
    except OSError:
        return [], False
    return found, whole
