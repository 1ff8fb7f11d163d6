"""What ran: the list of runs, and the page of one run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from rye.catalogue.parameter_types import SchemaParameters
from rye.catalogue.text_values import read_texts
from rye.errors import HistoryError, RunNotFoundError, RyeError
from rye.history.moments import milliseconds_since
from rye.history.query import Wanted, callers, run_page
from rye.history.receipts import known_receipt, receipt_of, user_signer
from rye.history.replay import Replay, recorded_run
from rye.history.store import History
from rye.history.verification import Keys, verify_receipt
from rye.recording.digests import SECRET
from rye.recording.record import CANCELLED, ERROR, FAILED, OK, REFUSED, TIMEOUT, UI
from rye.trust.overview import owner_words
from rye.ui.live_call import live_call
from rye.ui.page import Action, Form, Page, redirect, render
from rye.ui.paging import PAGE_LENGTH
from rye.ui.run_facts import facts_of, output_part, process_tree, steps_of
from rye.ui.site import Site, site_of

_OUTCOMES = {
    OK: "ok",
    FAILED: "failed",
    TIMEOUT: "timed out",
    REFUSED: "refused",
    CANCELLED: "cancelled",
    ERROR: "error",
}
_NOT_OK = "not-ok"
_AGAIN = "again."
"""What the names of the fields for secret parameters begin with."""
_FIELDS = ("tool", "by", "outcome", "since", "until")


def run_list(request: Request) -> Response:
    """The runs that the filters ask for, the newest first."""
    query = {name: request.query_params.get(name, "").strip() for name in _FIELDS}
    before, after = (request.query_params.get(name, "") for name in ("before", "after"))
    fault = ""
    try:
        wanted = _wanted(query)
    except HistoryError as error:
        wanted, fault = Wanted(), str(error)
    site = site_of(request)
    with site.history() as history:
        found = run_page(history.connection, wanted, PAGE_LENGTH, before=before, after=after)
        names = callers(history.connection)
        notes = history.notes
    rows = found.rows
    given = {name: text for name, text in query.items() if text}
    return render(
        request,
        "history.html",
        title="History",
        query=query,
        filtered=bool(given),
        fault=fault,
        outcomes={_NOT_OK: "anything but ok", **_OUTCOMES},
        callers=names,
        runs=rows,
        pages=_items_with_pages(site),
        newer=_address(given, after=rows[0]["id"]) if rows and found.has_newer else "",
        older=_address(given, before=rows[-1]["id"]) if rows and found.has_older else "",
        notes=notes,
    )


def _items_with_pages(site: Site) -> dict[str, str]:
    """The ids of the items that can be looked at here, and their spaces."""
    with site.catalogue() as catalogue:
        return {entry.item_id: entry.space for entry in catalogue.summaries()}


def _has_page(record: Mapping[str, Any], site: Site) -> bool:
    """True if the tool of a run can be looked at: it may be one of another project, or gone."""
    space = _items_with_pages(site).get(record["item"])
    return space is not None and (
        space != "project" or record["project"] == str(site.context.project_path)
    )


def _wanted(query: dict[str, str]) -> Wanted:
    """Return what the form asks for; a tool without ``*`` is found by any part of its id."""
    tool, outcome = query["tool"], query["outcome"]
    since, until = (
        milliseconds_since(query[name]) if query[name] else None for name in ("since", "until")
    )
    return Wanted(
        tool=tool if not tool or any(one in tool for one in "*?[") else f"*{tool}*",
        failed=outcome == _NOT_OK,
        since=since,
        by=query["by"],
        outcome=outcome if outcome in _OUTCOMES else "",
        until=until,
    )


def _address(given: dict[str, str], **place: str) -> str:
    return f"/history?{urlencode({**given, **place})}"


def run_details(request: Request) -> Response:
    """Everything that is known about one run; of one under way, its output as it comes."""
    seen = site_of(request).live.get(request.path_params["run_id"])
    if seen is not None and seen.ended is None:
        return live_call(request, seen, under_way=True)
    try:
        return _run(request)
    except RunNotFoundError:
        # A call of this page whose record is not kept.
        if seen is None:
            raise
        return live_call(request, seen, under_way=False)


def make_receipt(request: Request, form: Form) -> Response:  # noqa: ARG001 - only its token
    """Sign a receipt of the run with the user's key."""
    site = site_of(request)
    with site.history() as history:
        run_id = history.find(request.path_params["run_id"])
        receipt_of(history, run_id, user_signer(site.context))
    return redirect(f"/runs/{run_id}#receipt")


