"""One call, beside the standard library and ryeos 0.1.0, the best known predecessor.

1. `/bin/true`: Lilux alone, and a signed and pinned tool of Rye with a chain of three, against
   `subprocess.run`, `asyncio.create_subprocess_exec`, and `os.posix_spawn` with pipes, the floor.
2. `bash -c 'echo hi'`: the tool `rye/bash/bash`, confined and recorded, against the tool of that
   name in ryeos, and asyncio. Both are warm: the same executor makes all calls.
3. The same two tools with a new executor for each call, and in a new process, from the import of
   the executor to its first result.

Calls alternate, and the medians are compared.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lilux.primitives.subprocess import SubprocessPrimitive
from rye.executor.run.execute import PrimitiveExecutor
from rye_project import Project

from bench.execute import make_chain
from bench.peers import PeerMissingError, python_of, version_of
from bench.programs import TRUE, asyncio_call, installed_environ, spawn_with_pipes
from bench.table import Report, Row, Samples, alternating_async, alternating_medians

ROUNDS = 300
WARM_ROUNDS = 60
COLD_ROUNDS = 10
BASH = "rye/bash/bash"
LILUX, RYE, ASYNCIO = "Lilux, without tools", "Rye, signed and pinned tool", "asyncio"
FLOOR = "os.posix_spawn, the floor"
CALLER = """
import sys, time
from pathlib import Path
started = time.perf_counter()
import asyncio
from MODULE import PrimitiveExecutor

async def main():
    executor = PrimitiveExecutor(project_path=Path(sys.argv[1]))
    for line in sys.stdin:
        if line.strip() == "new":
            executor = PrimitiveExecutor(project_path=Path(sys.argv[1]))
        result = await executor.execute("rye/bash/bash", {"command": "echo hi"})
        assert result.success and "hi" in str(result.data), result
        print(time.perf_counter() - started, flush=True)
asyncio.run(main())
"""


class Side:
    """One of the two, with its own project and user space."""

    def __init__(self, python: Path, module: str, folder: Path) -> None:
        self.code = CALLER.replace("MODULE", module)
        self.python = python
        self.project = folder / "project"
        self.user = folder / "user"
        self.project.mkdir(parents=True)
        self.user.mkdir()

    def start(self) -> subprocess.Popen[str]:
        path = f"{self.python.parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.Popen(
            [str(self.python), "-c", self.code, str(self.project)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=installed_environ(self.user) | {"PATH": path},
        )

    def call_in_new_process(self) -> float:
        """Return the microseconds from the import to the first result in a new process."""
        with self.start() as process:
            return ask(process) * 1e6


def ask(process: subprocess.Popen[str], how: str = "") -> float:
    assert process.stdin
    assert process.stdout
    process.stdin.write(f"{how}\n")
    process.stdin.flush()
    return float(json.loads(process.stdout.readline()))


async def bare_calls(project: Project) -> dict[str, float]:
    """Return the milliseconds of a call of `/bin/true`."""
    tool = make_chain(project, "three", 3)
    primitive = SubprocessPrimitive()
    async with PrimitiveExecutor(context=project.context) as executor:

        async def with_lilux() -> None:
            assert (await primitive.execute({"command": TRUE}, {})).success

        async def with_rye() -> None:
            result = await executor.execute(tool, {"word": "hi"})
            assert result.success, result.error

        async def with_run() -> None:
            subprocess.run([TRUE], check=True, capture_output=True)  # noqa: ASYNC221 - the peer

        async def with_spawn() -> None:
            spawn_with_pipes()

        taken = await alternating_async(
            ROUNDS, with_lilux, with_rye, with_run, lambda: asyncio_call(TRUE), with_spawn
        )
    names = (LILUX, RYE, "subprocess.run", ASYNCIO, FLOOR)
    return {name: each / 1000 for name, each in zip(names, taken, strict=True)}


def peer_calls(ours: Side, theirs: Side | None) -> dict[str, dict[str, float]]:
    """Return the milliseconds of each side and kind of call of the shell."""
    sides = {"Rye": ours} | ({"ryeos": theirs} if theirs else {})
    processes = {name: side.start() for name, side in sides.items()}
    with asyncio.Runner() as runner:
        calls: dict[str, Callable[[], object]] = {
            name: partial(ask, process) for name, process in processes.items()
        }
        calls["asyncio"] = lambda: runner.run(asyncio_call("bash", "-c", "echo hi"))
        warm = dict(zip(calls, alternating_medians(WARM_ROUNDS, *calls.values()), strict=True))
    new = [partial(ask, process, "new") for process in processes.values()]
    cold = dict(zip(sides, alternating_medians(COLD_ROUNDS, *new), strict=True))
    for process in processes.values():
        process.communicate()
    fresh = {
        name: statistics.median(side.call_in_new_process() for _ in range(COLD_ROUNDS))
        for name, side in sides.items()
    }
    found = {"warm": warm, "cold": cold, "new process": fresh}
    return {
        kind: {name: taken / 1000 for name, taken in each.items()} for kind, each in found.items()
    }


def measure() -> Report:
    missing, peers = {}, {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bare = asyncio.run(bare_calls(Project(folder / "bare", shipped_system=True)))
        ours = Side(Path(sys.executable), "rye.executor.run.execute", folder / "ours")
        theirs = None
        try:
            python = python_of("ryeos")
            theirs = Side(python, "rye.executor.primitive_executor", folder / "theirs")
            helper = version_of("ryeos", "lillux-proc")
            peers["ryeos"] = f"{version_of('ryeos', 'ryeos')}, with lillux-proc {helper}"
        except PeerMissingError as error:
            missing["ryeos"] = str(error)
        found = peer_calls(ours, theirs)
    lilux, rye, peer = bare[LILUX], bare[RYE], bare[ASYNCIO]
    rows = [
        Row("Lilux ÷ asyncio", lilux / peer, 0.85, aim=0.75, detail=f"{lilux:.2f} / {peer:.2f} ms"),
        Row("Rye ÷ asyncio", rye / peer, 1.0, aim=0.9, detail=f"{rye:.2f} / {peer:.2f} ms"),
        Row("floor: os.posix_spawn with pipes", bare[FLOOR], unit=" ms"),
    ]
    for (kind, taken), limit in zip(found.items(), (3, 3, 1), strict=True):
        if "ryeos" in taken:
            detail = f"{taken['ryeos']:.1f} / {taken['Rye']:.1f} ms"
            what = f"{BASH}, {kind}: ryeos ÷ ours"
            rows.append(Row(what, taken["ryeos"] / taken["Rye"], limit, True, detail=detail))
    samples = {
        "/bin/true": Samples("ms", bare),
        **{f"{BASH}, {kind}": Samples("ms", taken) for kind, taken in found.items()},
    }
    return Report(rows, samples, missing, peers=peers)
