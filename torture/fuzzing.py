"""Generated bad input: properties that must be true for any input, and how to run them.

A :class:`Fuzz` generates inputs and checks one property. The test suite tries each a few times,
``python -m torture`` many times, and atheris can search for inputs that reach new code
(:mod:`torture.fuzzing_guided`).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

Check = Callable[[Any], None]

# Small, because a batch cannot be interrupted; each batch has another seed.
BATCH = 200


@dataclass(frozen=True, kw_only=True)
class Fuzz:
    """A property that must be true for any input."""

    name: str
    inputs: SearchStrategy[Any]
    opened: Callable[[], AbstractContextManager[Check]]
    """Sets up the check, which raises an exception if the property is false for an input."""
    few: int = 50
    """How many inputs the tests try; some inputs need a process or two."""
    many: int = 20_000
    """How many inputs the long version tries."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """The result for one property."""

    name: str
    tried: int
    failures: tuple[str, ...]
    """A sentence for the input that failed."""


def plain(check: Check) -> Callable[[], AbstractContextManager[Check]]:
    """Wrap a check that needs no setup."""
    return lambda: nullcontext(check)


def everything() -> tuple[Fuzz, ...]:
    """Return all properties."""
    from torture import fuzzing_calls, fuzzing_helper, fuzzing_items, fuzzing_kernel

    modules = (fuzzing_kernel, fuzzing_helper, fuzzing_items, fuzzing_calls)
    return tuple(fuzz for module in modules for fuzz in module.scenarios())


def try_out(fuzz: Fuzz) -> int:
    """Try a few inputs, the same ones every time, and return how many were tried.

    Raises what the check raises for the smallest input that fails.
    """
    with fuzz.opened() as check:
        tried, failure = _batch(fuzz, check, fuzz.few, 0)
    if failure is not None:
        raise failure
    return tried


def run(seconds: float, number: int) -> list[Row]:
    """Try all properties for this long in total; each for the same time, and at least once."""
    fuzzes = everything()
    return [_run_for(fuzz, seconds / len(fuzzes), number) for fuzz in fuzzes]


def _run_for(fuzz: Fuzz, seconds: float, number: int) -> Row:
    end = time.monotonic() + seconds
    return run_one(fuzz, number, lambda _: time.monotonic() > end)


def run_one(fuzz: Fuzz, number: int, enough: Callable[[int], bool], batch_size: int = BATCH) -> Row:
    """Try batches until ``enough`` returns True for the number of inputs tried."""
    tried = 0
    with fuzz.opened() as check:
        for batch in itertools.count(number):
            more, failure = _batch(fuzz, check, batch_size, batch)
            tried += more
            if failure is not None:
                sentence = f"seed {batch}: {type(failure).__name__}: {failure}"
                return Row(name=fuzz.name, tried=tried, failures=(sentence[:500],))
            if enough(tried):
                break
    return Row(name=fuzz.name, tried=tried, failures=())


def _batch(fuzz: Fuzz, check: Check, examples: int, number: int) -> tuple[int, Exception | None]:
    tried = 0

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(fuzz.inputs)
    def attempt(value: Any) -> None:
        nonlocal tried
        tried += 1
        check(value)

    try:
        attempt()
    except Exception as failure:  # noqa: BLE001 - any exception is a failure
        return tried, failure
    return tried, None
