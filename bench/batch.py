"""Batches: throughput beside GNU parallel, the memory of the driver, and a resume.

1. A batch of a tool that is ``/bin/true`` ÷ 64 callers of ``execute()``, in one process.
2. The command ``rye batch`` ÷ GNU parallel with as many jobs at once, from start to end: of
   ``/bin/true``, and of a Python tool that imports httpx2. GNU parallel starts Python for each
   call, so its rate is taken from fewer calls.
3. The peak memory of the driver with 1,000,000 calls ÷ with 10,000. Everything is real but the
   backend, which answers at once: a million processes would take a quarter of an hour. Beside it,
   the memory of the command with real processes, and fewer of them.
4. ``rye batch resume`` of 1,000,000 calls that all have a result, from start to end.
"""

import asyncio
import itertools
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rye.batches.backends import Backend
from rye.batches.backends.local import LocalBackend, default_jobs
from rye.batches.folder import BatchFolder
from rye.batches.plan import create
from rye.batches.running import CALLER, run_folder
from rye.executor.run.execute import PrimitiveExecutor
from rye_project import Project

from bench.instant_batch import peak_memory
from bench.programs import RYE, TRUE, installed_environ
from bench.table import Report, Row, Samples

CALLERS = 64
ROUNDS = 5
CALLS = 2000
WARM_UP = 200
COMMAND_ROUNDS = 3
COMMAND_CALLS = 2000
WARM_CALLS = 10_000
PYTHON_CALLS = 100
FEW, REAL, MANY = 10_000, 50_000, 1_000_000
EXECUTE_LIMIT = 0.9
PARALLEL_LIMIT = 1.0
WARM_LIMIT = 10.0
MEMORY_LIMIT = 1.2
RESUME_LIMIT_S = 5.0
EMPTY, IMPORTS = "bench/empty", "bench/imports"
IMPORTS_SOURCE = """\
__version__ = "1.0.0"
__executor_id__ = "python_runtime"
import httpx2
def main(n):
    return n
"""
BARE_SOURCE = "import sys\nimport httpx2\nprint(sys.argv[1])\n"


def make_project(root: Path) -> Project:
    project = Project(root, shipped_system=True)
    project.settings(permissions={"unenforced": "allow"})
    (project.path / ".venv").symlink_to(sys.prefix)
    project.command(EMPTY, TRUE)
    project.tool(f"{IMPORTS}.py", IMPORTS_SOURCE)
    return project


def write_calls(path: Path, count: int) -> Path:
    """Write calls with ids of their own, which have to be compared."""
    with path.open("w") as lines:
        for n in range(count):
            lines.write(json.dumps({"id": f"record-{n}", "parameters": {"n": n}}) + "\n")
    return path


async def batch_rate(backend: Backend, project: Project, root: Path) -> float:
    """Calls a second of a batch, when its backend is ready."""
    context = project.context
    lines = [json.dumps({"n": n}).encode() for n in range(CALLS)]
    try:
        await backend.open()
        assert backend.verified is not None
        for name, some in (("warm-up", lines[:WARM_UP]), ("batch", lines)):
            folder = BatchFolder(root / name)
            create(folder, some, backend.verified, {}, skip_bad=False)
            folder.open()
            started = time.perf_counter()
            summary = await run_folder(
                folder, backend, context, rerun_unknown=False, on_progress=lambda _: None
            )
            seconds = time.perf_counter() - started
            folder.close()
            assert summary.outcomes["ok"] == len(some), summary.errors
    finally:
        await backend.close()
    return CALLS / seconds


async def execute_rate(project: Project) -> float:
    """Calls a second of callers of ``execute()``, each of which waits for its result."""

    async def caller(numbers: Iterator[int]) -> None:
        for n in numbers:
            result = await executor.execute(EMPTY, {"n": n})
            assert result.success, result.error

    async with PrimitiveExecutor(context=project.context) as executor:
        for count in (WARM_UP, CALLS):
            numbers = iter(range(count))
            started = time.perf_counter()
            await asyncio.gather(*(caller(numbers) for _ in range(CALLERS)))
            seconds = time.perf_counter() - started
    return CALLS / seconds


def in_process(project: Project, root: Path) -> list[list[float]]:
    """Both rates. Each turn has an event loop, and so a helper, of its own."""
    turns = itertools.count()

    def batch() -> float:
        backend = LocalBackend(EMPTY, project.context, caller=CALLER)
        return asyncio.run(batch_rate(backend, project, root / f"turn-{next(turns)}"))

    return alternating(ROUNDS, batch, lambda: asyncio.run(execute_rate(project)))


