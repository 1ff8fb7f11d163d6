"""This machine: what ``rye doctor`` finds, and what can be enforced of permissions."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import AsyncIterator, Iterator

from starlette.requests import Request
from starlette.responses import Response

from rye import __version__
from rye.doctor.checks import Finding
from rye.permissions.words import PARTS
from rye.spaces.bundles import OWN, system_spaces
from rye.ui.page import Event, Page, render, stream
from rye.ui.site import Site, site_of
from rye.ui.values import size

_KINDS = {"ok": "good", "fixed": "good", "warning": "warn", "problem": "bad"}
_ORDER = tuple(reversed(_KINDS))


def machine(request: Request) -> Response:
    """What is wrong, what can be enforced, and what works."""
    site = site_of(request)
    found, looking = site.checkups.get(again="again" in request.query_params)
    findings = () if found is None else found.findings
    wrong = [one for one in findings if one.state in ("problem", "warning")]
    return render(
        request,
        "machine.html",
        title="Machine",
        found=found,
        looking=looking,
        summary=_summary(findings),
        wrong=sorted(wrong, key=lambda one: _ORDER.index(one.state)),
        fine=[one for one in findings if one not in wrong],
        kinds=_KINDS,
        words=PARTS,
        facts=list(_facts(site)),
    )


async def machine_events(request: Request) -> Response:
    """Loads the page again when the checks have ended."""
    return stream(request, _until_checked(site_of(request)))


async def _until_checked(site: Site) -> AsyncIterator[Event]:
    await site.checkups.ended()
    yield Event("reload", "")


def _summary(findings: tuple[Finding, ...]) -> str:
    counts = [
        (sum(one.state == state for one in findings), state) for state in ("problem", "warning")
    ]
    return ", ".join([f"{n or 'no'} {word}{'' if n == 1 else 's'}" for n, word in counts])


def _facts(site: Site) -> Iterator[tuple[str, str]]:
    yield "Rye", __version__
    yield "Python", f"{platform.python_version()}, {sys.executable}"
    yield "System", f"{platform.system()} {platform.release()} ({platform.machine()})"
    yield "Processors", str(os.cpu_count() or "not known")
    if memory := _memory():
        yield "Memory", size(memory)
    yield "Your space", str(site.context.user_space / ".ai")
    yield "Project", str(site.context.project_path)
    others = [one.bundle for one in system_spaces(site.context) if one.bundle != OWN]
    yield "Bundles", ", ".join([OWN, *others])


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return 0


ROUTES = (
    Page("/machine", machine, section="Machine"),
    Page("/machine/events", machine_events, section="Machine"),
)
