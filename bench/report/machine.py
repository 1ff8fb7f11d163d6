"""Facts about the machine that a figure depends on."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path


def facts() -> dict[str, str | int]:
    """Describe this machine; the name of the host is not part of it."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    release = re.match(r"[\d.]+", platform.release())
    return {
        "processor": processor(),
        "cores": os.cpu_count() or 1,
        "memory_gib": round(memory / 2**30),
        "system": f"{platform.system()} {release[0].rstrip('.') if release else ''}".strip(),
        "python": platform.python_version(),
    }


def processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.exists() else None
    return found[1].strip() if found else platform.machine()


def sentence(machine: dict[str, str | int]) -> str:
    """Return the facts in one line."""
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"{machine['system']}, Python {machine['python']}"
    )
