"""``instant_batch.py TOOL CALLS DIR``: a batch whose calls all succeed without running.

Everything else is real: the check of the calls, the driver, its journal, its results. Prints the
peak memory of the process in bytes, and the seconds that the driver took.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

from rye.batches.backends.local import LocalBackend
from rye.batches.calls import bounded_lines
from rye.batches.folder import BatchFolder
from rye.batches.plan import create
from rye.batches.records import OK, BatchResult, Call
from rye.batches.running import run_folder
from rye.context import Context


class InstantBackend(LocalBackend):
    """Verifies the tool, and answers at once."""

    async def run(self, call: Call) -> BatchResult:
        """Return to the event loop for each call, as a real one does."""
        await asyncio.sleep(0)
        return BatchResult(call.line, call.id, OK, {"n": call.line}, None, 1, 0.5, None)


def peak_memory(pid: int | str = "self") -> int:
    """The largest resident memory of a process so far, in bytes."""
    # ru_maxrss would begin with the memory of the process that started this one.
    status = Path(f"/proc/{pid}/status").read_text()
    line = next((one for one in status.splitlines() if one.startswith("VmHWM:")), None)
    return 0 if line is None else int(line.split()[1]) * 1024


async def run(tool: str, calls: Path, folder: Path) -> float:
    """Run the batch to its end; return the seconds of the driver."""
    context = Context.from_machine()
    backend = InstantBackend(tool, context)
    await backend.open()
    assert backend.verified is not None
    batch = BatchFolder(folder)
    with calls.open("rb") as lines:
        create(batch, bounded_lines(lines), backend.verified, {}, skip_bad=False)
    batch.open()
    started = time.perf_counter()
    try:
        summary = await run_folder(
            batch, backend, context, rerun_unknown=False, on_progress=lambda _: None
        )
    finally:
        batch.close()
        await backend.close()
    assert summary.outcomes[OK] == summary.total, summary.outcomes
    return time.perf_counter() - started


if __name__ == "__main__":
    tool, calls, folder = sys.argv[1:]
    seconds = asyncio.run(run(tool, Path(calls), Path(folder)))
    print(json.dumps({"memory": peak_memory(), "seconds": seconds}))
