"""The benchmarks, in the order of the page. To add one, write its module and name it here."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from bench.table import Report

BENCHMARKS = (
    "calls",
    "warm",
    "closures",
    "mcp_server",
    "confinement",
    "confined_hosts",
    "growth",
    "cli",
    "execute",
    "catalogue",
    "resolve",
    "batch",
    "batch_ray",
    "history",
    "scale",
    "ui",
    "primitive",
    "proc",
    "http",
    "lockfiles",
    "schemas",
)


def title_of(name: str) -> str:
    """Return the first line of the benchmark's docstring."""
    return (importlib.import_module(f"bench.{name}").__doc__ or "").partition("\n")[0]


def benchmark(name: str) -> Callable[[], Report]:
    """Return the function that measures."""
    measure: Callable[[], Report] = importlib.import_module(f"bench.{name}").measure
    return measure
