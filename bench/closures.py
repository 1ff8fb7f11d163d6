"""What running from a checked copy costs, and what compiled modules save.

1. A cold Python tool of 2,000 lines, through a long-lived executor, ÷ ``python -c pass`` by its
   interpreter. Cold means that each call starts an interpreter; the tool was called before, so that
   its compiled form is beside its closure.
2. The same tool ÷ the same tool without the compiled form.
3. The check of its copy in each call, in milliseconds.

The calls alternate, and medians are compared.
"""

import asyncio
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from rye.executor.run.execute import PrimitiveExecutor
from rye.executor.run.prepare import Preparation, Preparer
from rye.executor.run.primitives import PRIMITIVE_MAP
from rye_project import Project

from bench.table import Report, Row

ROUNDS = 30
COLD_LIMIT = 3.0
COMPILED_LIMIT = 0.8
CHECK_LIMIT_MS = 2.0
HEAD = '__version__ = "1.0.0"\n__executor_id__ = "rye/core/runtimes/python_runtime"\n\n\n'
PART = """\
def step{n}(values, limit={n}):
    found = [value * {n} for value in values if value > limit]
    if not found:
        return {{"none": limit, "text": f"{{limit}} of {n}"}}
    return {{"sum": sum(found), "first": found[0]}}


"""
MAIN = "def main(word='hi'):\n    return {'said': word, 'sum': step1([1, 2, 3])}\n"


def source(lines: int) -> str:
    """A tool with that many lines."""
    parts = lines // PART.count("\n")
    return HEAD + "".join(PART.format(n=number) for number in range(parts)) + MAIN


async def compare(project: Project, rounds: int) -> Report:
    project.tool("bench/long.py", source(2000))
    samples: dict[str, list[float]] = {"bare": [], "compiled": [], "plain": [], "check": []}
    closures = project.user / ".ai/cache/closures"
    async with PrimitiveExecutor(context=project.context) as executor:

        async def call() -> None:
            result = await executor.execute("bench/long", {"word": "hello"})
            assert result.success, result.error
            assert result.data["said"] == "hello"

        async def timed(name: str) -> None:
            started = time.perf_counter()
            if name == "bare":
                process = await asyncio.create_subprocess_exec(interpreter, "-c", "pass")
                await process.wait()
            else:
                await call()
            samples[name].append((time.perf_counter() - started) * 1000)

        for _ in range(3):
            await call()
        interpreter = (
            Preparation(executor._preparer, "bench/long").prepare({}).config.config["command"]
        )
        compiled = next(one for one in closures.iterdir() if "." in one.name.strip("."))
        for _ in range(rounds):
            await timed("bare")
            await timed("compiled")
            # The copy without its compiled form; it is not compiled again while the job cannot.
            aside = closures.parent / "aside"
            compiled.rename(aside)
            job = executor._preparer.closures.compiled
            begin, job.begin = job.begin, lambda job: ""  # type: ignore[method-assign]  # noqa: ARG005 - its name
            await timed("plain")
            job.begin = begin  # type: ignore[method-assign]
            shutil.move(aside, compiled)
        preparer = Preparer(project.context, PRIMITIVE_MAP)
        for _ in range(rounds * 5):
            preparation = Preparation(preparer, "bench/long")
            verified = preparation.verify()
            started = time.perf_counter()
            preparation.copied(verified)
            samples["check"].append((time.perf_counter() - started) * 1000)
    bare, cold, plain, check = (statistics.median(one) for one in samples.values())
    rows = [
        Row(
            "cold Python tool of 2,000 lines ÷ python -c",
            cold / bare,
            COLD_LIMIT,
            aim=2.0,
            detail=f"{cold:.1f} / {bare:.1f} ms; minimum {min(samples['compiled']):.1f} / "
            f"{min(samples['bare']):.1f}",
        ),
        Row(
            "compiled ÷ compiled in each call",
            cold / plain,
            COMPILED_LIMIT,
            detail=f"{cold:.1f} / {plain:.1f} ms",
        ),
        Row("check of its copy", check, CHECK_LIMIT_MS, unit=" ms"),
    ]
    return Report(rows)


def measure() -> Report:
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder), shipped_system=True)
        return asyncio.run(compare(project, ROUNDS))