def replay(request: Request, form: Form) -> Response:
    """Compare the run with what would run now, and run it again if that was asked for."""
    site = site_of(request)
    with site.history() as history:
        recorded = recorded_run(history, history.find(request.path_params["run_id"]))
    report: dict[str, Any] = {"differences": [], "ran": "", "refused": "", "new_id": ""}
    try:
        with Replay(recorded, site.context, UI) as again:
            again.give(_parameters(form, again))
            difference = again.before()
            found = [difference]
            if "run" in form and difference is not None and "anyway" not in form:
                report["refused"] = (
                    "It has not run, because something differs already; allow that to run it"
                )
            elif "run" in form:
                if again.may_repeat or "yes" in form:
                    found.append(again.run())
                else:
                    report["refused"] = (
                        f"{recorded.item} may change something again; allow that to run it"
                    )
            report["differences"] = [one.text for one in found if one is not None]
            if again.result is not None:
                report["ran"] = "ok" if again.result.success else again.result.error or "failed"
                report["new_id"] = again.result.metadata.get("run_id") or ""
    except RyeError as error:
        report["refused"] = str(error)
    return _run(request, report)


def _parameters(form: Form, again: Replay) -> Mapping[str, Any] | None:
    """Return the parameters that were given; ``None`` for those that were kept."""
    text = form.get("parameters").strip()
    if text:
        try:
            values = json.loads(text)
        except (ValueError, RecursionError):
            values = None
        if isinstance(values, dict):
            return values
        raise HistoryError("the parameters are not a JSON object", hint='write {"name": "value"}')
    kept = again.recorded.values or {}
    secrets = [name for name, one in kept.items() if one == SECRET]
    if not secrets or not all(form.get(_AGAIN + name) for name in secrets):
        return None
    schema = SchemaParameters(again.executor.declared_schema(again.recorded.item))
    try:
        given = {name: read_texts(name, [form.get(_AGAIN + name)], schema) for name in secrets}
    except ValueError as error:
        raise HistoryError(f"a secret parameter: {error}", hint="give it again") from None
    return {**kept, **given}


def _run(request: Request, report: dict[str, Any] | None = None) -> Response:
    site = site_of(request)
    with site.history() as history:
        run_id = history.find(request.path_params["run_id"])
        record = history.record(run_id)
        part = output_part(
            history.outputs(run_id),
            request.query_params.get("stream", ""),
            request.query_params.get("part", "1"),
        )
        receipt = _receipt(history, run_id, site)
    values = record["parameters"].get("values")
    return render(
        request,
        "run.html",
        title=f"Run of {record['item']}",
        run=record,
        facts=facts_of(record, _owners(site)),
        values=values,
        secrets=[name for name, one in (values or {}).items() if one == SECRET],
        prefix=_AGAIN,
        has_page=_has_page(record, site),
        steps=steps_of(record["ms"]),
        output=record.get("output") or {},
        part=part,
        denials=record.get("denials") or (),
        autopsy=process_tree((record.get("autopsy") or {}).get("processes", ())),
        receipt=receipt,
        report=report,
        seen=site.live.get(run_id),
    )


def _owners(site: Site) -> Callable[[str], str]:
    store = site.trust_store()

    def owner_of(fingerprint: str) -> str:
        entry = store.find(fingerprint)
        return "" if entry is None else owner_words(entry)

    return owner_of


def _receipt(history: History, run_id: str, site: Site) -> dict[str, Any] | None:
    """The receipt of a run and what its verification says; ``None`` if none was made."""
    line = known_receipt(history, run_id)
    if line is None:
        return None
    try:
        done = verify_receipt(line, Keys(site.context), site.context)
    except RyeError as error:
        return {"line": line, "fault": str(error)}
    return {
        "line": line,
        "fault": "",
        "key": done.receipt.fingerprint,
        "owner": done.owner,
        "remark": done.remark,
        "position": done.receipt.predicate["log"]["position"],
    }


ROUTES = (
    Page("/history", run_list, section="History"),
    Page("/runs/{run_id}", run_details, section="History"),
    Action("/runs/{run_id}/receipt", make_receipt, section="History"),
    Action("/runs/{run_id}/replay", replay, section="History"),
)
