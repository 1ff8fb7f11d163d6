"""The list of tools, and the page of each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from rye.catalogue.entry import CatalogueEntry, Summary
from rye.catalogue.example import example_parameters
from rye.errors import HistoryError, ParameterError
from rye.executor.inspection import InspectedElement, Inspection, inspect_chain, signed_by, space_of
from rye.executor.run.prepare import Preparation
from rye.history.of_tools import ToolRun, newest_runs
from rye.permissions.words import explained
from rye.ui.page import Action, Form, Page, redirect, render
from rye.ui.paging import number_in, page_of
from rye.ui.site import Site, site_of
from rye.ui.sparkline import sparkline
from rye.ui.tool_files import ToolFile, ToolFiles
from rye.ui.tool_form import (
    OTHERS,
    PREFIX,
    Sent,
    faults_by_field,
    fields_of,
    read_form,
    takes_others,
    texts_of,
)
from rye.ui.tool_rows import Mark, drift_of, lock_of, project_of, tool_rows, trust_of

_MAX_FOUND = 500
_RUNS = 60
_SPACES = ("project", "user", "system")
# What each annotation means if it is true, and if it is false.
_EFFECTS = {
    "read_only": ("changes nothing", "makes changes"),
    "destructive": ("may destroy something", ""),
    "idempotent": ("safe to repeat", ""),
    "open_world": ("reaches external systems", "works locally only"),
}
_OF_THE_TOOL = ("tool", "library", "anchor", "data", "marker", "project")
_OF_THE_RUNTIME = ("runtime_library", "runtime_data")


class Node(NamedTuple):
    """An element of the chain as it is drawn."""

    part: str
    """``Tool``, ``Runtime`` or ``Primitive``."""
    element: InspectedElement
    space: str
    trust: Mark
    signed: str
    drift: str
    files: tuple[ToolFile, ...]


def tool_list(request: Request) -> Response:
    """Every tool, or those that a search finds."""
    site = site_of(request)
    words = request.query_params.get("q", "").strip()
    space = request.query_params.get("space", "")
    with site.catalogue() as catalogue:
        found: Sequence[CatalogueEntry | Summary]
        if words:
            found = [hit.entry for hit in catalogue.search(words, limit=_MAX_FOUND)]
        else:
            found = [one for one in catalogue.summaries() if one.is_tool]
        problems = catalogue.problems()
    if space in _SPACES:
        found = [one for one in found if one.space == space]
    if not words:
        # The user's own tools are what they look for; the shipped ones are the same everywhere.
        found = sorted(found, key=lambda one: (_SPACES.index(one.space), one.item_id))
    shown, pager = page_of(request, found)
    return render(
        request,
        "tools.html",
        title="Tools",
        words=words,
        space=space,
        spaces=_SPACES,
        tools=tool_rows(site, shown),
        total=len(found),
        pager=pager,
        problems=problems,
    )


def tool_page(request: Request) -> Response:
    """One tool."""
    entry = _entry(request)
    return _show(request, entry, _filled(request, entry))


def run_tool(request: Request, form: Form) -> Response:
    """Start a tool with the values of its form; the page of the run shows what it prints."""
    site, entry = site_of(request), _entry(request)
    sent = read_form(form, entry.schema)
    if not sent.faults:
        with site.preparer() as preparer:
            verified = Preparation(preparer, entry.item_id).verify()
            try:
                preparer.parameters.admit(verified.chain[0], sent.parameters)
            except ParameterError as error:
                names = [one.name for one in fields_of(entry.schema)]
                sent.faults.update(faults_by_field(error.issues, names))
    if sent.faults:
        return _show(request, entry, sent, status=400)
    return redirect(f"/runs/{site.calls.start(entry.item_id, sent.parameters)}")


def _entry(request: Request) -> CatalogueEntry:
    with site_of(request).catalogue() as catalogue:
        return catalogue.entry(request.path_params["item_id"])


def _filled(request: Request, entry: CatalogueEntry) -> Sent:
    """The form of a page that was just opened, perhaps with the values of an example."""
    number = number_in(request, "example")
    examples = _examples(entry)
    texts: dict[str, str] = {}
    if 1 <= number <= len(examples):
        texts = texts_of(examples[number - 1][0], entry.schema)
    return Sent({}, texts, {})


def _show(request: Request, entry: CatalogueEntry, sent: Sent, *, status: int = 200) -> Response:
    site = site_of(request)
    with site.preparer() as preparer:
        seen = inspect_chain(entry.item_id, site.context, preparer=preparer, past_lock=True)
    files = ToolFiles(seen, site.context)
    runs = _runs(site, entry)
    permissions = seen.permissions if seen.claimed is None else seen.claimed.permissions
    fault = entry.fault or ("" if seen.error is None else str(seen.error))
    return render(
        request,
        "tool.html",
        status=status,
        title=entry.item_id,
        tool=entry,
        seen=seen,
        fault=fault,
        may_start=site.may_run and not fault and entry.is_tool,
        space=space_of(entry),
        place=_place(entry.path, site),
        signed=signed_by(seen.elements[0]),
        trust=trust_of(seen.elements[0]),
        lock=lock_of(seen),
        permissions=[] if permissions is None else list(explained(permissions)),
        effects=_effects(entry),
        chain=_nodes(seen, files),
        fields=fields_of(entry.schema, sent.texts, sent.faults),
        others=takes_others(entry.schema),
        others_text=sent.texts.get(OTHERS, ""),
        others_fault="; ".join(sent.faults.get(OTHERS, ())),
        form_faults=sent.faults.get("", ()),
        sent=sent,
        prefix=PREFIX,
        files=files,
        file=files.text(_wanted_file(request, files)),
        examples=[
            (_json(one), _json(expected) if has else "") for one, expected, has in _examples(entry)
        ],
        runs=runs,
        drawing=sparkline(runs),
    )


def _wanted_file(request: Request, files: ToolFiles) -> str:
    """The file that the query names, else the first one, which is the tool."""
    wanted = request.query_params.get("file", "")
    keys = [one.key for one in files.files]
    return wanted if wanted in keys else next(iter(keys), "")


def _runs(site: Site, entry: CatalogueEntry) -> list[ToolRun]:
    try:
        with site.history() as history:
            project = project_of(site, entry.space)
            return newest_runs(history.connection, entry.item_id, _RUNS, project=project)
    except HistoryError:
        return []


def _examples(entry: CatalogueEntry) -> list[tuple[Mapping[str, Any], Any, bool]]:
    """The parameters of each example, what is expected, and whether anything is."""
    if entry.examples:
        return [
            (one.get("params", {}), one.get("expect"), "expect" in one) for one in entry.examples
        ]
    made = example_parameters(entry.schema) if entry.schema else None
    return [(made, None, False)] if made else []


def _place(path: str, site: Site) -> str:
    """Return a path as people write it: from the project on, or from their home on."""
    for prefix, folder in (("", site.context.project_path), ("~/", site.context.user_space)):
        if Path(path).is_relative_to(folder):
            return f"{prefix}{Path(path).relative_to(folder)}"
    return path


def _effects(entry: CatalogueEntry) -> list[str]:
    said = [
        texts[not entry.annotations[name]]
        for name, texts in _EFFECTS.items()
        if isinstance(entry.annotations.get(name), bool)
    ]
    return [one for one in said if one]


def _nodes(seen: Inspection, files: ToolFiles) -> list[Node]:
    last = len(seen.elements) - 1
    own = [str(one.path) for one in seen.elements]
    nodes = []
    for number, element in enumerate(seen.elements):
        part = "Tool" if number == 0 else "Primitive" if element.executor_id is None else "Runtime"
        roles = _OF_THE_TOOL if number == 0 else _OF_THE_RUNTIME if number == 1 and last > 1 else ()
        nodes.append(
            Node(
                part=part,
                element=element,
                space=space_of(element),
                trust=trust_of(element),
                signed=signed_by(element),
                drift=drift_of(element),
                files=tuple(
                    one
                    for one in files.files
                    if one.key.partition(":")[0] in roles and one.path not in own
                ),
            )
        )
    return nodes


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


ROUTES = (
    Page("/", tool_list, section="Tools"),
    Page("/tools/{item_id:path}", tool_page, section="Tools"),
    Action("/tools/{item_id:path}", run_tool, section="Tools"),
)
