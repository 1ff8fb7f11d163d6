"""Calls are cancelled at random moments."""

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
    """A cancelled call returns after its tree has ended; other calls are not affected."""
    before = Baseline()
    numbers = random.Random(SEED)
    failures = asyncio.run(_cancel(times, numbers))
    return Outcome(tried=times, failures=(*failures, *before.leftovers()))


async def _cancel(times: int, numbers: random.Random) -> list[str]:
    failures: list[str] = []
    for _ in range(0, times, AT_ONCE):
        mark, kept = Mark(), Mark()
        other = asyncio.create_task(_run(f"sleep 0.1 {kept.text}; echo kept"))
        found = await asyncio.gather(
            *(_cancel_one(mark, numbers.uniform(0, 0.04)) for _ in range(AT_ONCE))
        )
        failures += [sentence for sentence in found if sentence]
        # Checked at once: when the calls return, their trees must have ended.
        failures += [f"a cancelled call left process {pid}" for pid in mark.alive()]
        if await other != "kept\n":
            failures.append("a call that was not cancelled has no output")
    return failures


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
