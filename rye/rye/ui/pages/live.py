"""Calls under way: what runs, its output as it comes, and what waits for an answer."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from rye.errors import RunNotFoundError, RyeError
from rye.live.seen import SeenRun, WaitingQuestion
from rye.plaintext import escaped
from rye.ui.live_call import process_text
from rye.ui.page import Action, Event, Form, Page, redirect, render, stream
from rye.ui.paging import number_in
from rye.ui.site import Site, site_of
from rye.ui.values import duration, part

_EVERY_SECONDS = 0.2
_MAX_PIECE = 64 * 1024
_STREAMS = ("stdout", "stderr")
_PLACE = re.compile(r"([0-9]{1,18})\.([0-9]{1,18})")


def overview(request: Request) -> Response:
    """The calls under way, and those that ended while the page ran."""
    live = site_of(request).live
    return render(
        request,
        "live.html",
        title="Live",
        runs=live.under_way,
        over=live.over[:20],
        state=_state(site_of(request)),
    )


async def overview_events(request: Request) -> Response:
    """Loads the page again if a call begins, ends, asks or was answered; times change in place."""
    site = site_of(request)
    return stream(request, _overview(site, request.query_params.get("state", "")))


async def _overview(site: Site, known: str) -> AsyncIterator[Event]:
    while _state(site) == known:
        for run in site.live.under_way:
            yield _set(f"time-{run.run_id}", duration(run.seconds * 1000))
            yield _set(f"part-{run.run_id}", part(run.part))
        await asyncio.sleep(_EVERY_SECONDS)
    yield Event("reload", "")


def _state(site: Site) -> str:
    """Differs if the page has to be loaded again."""
    under_way = [f"{run.run_id}.{'.'.join(run.questions)}" for run in site.live.under_way]
    return "-".join([str(len(site.live.over)), *under_way])


async def run_events(request: Request) -> Response:
    """The output of a run from the characters on that the page has."""
    run = _run(request)
    at = _place(request) or {name: number_in(request, name) for name in _STREAMS}
    return stream(request, _output(run, at, request.query_params.get("asked", "")))


def _place(request: Request) -> dict[str, int] | None:
    """How much somebody has who had a stream before, as :attr:`Event.place` says it."""
    sent = request.headers.get("last-event-id") or request.query_params.get("after", "")
    found = _PLACE.fullmatch(sent)
    return None if found is None else dict(zip(_STREAMS, map(int, found.groups()), strict=True))


async def _output(run: SeenRun, at: dict[str, int], asked: str) -> AsyncIterator[Event]:
    while True:
        ended = run.ended is not None
        for name, position in at.items():
            output = run.stderr if name == "stderr" else run.stdout
            text = output.after(position)
            at[name] = output.now.end - len(text)
            for start in range(0, len(text), _MAX_PIECE):
                piece = text[start : start + _MAX_PIECE]
                at[name] += len(piece)
                place = ".".join(map(str, at.values()))
                yield Event("append", json.dumps({"id": f"live-{name}", "text": piece}), place)
        yield _set(f"time-{run.run_id}", duration(run.seconds * 1000))
        yield _set(f"part-{run.run_id}", part(run.part))
        yield _set(f"processes-{run.run_id}", process_text(run))
        if ended or asked_text(run) != asked:
            yield Event("reload", "")
            return
        await asyncio.sleep(_EVERY_SECONDS)


def asked_text(run: SeenRun) -> str:
    """The ids of the questions that wait."""
    return ".".join(run.questions)


async def cancel(request: Request, _form: Form) -> Response:
    """End a call."""
    run = _run(request)
    if run.told is not None and (fault := await run.told.cancel()):
        raise RyeError(f"run {run.run_id} was not cancelled: {fault}", hint="load the page again")
    return redirect(f"/runs/{run.run_id}")


async def answer(request: Request, form: Form) -> Response:
    """Answer a question of a call."""
    run = _run(request)
    question = run.questions.get(request.path_params["question_id"])
    if question is None or run.told is None:
        raise RyeError("the question has been answered", hint="load the page again")
    given: dict[str, Any] = {"action": "decline"}
    if form.get("action") == "accept":
        given = {"action": "accept", "content": content_of(question, form)}
    if fault := await run.told.answer(question.question_id, given):
        raise RyeError(f"the answer was not used: {fault}", hint="load the page again")
    return redirect(_back(form, run))


def content_of(question: WaitingQuestion, form: Form) -> Mapping[str, Any]:
    """The values of a form as the types that its schema asks for; the asker checks them."""
    content: dict[str, Any] = {}
    for name, field in dict(question.schema.get("properties", {})).items():
        text = form.get(f"field-{name}")
        kind = field.get("type")
        if kind == "boolean":
            content[name] = f"field-{name}" in form
        elif kind == "array":
            content[name] = [one.strip() for one in text.split(",") if one.strip()]
        elif text and kind in ("integer", "number"):
            try:
                content[name] = json.loads(text)
            except ValueError:
                content[name] = text
        elif text or name in question.schema.get("required", ()):
            content[name] = text
    return content


def _back(form: Form, run: SeenRun) -> str:
    return "/live" if form.get("from") == "live" else f"/runs/{run.run_id}"


def _run(request: Request) -> SeenRun:
    run_id = request.path_params["run_id"]
    run = site_of(request).live.get(run_id)
    if run is None:
        raise RunNotFoundError(f"no run {run_id!r} is under way", hint="see /history")
    return run


def _set(element: str, text: str) -> Event:
    return Event("set", json.dumps({"id": element, "text": escaped(text)}))


ROUTES = (
    Page("/live", overview, section="Live"),
    Page("/live/events", overview_events, section="Live"),
    Page("/live/{run_id}/events", run_events, section="Live"),
    Action("/live/{run_id}/cancel", cancel, section="Live"),
    Action("/live/{run_id}/answer/{question_id}", answer, section="Live"),
)
