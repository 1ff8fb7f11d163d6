"""Many calls of one tool: how far each batch has come, how fast, and what failed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rye.batches.folder import BatchFolder
from rye.batches.known import batches_of, known_batches, path_of
from rye.errors import BatchError
from rye.ui.batch_charts import duration_chart, rate_chart
from rye.ui.batch_rows import BatchRow, batch_row, row_of
from rye.ui.page import Event, Page, render, stream
from rye.ui.paging import PAGE_LENGTH, page_of
from rye.ui.site import Site, site_of
from rye.ui.values import duration

_LIST_SECONDS = 0.2
_PAGE_SECONDS = 0.2
_EVERY_SECONDS = 0.5
_RELOAD_SHARE = 0.05
_SHOWN_FAILURES = 50
_OPTIONS = {
    "on": "Runs on",
    "jobs": "Calls at once",
    "timeout": "Time limit",
    "retry": "Retries",
    "max_failures": "Failures until it stops",
    "out": "Copy of the results",
    "receipts": "Receipts",
    "sync": "Waits for the disk",
}


def batch_list(request: Request) -> Response:
    """The batches of this user, the newest first."""
    site = site_of(request)
    names, pager = page_of(request, known_batches(site.context))
    found: dict[Path, BatchRow] = {}
    for name in names:
        path = path_of(name, site.context)
        if path is None or path in found:
            continue
        with suppress(BatchError):  # it is being created, or somebody removes it
            manifest = BatchFolder(path).manifest()
            seconds = _LIST_SECONDS / PAGE_LENGTH
            found[path] = batch_row(name, path, manifest, site.batches, seconds)
    return render(
        request,
        "batches.html",
        title="Batches",
        rows=list(found.values()),
        folder=batches_of(site.context),
        pager=pager,
    )


def batch_details(request: Request) -> Response:
    """One batch: progress, rate over time, failures in groups, the slowest calls."""
    site = site_of(request)
    name, path, manifest = _batch(request)
    running = BatchFolder(path).is_running()
    with site.batches.look(path, int(manifest["calls"]), _PAGE_SECONDS) as look:
        reading = look.reading
        row = row_of(name, path, manifest, look, running=running)
        failures = reading.failures
        values: dict[str, Any] = {
            "outcomes": reading.outcomes.most_common(),
            "failures": failures[:_SHOWN_FAILURES],
            "other_failures": reading.others + sum(one.count for one in failures[_SHOWN_FAILURES:]),
            "slowest": reading.slowest,
            "rate": rate_chart(reading.timeline),
            "durations": duration_chart(reading.durations),
            "untimed": reading.untimed,
        }
        # While the lock is held: the groups may grow.
        return render(
            request,
            "batch.html",
            title=f"Batch of {row.tool}",
            row=row,
            state=_seen(row),
            facts=_facts(manifest, row),
            known=_is_known(site, row.tool),
            **values,
        )


async def batch_events(request: Request) -> Response:
    """Sets the counts, and loads the page again if the drawings would look different."""
    name, path, manifest = _batch(request)
    known = request.query_params.get("state", "")
    events = _events(site_of(request), name, path, manifest, known)
    return stream(request, events)


async def _events(
    site: Site, name: str, path: Path, manifest: dict[str, Any], known: str
) -> AsyncIterator[Event]:
    while True:
        row = await asyncio.to_thread(batch_row, name, path, manifest, site.batches, _PAGE_SECONDS)
        if _seen(row) != known:
            yield Event("reload", "")
            return
        for element, text in (
            ("progress-text", row.progress),
            ("progress-bar", str(row.done)),
            ("read", f"{row.read}%"),
            ("speed", row.speed),
            ("failed", f"{row.failed:,}"),
        ):
            yield Event("set", json.dumps({"id": element, "text": text}))
        await asyncio.sleep(_EVERY_SECONDS)


def _seen(row: BatchRow) -> str:
    """Differs if the page has to be loaded again."""
    if row.read < 100:
        return "reading"
    step = max(int(row.total * _RELOAD_SHARE), 1)
    return f"{row.state.text}.{row.done // step}"


def _batch(request: Request) -> tuple[str, Path, dict[str, Any]]:
    name = request.path_params["name"]
    path = path_of(name, site_of(request).context)
    if path is None:
        raise HTTPException(404)
    return name, path, BatchFolder(path).manifest()


def _facts(manifest: dict[str, Any], row: BatchRow) -> list[tuple[str, str]]:
    options = manifest.get("options") or {}
    given = [(word, options.get(name)) for name, word in _OPTIONS.items()]
    bad = int(manifest.get("bad") or 0)
    return [
        ("Folder", str(row.path)),
        ("Version", str(manifest.get("tool_version") or "")),
        ("Closure", str(manifest.get("closure") or "")),
        *[(word, _option(word, value)) for word, value in given if value],
        *([("Lines left out", f"{bad:,}")] if bad else []),
    ]


def _option(word: str, value: object) -> str:
    if word == _OPTIONS["timeout"] and isinstance(value, int | float):
        return duration(value * 1000)
    return "yes" if value is True else str(value)


def _is_known(site: Site, tool: str) -> bool:
    """True if the tool has a page here; a batch may be one of another project."""
    with site.catalogue() as catalogue:
        return any(entry.item_id == tool for entry in catalogue.summaries())


ROUTES = (
    Page("/batches", batch_list, section="Batches"),
    Page("/batches/{name}", batch_details, section="Batches"),
    Page("/batches/{name}/events", batch_events, section="Batches"),
)
