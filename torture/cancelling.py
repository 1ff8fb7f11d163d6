"""Calls are cancelled at random moments of their life."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from lilux.primitives.subprocess import SubprocessPrimitive

from torture.leftovers import Baseline, Mark
from torture.scenario import Outcome

SEED = 20261116
AT_ONCE = 20


def at_random(times: int, _folder: Path) -> Outcome:
    """A cancelled call returns when its tree is gone; the others are not touched."""
    before = Baseline()
    numbers = random.Random(SEED)
    failures = asyncio.run(_cancel(times, numbers))
    return Outcome(tried=times, failures=(*failures, *before.leftovers()))


async def _cancel(times: int, numbers: random.Random) -> list[str]:
    failures: list[str] = []
    for _ in range(0, times, AT_ONCE):
        mark, spared = Mark(numbers), Mark(numbers)
        staying = asyncio.create_task(_run(f"sleep 0.1 {spared.text}; echo spared"))
        wrong = await asyncio.gather(
            *(_cancel_one(mark, numbers.uniform(0, 0.04)) for _ in range(AT_ONCE))
        )
        failures += [sentence for sentence in wrong if sentence]
        # Not in a while: that they are gone is what the end of the calls says.
        failures += [f"a cancelled call left process {pid}" for pid in mark.alive()]
        if await staying != "spared\n":
            failures.append("a call that was not cancelled was lost")
    return failures


async def _run(script: str) -> str:
    config = {"command": "sh", "args": ["-c", script], "render": False, "grace": 0.05}
    return (await SubprocessPrimitive().execute(config)).stdout


async def _cancel_one(mark: Mark, after: float) -> str | None:
    call = asyncio.create_task(_run(mark.tree()))
    await asyncio.sleep(after)
    call.cancel()
    try:
        said = await call
    except asyncio.CancelledError:
        return None
    return f"a cancelled call gave {said!r}"
