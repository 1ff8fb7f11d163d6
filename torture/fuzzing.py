"""Bad input, tried many times over: what holds for whatever comes in, and a run that counts.

A :class:`Fuzz` says what is fed to what, and checks what must hold. The tests of the suite try each
a few times, ``python -m torture`` as often as there is time, and atheris can look for inputs that
reach new code (:mod:`torture.fuzzing_guided`).
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

# A batch is not interrupted, so it is small; a new one begins with another seed.
BATCH = 200


@dataclass(frozen=True, kw_only=True)
class Fuzz:
    """One promise that holds for any input."""

    name: str
    inputs: SearchStrategy[Any]
    opened: Callable[[], AbstractContextManager[Check]]
    """Gives the check, which raises whatever a broken promise leads to, and what it needs."""
    few: int = 50
    """How often the tests try it; each input of some takes a process or two."""
    many: int = 20_000
    """How often the long version does."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """What came of one promise."""

    name: str
    tried: int
    lost: tuple[str, ...]
    """A sentence for each input that broke it."""


def plain(check: Check) -> Callable[[], AbstractContextManager[Check]]:
    """For a check that needs nothing."""
    return lambda: nullcontext(check)


def everything() -> tuple[Fuzz, ...]:
    """Every promise there is."""
    from torture import fuzzing_calls, fuzzing_helper, fuzzing_items, fuzzing_kernel

    modules = (fuzzing_kernel, fuzzing_helper, fuzzing_items, fuzzing_calls)
    return tuple(fuzz for module in modules for fuzz in module.scenarios())


def try_out(fuzz: Fuzz) -> int:
    """Tries a few inputs, the same ones every time; raises what the check does.

    Gives how many were tried. The smallest input that fails is the one that is told.
    """
    with fuzz.opened() as check:
        tried, failure = _batch(fuzz, check, fuzz.few, 0)
    if failure is not None:
        raise failure
    return tried


def run(seconds: float, number: int) -> list[Row]:
    """Tries all for this long, in equal parts; every promise is tried at least once."""
    fuzzes = everything()
    return [_run_for(fuzz, seconds / len(fuzzes), number) for fuzz in fuzzes]


def _run_for(fuzz: Fuzz, seconds: float, number: int) -> Row:
    end = time.monotonic() + seconds
    return run_one(fuzz, number, lambda _: time.monotonic() > end)


def run_one(fuzz: Fuzz, number: int, enough: Callable[[int], bool], batch_size: int = BATCH) -> Row:
    """Tries batches until ``enough`` says so, which is asked with how many were tried."""
    tried = 0
    with fuzz.opened() as check:
        for batch in itertools.count(number):
            more, failure = _batch(fuzz, check, batch_size, batch)
            tried += more
            if failure is not None:
                lost = f"seed {batch}: {type(failure).__name__}: {failure}"
                return Row(name=fuzz.name, tried=tried, lost=(lost[:500],))
            if enough(tried):
                break
    return Row(name=fuzz.name, tried=tried, lost=())


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
    except Exception as failure:  # noqa: BLE001 - whatever it is, it should not have come out
        return tried, failure
    return tried, None
