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


def real(path: str) -> str:
    """The path without symbolic links."""
    return os.path.realpath(path)


def settings() -> tuple[str, ...]:
    """``/etc``, as far as every user may read it.

    Programs tolerate a missing file there, but not one that they may not read. For everybody but
    root, the kernel checks the modes of files anyway. For root, two levels are checked, which is
    where private keys and hashes of passwords are: ``/etc/shadow``, ``/etc/ssl/private``.
    """
    if os.geteuid() != 0:
        return (_SETTINGS,)
    if not _for_root:
        files, folders = _readable(_SETTINGS)[:2]
        for folder in folders:
            inner_files, inner_folders, whole = _readable(folder)
            files += [folder] if whole else [*inner_files, *inner_folders]
        _for_root.extend(sorted(files, key=lambda path: path.count("/"))[:_MAX_RULES])
    return tuple(_for_root)


_for_root: list[str] = []


def _readable(folder: str) -> tuple[list[str], list[str], bool]:
    """The files and folders that everybody may read, and whether there are no others."""
    files: list[str] = []
    folders: list[str] = []
    whole = True
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink():
                    continue
                mode = entry.stat(follow_symlinks=False).st_mode
                if not mode & stat.S_IROTH:
                    whole = False
                elif stat.S_ISDIR(mode):
                    folders.append(entry.path)
                else:
                    files.append(entry.path)
    except OSError:
        return [], [], False
    return files, folders, whole
