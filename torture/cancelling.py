"""Calls are cancelled at random moments."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from lilux.primitives.subprocess import SubprocessPrimitive

from torture.leftovers import Before, Mark
from torture.scenario import Outcome

SEED = 20261116
AT_ONCE = 20


def at_random(times: int, _folder: Path) -> Outcome:
    """Check that a cancelled call returns when its tree has ended, and others are unaffected."""
    before = Before()
    numbers = random.Random(SEED)
    lost = asyncio.run(_cancel(times, numbers))
    return Outcome(tried=times, lost=(*lost, *before.left()))


async def _cancel(times: int, numbers: random.Random) -> list[str]:
    lost: list[str] = []
    for _ in range(0, times, AT_ONCE):
        mark, spared = Mark(numbers), Mark(numbers)
        staying = asyncio.create_task(_run(f"sleep 0.1 {spared.text}; echo spared"))
        wrong = await asyncio.gather(
            *(_cancel_one(mark, numbers.uniform(0, 0.04)) for _ in range(AT_ONCE))
        )
        lost += [fault for fault in wrong if fault]
        # Checked at once: the end of the calls guarantees it.
        lost += [f"a cancelled call left process {pid}" for pid in mark.alive()]
        if await staying != "spared\n":
            lost.append("a call that was not cancelled was lost")
    return lost


async def _run(script: str) -> str:
    config = {"command": "sh", "args": ["-c", script], "render": False, "grace": 0.05}
    return (await SubprocessPrimitive().execute(config)).stdout


async def _cancel_one(mark: Mark, after: float) -> str | None:
    call = asyncio.create_task(_run(mark.tree()))
    await asyncio.sleep(after)
    call.cancel()
    try:
        output = await call
    except asyncio.CancelledError:
        return None
    return f"a cancelled call returned {output!r}"