class Commands:
    """Commands in the folder of the project."""

    def __init__(self, project: Project, root: Path) -> None:
        self._project = project
        self._root = root
        self._environ = installed_environ(project.user)
        self._bare = root / "bare.py"
        self._bare.write_text(BARE_SOURCE)
        self._batches = 0

    def run(self, *argv: str | Path, stdin: str = "") -> tuple[float, str]:
        """The seconds that a command takes, and its output. Raises if it fails."""
        started = time.perf_counter()
        done = subprocess.run(
            argv,
            cwd=self._project.path,
            env=self._environ,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - started
        assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
        return seconds, done.stdout

    def batch(self, tool: str, count: int) -> float:
        """Calls a second of ``rye batch``."""
        return count / self.run(*self._batch(tool, count))[0]

    def parallel(self, count: int, *command: str | Path) -> float:
        """Calls a second of GNU parallel, with a number of its own for each."""
        numbers = "".join(f"{n}\n" for n in range(count))
        jobs = str(default_jobs())
        seconds, output = self.run("parallel", "-j", jobs, *command, stdin=numbers)
        assert command[0] == TRUE or len(output.splitlines()) == count
        return count / seconds

    def parallel_python(self, count: int) -> float:
        return self.parallel(count, sys.executable, self._bare)

    def memory(self, tool: str, count: int) -> int:
        """The peak memory of ``rye batch`` itself."""
        peak = 0
        with subprocess.Popen(
            self._batch(tool, count),
            cwd=self._project.path,
            env=self._environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            while process.poll() is None:
                peak = max(peak, peak_memory(process.pid))
                time.sleep(0.05)
        assert process.returncode == 0
        return peak

    def _batch(self, tool: str, count: int) -> list[str | Path]:
        self._batches += 1
        calls = write_calls(self._root / "calls.jsonl", count)
        folder = self._root / f"command-{self._batches}"
        return [RYE, "batch", tool, calls, "--dir", folder, "--out", self._root / "out.jsonl"]

    def instant(self, count: int) -> dict[str, float]:
        """Run a batch with a backend that answers at once; see ``bench/instant_batch.py``."""
        calls = write_calls(self._root / "calls.jsonl", count)
        # -P: the folder of the script has modules with names of the standard library.
        script = Path(__file__).with_name("instant_batch.py")
        folder = self._root / f"instant-{count}"
        output = self.run(sys.executable, "-P", script, EMPTY, calls, folder)[1]
        found: dict[str, float] = json.loads(output)
        return found

    def resume(self, count: int) -> float:
        """The seconds of ``rye batch resume``, if nothing is left to do."""
        seconds, output = self.run(RYE, "batch", "resume", self._root / f"instant-{count}")
        assert output.startswith(f"{count} of {count} calls have a result ({count} ok)"), output
        return seconds


def alternating(rounds: int, *measured: Callable[[], float]) -> list[list[float]]:
    """The figures of each, in alternating turns."""
    found: list[list[float]] = [[] for _ in measured]
    for _ in range(rounds):
        for figures, one in zip(found, measured, strict=True):
            figures.append(one())
    return found


def span(figures: list[float]) -> str:
    return f"{min(figures):,.0f} to {max(figures):,.0f}"


def ratio(what: str, ours: list[float], theirs: list[float], limit: float) -> Row:
    return Row(
        what,
        statistics.median(ours) / statistics.median(theirs),
        limit,
        at_least=True,
        detail=f"{span(ours)} / {span(theirs)} calls a second",
    )


def beside_parallel(commands: Commands) -> tuple[list[Row], dict[str, Samples]]:
    """The rows and the pictures that need GNU parallel."""
    empty, bare = alternating(
        COMMAND_ROUNDS,
        lambda: commands.batch(EMPTY, COMMAND_CALLS),
        lambda: commands.parallel(COMMAND_CALLS, TRUE),
    )
    warm = [commands.batch(IMPORTS, WARM_CALLS)]
    (python,) = alternating(COMMAND_ROUNDS, lambda: commands.parallel_python(PYTHON_CALLS))
    rows = [
        ratio("rye batch ÷ parallel, /bin/true", empty, bare, PARALLEL_LIMIT),
        ratio("rye batch ÷ parallel, import httpx2", warm, python, WARM_LIMIT),
    ]
    pictures = {
        "true": {"rye batch": empty, "GNU parallel": bare},
        "imports": {"rye batch": warm, "GNU parallel": python},
    }
    return rows, {
        name: Samples("calls/s", {who: statistics.median(each) for who, each in figures.items()})
        for name, figures in pictures.items()
    }


def growth(commands: Commands) -> list[Row]:
    """Memory and resume."""
    few, many = commands.instant(FEW), commands.instant(MANY)
    small, large = commands.memory(EMPTY, FEW), commands.memory(EMPTY, REAL)
    resumes = [commands.resume(MANY) for _ in range(COMMAND_ROUNDS)]
    mib = 2**20
    return [
        Row(
            f"memory of the driver, {MANY:,} calls ÷ {FEW:,}",
            many["memory"] / few["memory"],
            MEMORY_LIMIT,
            detail=f"{many['memory'] / mib:.0f} / {few['memory'] / mib:.0f} MiB, "
            f"{many['seconds'] / MANY * 1e6:.0f} µs of the driver for a call",
        ),
        Row(
            f"memory of rye batch, {REAL:,} calls ÷ {FEW:,}",
            large / small,
            MEMORY_LIMIT,
            detail=f"{large / mib:.0f} / {small / mib:.0f} MiB",
        ),
        Row(
            f"resume of {MANY:,} finished calls",
            statistics.median(resumes),
            RESUME_LIMIT_S,
            unit=" s",
            detail=f"{min(resumes):.1f} to {max(resumes):.1f} s",
        ),
    ]


def measure() -> Report:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        project = make_project(root)
        batch, execute = in_process(project, root)
        rows = [ratio(f"batch ÷ {CALLERS} callers of execute()", batch, execute, EXECUTE_LIMIT)]
        commands = Commands(project, root)
        samples: dict[str, Samples] = {}
        missing, peers = {}, {}
        if shutil.which("parallel") is None:
            missing["GNU parallel"] = "not installed; Debian's package is called parallel"
        else:
            more, samples = beside_parallel(commands)
            rows += more
            peers["GNU parallel"] = commands.run("parallel", "--version")[1].split()[2]
        rows += growth(commands)
    return Report(rows, samples, missing, peers=peers)
