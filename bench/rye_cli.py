"""The duration of ``rye`` commands, each in a new process.

1. ``rye --version`` ÷ ``python -c pass``.
2. ``rye run`` of a tool on the bash runtime, with every check on, ÷ ``python -c pass``.
3. The same with a parameter, which is parsed and validated with the tool's schema.
4. ``rye list`` with 1,000 tools ÷ the same with 10, with an index on disk.

The commands alternate, and medians are compared. Compiled modules are used, as in an installed Rye.
A warm-up fills the caches of Rye on disk.

Usage: python bench/rye_cli.py [rounds]
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "testing"))

from rye_project import Project
from table import Row, alternating_medians, finish

VERSION_LIMIT = 2.5
RUN_LIMIT = 5.0
# Higher, since parsing and checking parameters loads a few modules.
RUN_WITH_PARAMETER_LIMIT = 5.5
LIST_LIMIT = 2.0

RYE = str(Path(sys.executable).with_name("rye"))
TOOL = """\
#!/usr/bin/env bash
# /// rye
# version = "1.0.0"
# tool_type = "bash"
# executor_id = "rye/core/runtimes/bash_runtime"
# description = "A tool that the benchmark runs."
# ///
echo hello
"""
WITH_PARAMETER = TOOL.replace(
    "# ///\necho hello",
    '# [config_schema]\n# type = "object"\n# [config_schema.properties]\n'
    '# name = { type = "string", default = "World" }\n# ///\necho "hello $RYE_PARAM_NAME"',
)


def caller(project: Project, argv: Sequence[str], expected: str) -> Callable[[], None]:
    """Return a function that runs ``argv`` in the project and checks the start of its output."""
    environ = {
        name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ
    }
    environ |= {"HOME": str(project.user), "USER_SPACE": str(project.user)}

    def call() -> None:
        done = subprocess.run(
            argv, cwd=project.path, env=environ, capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith(expected), done.stdout

    return call


def with_tools(folder: Path, count: int) -> Project:
    """Create a project with that many unsigned tools, a hundred per folder."""
    project = Project(folder, shipped_system=True)
    for number in range(count):
        project.tool(f"pack{number // 100}/tool{number}.sh", TOOL, signed=False)
    return project


def measure(folder: Path, rounds: int) -> list[Row]:
    project = Project(folder / "run", shipped_system=True)
    project.tool("bench/hello.sh", TOOL)
    project.tool("bench/greet.sh", WITH_PARAMETER)
    bare, version, run, greet = alternating_medians(
        rounds,
        caller(project, [sys.executable, "-c", "pass"], ""),
        caller(project, [RYE, "--version"], "rye "),
        caller(project, [RYE, "run", "bench/hello"], "hello\n"),
        caller(project, [RYE, "run", "bench/greet", "name=Ada"], "hello Ada\n"),
    )
    few, many = alternating_medians(
        rounds,
        caller(with_tools(folder / "few", 10), [RYE, "list"], ""),
        caller(with_tools(folder / "many", 1000), [RYE, "list"], ""),
    )
    ms = 1000
    return [
        Row(
            "rye --version ÷ python -c pass",
            version / bare,
            VERSION_LIMIT,
            detail=f"{version / ms:.1f} / {bare / ms:.1f} ms",
        ),
        Row(
            "rye run, bash runtime ÷ python -c pass",
            run / bare,
            RUN_LIMIT,
            detail=f"{run / ms:.1f} / {bare / ms:.1f} ms",
        ),
        Row(
            "rye run with a parameter ÷ python -c pass",
            greet / bare,
            RUN_WITH_PARAMETER_LIMIT,
            detail=f"{greet / ms:.1f} / {bare / ms:.1f} ms",
        ),
        Row(
            "rye list of 1,000 tools ÷ of 10",
            many / few,
            LIST_LIMIT,
            detail=f"{many / ms:.1f} / {few / ms:.1f} ms",
        ),
    ]


def main() -> int:
    """Run all measurements. Returns 1 if a limit was exceeded."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    with tempfile.TemporaryDirectory() as folder:
        return finish(measure(Path(folder), rounds))


if __name__ == "__main__":
    sys.exit(main())
