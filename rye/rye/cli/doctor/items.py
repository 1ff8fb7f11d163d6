"""What stands in the way of finding and reading items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rye.cli.doctor.finding import Finding, ok, problem
from rye.context import Context
from rye.spaces.resolver import Resolver

if TYPE_CHECKING:
    from rye.catalogue.entry import CatalogueEntry


def item_findings(context: Context) -> Iterator[Finding]:
    """Bundles, ids that lead nowhere, files that cannot be read, names that collide over MCP."""
    from rye.catalogue.catalogue import Catalogue

    resolver = Resolver(context)
    found = [
        problem("bundle", str(fault), "uninstall the package, or get one that works")
        for fault in resolver.bundle_faults
    ]
    found += [problem("item id", str(error)) for error in resolver.conflicts()]
    entries = Catalogue(context).entries()
    found += [problem(f"item {entry.item_id}", entry.fault) for entry in entries if entry.fault]
    found += _collisions(entries)
    yield from found
    if not found:
        yield ok("items", f"{len(entries)} can be read")


def _collisions(entries: Sequence[CatalogueEntry]) -> list[Finding]:
    from rye.catalogue.definitions import collisions, mcp_name

    return [
        problem(
            "MCP name",
            f"{' and '.join(ids)} are all {mcp_name(ids[0])!r} for MCP clients",
            "rename all but one of them",
        )
        for ids in collisions(entries)
    ]
