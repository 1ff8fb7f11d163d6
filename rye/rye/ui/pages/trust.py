"""Who is trusted: keys, approvals, revocations, projects, signatures and pins."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import NamedTuple

from lilux.primitives.errors import LiluxError
from starlette.requests import Request
from starlette.responses import Response

from rye.errors import RyeError
from rye.spaces.model import Space
from rye.spaces.resolver import Resolver
from rye.trust.key_source import KeyEntry
from rye.trust.operations import ItemReport, verify_all
from rye.trust.overview import (
    NOT_APPROVED,
    TRUSTED,
    TRUSTED_FOR_BUNDLE,
    approved_projects,
    key_state,
    owner_words,
    revocations,
)
from rye.trust.project_approval import ProjectApproval, UnsignedParts, hint_for, unsigned_parts
from rye.trust.store import TrustStore
from rye.ui.page import Event, Page, render, stream
from rye.ui.paging import page_of
from rye.ui.pin_rows import checked_pins, drifts_of
from rye.ui.site import Site, site_of
from rye.ui.tool_rows import STANDINGS, Mark

_GOOD = {TRUSTED, TRUSTED_FOR_BUNDLE}
_MAX_DRIFTS = 10
_MAX_PROJECTS = 200
_NOT_TRUSTED = "not-trusted"
_PIN_KINDS = {"ok": "good", "mismatch": "bad", "corrupt": "bad"}


class KeyRow(NamedTuple):
    """A key of the trust store."""

    entry: KeyEntry
    owner: str
    state: Mark
    approved: str
    """When the user approved it; empty if that was not needed, or did not happen."""


class ProjectState(NamedTuple):
    """The unsigned parts of this project, and whether they are approved."""

    parts: UnsignedParts | None
    """``None`` if they cannot be read."""
    needed: bool
    reason: str
    """Why they may not be used; empty if they may."""
    hint: str


class SignedRow(NamedTuple):
    """An item and its signature."""

    report: ItemReport
    space: Space
    owner: str
    mark: Mark
    known: bool
    """True if it has a page."""


def overview(request: Request) -> Response:
    """The keys, the revocations, the approved projects, and how many pins do not match."""
    site = site_of(request)
    store = site.trust_store()
    entries = store.entries()
    projects, problem = approved_projects(site.context)
    return render(
        request,
        "trust.html",
        title="Trust",
        keys=[_key_row(entry, store) for entry in entries],
        problems=dict.fromkeys([*store.problems(), *[one.problem for one in entries]]),
        revoked=revocations(store),
        project=_project(site),
        projects=projects[:_MAX_PROJECTS],
        others=max(len(projects) - _MAX_PROJECTS, 0),
        projects_problem=problem,
        pins=checked_pins(site),
    )


def signatures(request: Request) -> Response:
    """Who signed which item; what is not trusted is first."""
    site = site_of(request)
    store = site.trust_store()
    key, standing = (request.query_params.get(name, "") for name in ("key", "standing"))
    rows = _signed(site, store)
    keys = {row.report.verdict.fingerprint: row.owner for row in rows if row.report.verdict}
    found = [row for row in rows if _is_wanted(row, key, standing)]
    shown, pager = page_of(request, found)
    return render(
        request,
        "trust_signatures.html",
        title="Signatures",
        rows=shown,
        total=len(found),
        untrusted=sum(not row.report.trusted for row in rows),
        everything=len(rows),
        pager=pager,
        key=key,
        keys={name: owner for name, owner in sorted(keys.items()) if name},
        standing=standing,
        standings={
            _NOT_TRUSTED: "not trusted",
            **{name: text for name, (text, _) in STANDINGS.items()},
        },
    )


def pins(request: Request) -> Response:
    """The lockfiles; of those that do not match, the difference between pinned and present."""
    site = site_of(request)
    found = checked_pins(site)
    shown, pager = page_of(request, found.checks)
    differing = [one for one in shown if not one.good]
    drifts = {one.item_id: None for one in differing if one.state == "mismatch"}
    return render(
        request,
        "trust_pins.html",
        title="Pins",
        found=found,
        checks=[one for one in shown if one.good],
        bad=differing,
        drifts={item_id: drifts_of(item_id, site) for item_id in list(drifts)[:_MAX_DRIFTS]},
        kinds=_PIN_KINDS,
        pager=pager,
    )


async def pin_events(request: Request) -> Response:
    """Checks the lockfiles that were never checked, and loads the page again."""
    return stream(request, _until_checked(site_of(request)))


async def _until_checked(site: Site) -> AsyncIterator[Event]:
    while True:
        found = await asyncio.to_thread(checked_pins, site)
        if len(found.checks) == found.total:
            yield Event("reload", "")
            return
        yield Event("set", json.dumps({"id": "checked", "text": f"{len(found.checks):,}"}))


def _key_row(entry: KeyEntry, store: TrustStore) -> KeyRow:
    state = key_state(entry, store)
    kind = "good" if state in _GOOD else "warn" if state == NOT_APPROVED else "bad"
    approved = store.approved_on(entry.fingerprint) if entry.space == "project" else ""
    return KeyRow(entry, owner_words(entry), Mark(state, kind), approved)


def _project(site: Site) -> ProjectState:
    approval = ProjectApproval(site.context)
    try:
        parts = unsigned_parts(site.context)
    except (RyeError, LiluxError) as error:
        return ProjectState(None, approval.is_needed, str(error), "")
    reason = approval.why_not(parts)
    return ProjectState(parts, approval.is_needed, reason, hint_for(reason) if reason else "")


def _signed(site: Site, store: TrustStore) -> list[SignedRow]:
    with site.catalogue() as catalogue:
        known = {entry.item_id for entry in catalogue.summaries()}
    rows = [
        _signed_row(report, space, store, known=report.item_id in known)
        for space in Resolver(site.context).spaces
        for report in verify_all(site.context, space, store)
    ]
    store.disk_cache.flush()
    return sorted(rows, key=lambda row: row.report.trusted)


def _signed_row(report: ItemReport, space: Space, store: TrustStore, *, known: bool) -> SignedRow:
    verdict = report.verdict
    if verdict is None:
        return SignedRow(report, space, "", Mark("cannot be read", "bad"), known)
    entry = store.find(verdict.fingerprint, store.place(report.path))
    owner = "" if entry is None else owner_words(entry)
    return SignedRow(report, space, owner, Mark(*STANDINGS[verdict.standing.value]), known)


def _is_wanted(row: SignedRow, key: str, standing: str) -> bool:
    verdict = row.report.verdict
    if key and (verdict is None or verdict.fingerprint != key):
        return False
    if standing == _NOT_TRUSTED:
        return not row.report.trusted
    return not standing or (verdict is not None and verdict.standing.value == standing)


ROUTES = (
    Page("/trust", overview, section="Trust"),
    Page("/trust/signatures", signatures, section="Trust"),
    Page("/trust/pins", pins, section="Trust"),
    Page("/trust/pins/events", pin_events, section="Trust"),
)
