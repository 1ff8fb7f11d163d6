"""The bash tool of Rye against that of ryeos 0.1.0, the best known predecessor.

The peer is installed from the package index into a temporary environment. Both run their own
`rye/bash/bash` with `echo hi`: warm (the same executor for all calls, alternating), cold (a new
executor in a process that has made calls before), and in a new process (from the import of the
executor to its first result). Exits with 1 if a limit is exceeded.

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
COLD_ROUNDS = 10
CALLER = """
import sys, time
from pathlib import Path
started = time.perf_counter()
import asyncio
from rye.executor.run.execute import PrimitiveExecutor

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

    def __init__(self, python: Path, folder: Path) -> None:
        self.python = python
        self.project = folder / "project"
        self.user = folder / "user"
        self.project.mkdir(parents=True)
        self.user.mkdir()

    def start(self) -> "subprocess.Popen[str]":
        path = f"{self.python.parent}{os.pathsep}{os.environ['PATH']}"
        user = {"HOME": str(self.user), "USER_SPACE": str(self.user)}
        # Both sides start from compiled modules, as installed ones do.
        inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        return subprocess.Popen(
            [str(self.python), "-c", CALLER, str(self.project)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**inherited, **user, "PATH": path},
        )

    def call_in_new_process(self) -> float:
        """Return the milliseconds from the import to the first result in a new process."""
        with self.start() as process:
            return ask(process) * 1000


def ask(process: "subprocess.Popen[str]", how: str = "") -> float:
    assert process.stdin
    assert process.stdout
    process.stdin.write(f"{how}\n")
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
        cold = alternating_medians(COLD_ROUNDS, lambda: ask(mine, "new"), lambda: ask(other, "new"))
    fresh = [
        statistics.median(side.call_in_new_process() for _ in range(COLD_ROUNDS)) * 1000
        for side in (ours, theirs)
    ]
    return [
        Row(
            f"rye/bash/bash, {what}: ryeos ÷ ours",
            times[1] / times[0],
            limit,
            at_least=True,
            detail=f"{times[1] / 1000:.1f} / {times[0] / 1000:.1f} ms",
        )
        for what, times, limit in (("warm", warm, 3), ("cold", cold, 3), ("new process", fresh, 1))
    ]


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours = Side(Path(sys.executable), folder / "ours")
        theirs = Side(install_peer(folder / "peer"), folder / "theirs")
        return finish(compare(ours, theirs))


if __name__ == "__main__":
    sys.exit(main())
