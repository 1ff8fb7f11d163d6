"""The states of tools in a list: who signed them, what they may do, what they did last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rye.catalogue.entry import CatalogueEntry, Summary
from rye.errors import HistoryError, RyeError
from rye.executor.inspection import InspectedElement, Inspection, inspect_chain, space_of
from rye.history.of_tools import ToolRun, newest_runs
from rye.items.permissions import ANY_HOST, TMP
from rye.permissions.words import UNCONFINED
from rye.ui.site import Site

STANDINGS = {
    "trusted": ("trusted", "good"),
    "unsigned": ("not signed", "bad"),
    "changed": ("changed after signing", "bad"),
    "forged": ("forged", "bad"),
    "untrusted": ("key not trusted", "warn"),
    "revoked": ("key revoked", "bad"),
}


class Mark(NamedTuple):
    """A word, and the kind of its badge."""

    text: str
    kind: str = ""


class ToolRow(NamedTuple):
    """One tool of the list."""

    item_id: str
    description: str
    space: str
    signer: str
    trust: Mark
    lock: Mark
    may: tuple[str, ...]
    """What it may do, in a few words each; empty if that is not known."""
    verified: bool
    """False if its files are refused, so that it only says so."""
    start: str
    """``warm``, ``cold``, or empty if its runtime cannot prepare it."""
    last: ToolRun | None
    fault: str


def tool_rows(site: Site, tools: Sequence[CatalogueEntry | Summary]) -> list[ToolRow]:
    """Return the rows of the tools that are shown; each is verified as for a call."""
    last = _last_runs(site, tools)
    with site.preparer() as preparer:
        found: list[ToolRow] = []
        for tool in tools:
            try:
                seen = inspect_chain(tool.item_id, site.context, preparer=preparer, past_lock=True)
            except RyeError as error:
                found.append(_broken(tool, str(error), last.get(tool.item_id)))
            else:
                found.append(_row(tool, seen, last.get(tool.item_id)))
        preparer.flush()
    return found


def trust_of(element: InspectedElement) -> Mark:
    """Say in a word or two whether the signature is valid and trusted."""
    if not element.standing:
        return Mark("built in") if element.path is None else Mark("cannot be read", "bad")
    return Mark(*STANDINGS[element.standing])


def lock_of(seen: Inspection) -> Mark:
    """Say whether the tool is pinned, and whether everything is as it was pinned."""
    tool = seen.elements[0]
    if tool.locked is None:
        return Mark("")
    if seen.lockfile is None:
        return Mark("not pinned")
    drifted = any(drift_of(one) for one in seen.elements) or _other_files(seen)
    return Mark("changed since pinned", "bad") if drifted else Mark("pinned", "good")


def drift_of(element: InspectedElement) -> str:
    """Say how an element differs from its pin; empty if it does not."""
    if element.locked is None or element.locked or not element.pinned:
        return ""
    same = element.pinned == element.integrity
    return "pinned in another space" if same else "content differs from the pinned one"


def permissions_in_words(seen: Inspection) -> tuple[str, ...]:
    """What a tool may or says to do, as a few short phrases; empty if it cannot be known."""
    if not seen.files and seen.claimed is None:
        return ()
    may = seen.permissions if seen.claimed is None else seen.claimed.permissions
    if may is None:
        return (UNCONFINED,)
    writes = [one for one in may.write if one != TMP]
    phrases = []
    if may.read or writes:
        phrases.append("reads files")
    if writes:
        phrases.append("writes files")
    if may.net:
        phrases.append("network" if ANY_HOST in may.net else "some hosts")
    if may.run:
        phrases.append("runs programs")
    return tuple(phrases) or ("nothing beyond itself",)


def _other_files(seen: Inspection) -> bool:
    """True if the supporting files are not the pinned ones."""
    return bool(seen.files) and dict(seen.pinned) != dict(seen.dependencies)


def _row(tool: CatalogueEntry | Summary, seen: Inspection, last: ToolRun | None) -> ToolRow:
    first = seen.elements[0]
    return ToolRow(
        item_id=tool.item_id,
        description=tool.description,
        space=space_of(tool),
        signer=first.owner or first.signer,
        trust=trust_of(first),
        lock=lock_of(seen),
        may=permissions_in_words(seen),
        verified=bool(seen.files),
        start="warm" if seen.warm else "cold" if seen.files else "",
        last=last,
        fault=tool.fault or ("" if seen.error is None else str(seen.error)),
    )


def _broken(tool: CatalogueEntry | Summary, fault: str, last: ToolRun | None) -> ToolRow:
    unknown = Mark("cannot be read", "bad")
    return ToolRow(
        item_id=tool.item_id,
        description=tool.description,
        space=space_of(tool),
        signer="",
        trust=unknown,
        lock=Mark(""),
        may=(),
        verified=False,
        start="",
        last=last,
        fault=fault,
    )


def _last_runs(site: Site, tools: Sequence[CatalogueEntry | Summary]) -> dict[str, ToolRun]:
    """The newest run of each tool. A list is useful without a history that cannot be read."""
    found: dict[str, ToolRun] = {}
    try:
        with site.history() as history:
            for tool in tools:
                runs = newest_runs(
                    history.connection, tool.item_id, 1, project=project_of(site, tool.space)
                )
                if runs:
                    found[tool.item_id] = runs[0]
    except HistoryError:
        return {}
    return found


def project_of(site: Site, space: str) -> str | None:
    """The project whose runs are those of a tool in this space; ``None`` for all projects."""
    return str(site.context.project_path) if space == "project" else None
