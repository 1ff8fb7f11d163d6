"""LockfileManager.load of a file against json.loads of the same bytes in memory.

The calls alternate, and the medians are compared. `load` also opens and reads the file, checks
every field, and refuses duplicate keys; `json.loads` only parses.
"""

import gc
import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from lilux.primitives.lockfile import Lockfile, LockfileManager, LockfileRoot

from bench.table import Report, Row, alternating_medians

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


def measure() -> Report:
    manager = LockfileManager()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for length in CHAIN_LENGTHS:
            path = manager.save(realistic_lockfile(length), Path(folder) / f"{length}.lock.json")
            data = path.read_bytes()
            assert manager.load(path) == realistic_lockfile(length)
            gc.disable()
            load, loads = alternating_medians(
                ROUNDS, partial(manager.load, path), partial(json.loads, data)
            )
            gc.enable()
            detail = f"{load:.1f} / {loads:.1f} µs, {len(data)} bytes"
            what = f"load of {length} elements ÷ json.loads"
            rows.append(Row(what, load / loads, LIMIT, detail=detail))
    return Report(rows)
