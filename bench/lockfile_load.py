"""LockfileManager.load of a file against json.loads of the same bytes in memory.

The calls alternate, and the medians are compared. `load` also opens and reads the file, checks
every field, and refuses duplicate keys; `json.loads` only parses.
"""

import gc
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from lilux.primitives.lockfile import Lockfile, LockfileManager, LockfileRoot

LIMIT = 2.0
ROUNDS = 5000
CHAIN_LENGTHS = (3, 5, 10)


def entry(index: int, length: int) -> dict[str, Any]:
    return {
        "item_id": f"rye/tools/element_{index}",
        "space": "project" if index == 0 else "system",
        "version": "1.0.0",
        "executor_id": f"rye/tools/element_{index + 1}" if index + 1 < length else None,
        "integrity": f"{index:064x}",
    }


def realistic_lockfile(length: int) -> Lockfile:
    return Lockfile(
        lockfile_version=1,
        generated_at="2026-01-30T12:00:00Z",
        root=LockfileRoot(tool_id="rye/tools/element_0", version="1.0.0", integrity="a" * 64),
        resolved_chain=[entry(index, length) for index in range(length)],
        verified_deps={f"lib/module_{index}.py": f"{index:064x}" for index in range(3)},
    )


def nanoseconds(call: Callable[[], object]) -> int:
    start = time.perf_counter_ns()
    call()
    return time.perf_counter_ns() - start


def medians(first: Callable[[], object], second: Callable[[], object]) -> tuple[float, float]:
    """Return the median duration of each in µs, alternating; the first calls are a warm-up."""
    samples = [(nanoseconds(first), nanoseconds(second)) for _ in range(ROUNDS)][ROUNDS // 10 :]
    ours, theirs = zip(*samples, strict=True)
    return statistics.median(ours) / 1000, statistics.median(theirs) / 1000


def main() -> None:
    manager = LockfileManager()
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for length in CHAIN_LENGTHS:
            path = manager.save(realistic_lockfile(length), Path(folder) / f"{length}.lock.json")
            data = path.read_bytes()
            assert manager.load(path) == realistic_lockfile(length)
            gc.disable()
            load, loads = medians(partial(manager.load, path), partial(json.loads, data))
            gc.enable()
            worst = max(worst, load / loads)
            print(
                f"{length:2} elements, {len(data):5} bytes:  load {load:6.2f} µs"
                f"  json.loads {loads:6.2f} µs  ratio {load / loads:.2f}  (limit {LIMIT})"
            )
    assert worst <= LIMIT, f"ratio {worst:.2f} is above the limit {LIMIT}"


if __name__ == "__main__":
    main()
