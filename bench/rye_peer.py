"""Rye's bash tool beside that of ryeos 0.1.0, the best known predecessor, in one run.

The peer is installed from the package index into a temporary environment. Both run their own
`rye/bash/bash` with `echo hi`: warm (the same executor again and again, calls alternating) and cold
(a new process, a new executor, its first call; importing the executor is not counted). Exits with
1 if a limit is missed.

Usage: python bench/rye_peer.py
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from table import Row, alternating_medians, finish

PEER = ("ryeos==0.1.0", "lillux==0.1.0")
WARM_ROUNDS = 60
COLD_ROUNDS = 8
CALLER = """
import asyncio, sys, time
from pathlib import Path
from rye.executor.primitive_executor import PrimitiveExecutor

async def main():
    began = time.perf_counter()
    executor = PrimitiveExecutor(project_path=Path(sys.argv[1]))
    for line in sys.stdin:
        result = await executor.execute("rye/bash/bash", {"command": "echo hi"})
        assert result.success and "hi" in str(result.data), result
        print(time.perf_counter() - began, flush=True)
asyncio.run(main())
"""


class Side:
    """One of the two, with a project and a user space of its own."""

    def __init__(self, python: Path, folder: Path) -> None:
        self.python = python
        self.project = folder / "project"
        self.user = folder / "user"
        self.project.mkdir(parents=True)
        self.user.mkdir()

    def start(self) -> "subprocess.Popen[str]":
        path = f"{self.python.parent}{os.pathsep}{os.environ['PATH']}"
        user = {"HOME": str(self.user), "USER_SPACE": str(self.user)}
        return subprocess.Popen(
            [str(self.python), "-c", CALLER, str(self.project)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **user, "PATH": path},
        )

    def cold_call(self) -> float:
        """Milliseconds of the first call of a new process."""
        with self.start() as process:
            return ask(process) * 1000


def ask(process: "subprocess.Popen[str]") -> float:
    assert process.stdin
    assert process.stdout
    process.stdin.write("\n")
    process.stdin.flush()
    return float(json.loads(process.stdout.readline()))


def install_peer(folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PEER], check=True)
    return python


def compare(ours: Side, theirs: Side) -> list[Row]:
    with ours.start() as mine, theirs.start() as other:
        warm = alternating_medians(WARM_ROUNDS, lambda: ask(mine), lambda: ask(other))
    cold = [
        statistics.median(side.cold_call() for _ in range(COLD_ROUNDS)) for side in (ours, theirs)
    ]
    return [
        Row(
            "rye/bash/bash, warm: ryeos ÷ ours",
            warm[1] / warm[0],
            3,
            at_least=True,
            detail=f"{warm[1] / 1000:.1f} / {warm[0] / 1000:.1f} ms",
        ),
        Row(
            "rye/bash/bash, cold: ryeos ÷ ours",
            cold[1] / cold[0],
            3,
            at_least=True,
            detail=f"{cold[1]:.0f} / {cold[0]:.0f} ms",
        ),
    ]


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours = Side(Path(sys.executable), folder / "ours")
        theirs = Side(install_peer(folder / "peer"), folder / "theirs")
        return finish(compare(ours, theirs))


if __name__ == "__main__":
    sys.exit(main())
