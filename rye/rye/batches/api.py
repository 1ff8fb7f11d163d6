"""``rye.batch``: many calls of a tool from a program."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rye.batches.backends import WorkerLost
from rye.batches.driver import LOST
from rye.batches.records import UNKNOWN, BatchResult, Call, without_result
from rye.batches.running import backend_of
from rye.context import Context
from rye.errors import BatchError, ParameterError

if TYPE_CHECKING:
    from rye.batches.backends import Backend


async def batch(
    tool: str,
    calls: Iterable[Mapping[str, Any]],
    *,
    project_path: Path | str | None = None,
    backend: str = "local",
    jobs: int | None = None,
) -> AsyncIterator[BatchResult]:
    """Call ``tool`` once for each object of parameters, and yield each result as it arrives.

    The tool is verified once, and every call runs exactly that closure. Not more calls are taken
    from ``calls`` than run at once, so memory is bounded. Leaving the loop early ends the calls
    under way. A call whose worker died is ``unknown``. Raises a ``RyeError`` if the tool cannot
    run, or if every worker was lost.
    """
    if backend not in ("local", "ray"):
        raise ParameterError(
            "invalid backend", [f"{backend!r} is not known"], hint="use 'local' or 'ray'"
        )
    if jobs is not None and (not isinstance(jobs, int) or jobs < 1):
        raise ParameterError(
            "invalid jobs", [f"{jobs!r} is not a number of calls"], hint="use 1 or more"
        )
    chosen = backend_of(tool, Context.from_machine(project_path), {"on": backend, "jobs": jobs})
    source = iter(enumerate(calls, 1))
    running: set[asyncio.Task[BatchResult]] = set()
    try:
        await chosen.open()
        while True:
            while len(running) < chosen.lanes and (following := next(source, None)) is not None:
                line, parameters = following
                call = Call(line, str(line), parameters)
                running.add(asyncio.create_task(_only(chosen, call)))
            if not running:
                return
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield task.result()
            if not chosen.lanes:
                raise BatchError("every worker was lost", hint="look at the logs of the cluster")
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await chosen.close()


async def _only(backend: Backend, call: Call) -> BatchResult:
    try:
        return await backend.run(call)
    except WorkerLost:
        return without_result(call, UNKNOWN, LOST)
