"""Run the examples of a tool, and compare each result with what its author expects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rye.catalogue.entry import CatalogueEntry
from rye.executor.run.blocking import BlockingExecutor
from rye.executor.run.result import ExecutionResult

_MAX_SHOWN = 120


class Tried(NamedTuple):
    """One example that was run."""

    item_id: str
    number: int
    """The position in the file, from 1."""
    params: Mapping[str, Any]
    problem: str
    """Why it failed: an error, or where the result differs; empty if it passed."""
    duration_ms: float


def try_examples(entry: CatalogueEntry, executor: BlockingExecutor) -> Iterator[Tried]:
    """Run every example as ``rye run`` does, and yield the result of each."""
    for number, example in enumerate(entry.examples, 1):
        params = example.get("params", {})
        result = executor.execute(entry.item_id, params)
        problem = _problem(result, example)
        yield Tried(entry.item_id, number, params, problem, result.duration_ms)


def difference(expected: Any, found: Any, place: str = "result") -> str:
    """Where ``found`` differs from what is expected; empty if it matches.

    An object matches if it has the expected members; everything else must be equal.
    """
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        for key, value in expected.items():
            if key not in found:
                return f"{place} has no '{key}'"
            inner = difference(value, found[key], f"{place}.{key}")
            if inner:
                return inner
        return ""
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        parts = zip(expected, found, strict=True)
        all_of_them = [difference(*pair, f"{place}[{at}]") for at, pair in enumerate(parts)]
        return next(filter(None, all_of_them), "")
    # In Python 1 equals True.
    same = expected == found and (type(expected) is bool) == (type(found) is bool)
    return "" if same else f"{place}: expected {_shown(expected)}, got {_shown(found)}"


def _problem(result: ExecutionResult, example: Mapping[str, Any]) -> str:
    if not result.success:
        return result.error or "the tool failed"
    if "expect" not in example:
        return ""
    expected = example["expect"]
    found = result.data
    if isinstance(expected, str) and _is_text(found):
        # Nobody writes the end of the last line into an example.
        return difference(expected.removesuffix("\n"), found["stdout"].removesuffix("\n"))
    return difference(expected, found)


def _is_text(data: Any) -> bool:
    return isinstance(data, Mapping) and {"stdout", "return_code"} <= data.keys()


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


def failed(tried: Sequence[Tried]) -> int:
    """How many of the examples failed."""
    return sum(bool(one.problem) for one in tried)
