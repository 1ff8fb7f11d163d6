"""Warm starts: a call of a prepared process ÷ the same call cold, and ÷ a shell.

1. A warm tool that imports httpx2 ÷ the same tool cold.
2. A warm tool that imports nothing ÷ ``rye/bash/bash`` of ``true``.
3. 64 calls at once: throughput of the warm tool that imports httpx2 ÷ that of the cold one.

All checks are enabled in both. The calls alternate, and the medians are compared. The floors of the
machine are reported from the same run: ``posix_spawn`` of ``/bin/true``, and a bare fork server
that has imported httpx2.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from rye.executor.run.execute import PrimitiveExecutor
from rye_project import Project

from bench.programs import TRUE, asyncio_call
from bench.table import Report, Row, Samples

HEAD = '__version__ = "1.0.0"\n__executor_id__ = "python_runtime"\n'
BASH = "rye/bash/bash"
ROUNDS = 50
AT_ONCE = 64
IMPORT_LIMIT = 0.1
EMPTY_LIMIT = 2.0
THROUGHPUT_LIMIT = 8.0

SERVER = """
import os, sys
import httpx2
while sys.stdin.buffer.raw.read(1):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    os.write(1, b".")
"""


class ForkServer:
    """The least that a prepared process can cost: a process with httpx2 forks for each call."""

    def __enter__(self) -> "ForkServer":
        to_server, from_server = os.pipe(), os.pipe()
        actions = [
            (os.POSIX_SPAWN_DUP2, to_server[0], 0),
            (os.POSIX_SPAWN_DUP2, from_server[1], 1),
        ]
        argv = [sys.executable, "-I", "-u", "-c", SERVER]
        self._pid = os.posix_spawn(sys.executable, argv, dict(os.environ), file_actions=actions)
        os.close(to_server[0])
        os.close(from_server[1])
        self._ask, self._answer = to_server[1], from_server[0]
        self.call()
        return self

    def call(self) -> None:
        os.write(self._ask, b".")
        assert os.read(self._answer, 1) == b"."

    def __exit__(self, *_: object) -> None:
        os.close(self._ask)
        os.waitpid(self._pid, 0)
        os.close(self._answer)


def spawn() -> None:
    os.waitpid(os.posix_spawn(TRUE, ["true"], {}), 0)


async def milliseconds(call: Callable[[], Awaitable[object]]) -> float:
    """The duration of one call."""
    started = time.perf_counter()
    await call()
    return (time.perf_counter() - started) * 1000


async def compare(project: Project, rounds: int, server: ForkServer) -> Report:
    """Make the calls, alternating."""
    cold_executor = PrimitiveExecutor(context=project.context, warm=False)
    warm_executor = PrimitiveExecutor(context=project.context, warm=lambda _: True)
    async with cold_executor as cold, warm_executor as warm:

        async def run(executor: PrimitiveExecutor, tool: str) -> None:
            given = {"command": "true"} if tool == BASH else {}
            result = await executor.execute(tool, given)
            assert result.success, result.error
            expected = executor is warm and tool != BASH
            assert bool(result.metadata.get("warm")) is expected, (tool, result.metadata)

        for tool in ("empty", "imports"):
            for _ in range(4):
                await warm.execute(tool)
                await warm._warmth.pool.settled()
        kinds = {
            "imports cold": (cold, "imports"),
            "empty cold": (cold, "empty"),
            "imports warm": (warm, "imports"),
            "empty warm": (warm, "empty"),
            "bash": (warm, BASH),
        }
        plain = {"python -c pass": "pass", "python -c 'import httpx2'": "import httpx2"}
        floors = {"posix_spawn of /bin/true": spawn, "a bare fork server": server.call}
        taken: dict[str, list[float]] = {name: [] for name in [*kinds, *plain, *floors]}
        for turn in range(rounds + 2):
            for name, floor in floors.items():
                started = time.perf_counter()
                floor()
                if turn > 1:
                    taken[name].append((time.perf_counter() - started) * 1000)
            for name, (executor, tool) in kinds.items():
                # Cold calls take long: fewer of them are enough.
                if executor is cold and turn % 5:
                    continue
                duration = await milliseconds(lambda e=executor, t=tool: run(e, t))  # type: ignore[misc]
                if turn > 1:
                    taken[name].append(duration)
            for name, code in plain.items() if turn % 5 == 0 else ():
                started = time.perf_counter()
                await asyncio_call(sys.executable, "-c", code)
                if turn > 1:
                    taken[name].append((time.perf_counter() - started) * 1000)
    at_once = {}
    for name, warmth in (("warm", lambda _: True), ("cold", False)):
        async with PrimitiveExecutor(context=project.context, warm=warmth) as executor:
            for _ in range(4):
                await executor.execute("imports")
                await executor._warmth.pool.settled()
            started = time.perf_counter()
            results = await asyncio.gather(*(executor.execute("imports") for _ in range(AT_ONCE)))
            at_once[name] = (time.perf_counter() - started) * 1000
            assert {one.error for one in results} == {None}, name
    median = {name: statistics.median(found) for name, found in taken.items()}

    def detail(*names: str) -> str:
        return ", ".join(f"{one} {median[one]:.1f} ms (min {min(taken[one]):.1f})" for one in names)

    each = {name: duration / AT_ONCE for name, duration in at_once.items()}
    rows = [
        Row(
            "warm ÷ cold, import httpx2",
            median["imports warm"] / median["imports cold"],
            IMPORT_LIMIT,
            aim=0.033,
            detail=detail("imports warm", "imports cold"),
        ),
        Row(
            "warm empty tool ÷ rye/bash/bash of true",
            median["empty warm"] / median["bash"],
            EMPTY_LIMIT,
            aim=1.2,
            detail=detail("empty warm", "bash"),
        ),
        Row(
            f"{AT_ONCE} at once: warm ÷ cold throughput",
            at_once["cold"] / at_once["warm"],
            THROUGHPUT_LIMIT,
            aim=20,
            at_least=True,
            detail=f"warm {each['warm']:.1f} ms each, cold {each['cold']:.1f} ms each",
        ),
        *(Row(f"floor: {name}", median[name], unit=" ms") for name in floors),
    ]
    empty = {
        "Rye, warm": median["empty warm"],
        "Rye, cold": median["empty cold"],
        "python -c pass": median["python -c pass"],
    }
    imports = {
        "Rye, warm": median["imports warm"],
        "Rye, cold": median["imports cold"],
        "python -c 'import httpx2'": median["python -c 'import httpx2'"],
        "a bare fork server, the floor": median["a bare fork server"],
    }
    return Report(rows, {"empty": Samples("ms", empty), "imports": Samples("ms", imports)})


def measure() -> Report:
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder), shipped_system=True)
        (project.path / ".venv").symlink_to(sys.prefix)
        project.tool("empty.py", f"{HEAD}def main():\n    return 1\n")
        project.tool("imports.py", f"{HEAD}import httpx2\ndef main():\n    return 1\n")
        with ForkServer() as server:
            return asyncio.run(compare(project, ROUNDS, server))
