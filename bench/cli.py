"""The duration of ``rye`` commands, each in a new process.

1. ``rye --version`` ÷ ``python -c pass``.
2. ``rye run`` of a tool on the bash runtime, with every check on, ÷ ``python -c pass``.
3. The same with a parameter, which is parsed and validated with the tool's schema.

The commands alternate, and medians are compared. Compiled modules are used, as in an installed Rye.
A warm-up fills the caches of Rye on disk. `catalogue` measures ``rye list``.
"""

import sys
import tempfile
from pathlib import Path

from rye_project import Project

from bench.programs import HELLO, RYE, caller
from bench.table import Report, Row, alternating_medians

ROUNDS = 30
VERSION_LIMIT = 2.5
RUN_LIMIT = 5.0
# Higher, since parsing and checking parameters loads a few modules.
RUN_WITH_PARAMETER_LIMIT = 5.5
WITH_PARAMETER = HELLO.replace(
    "# ///\necho hello",
    '# [config_schema]\n# type = "object"\n# [config_schema.properties]\n'
    '# name = { type = "string", default = "World" }\n# ///\necho "hello $RYE_PARAM_NAME"',
)


def measure() -> Report:
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder), shipped_system=True)
        project.tool("bench/hello.sh", HELLO)
        project.tool("bench/greet.sh", WITH_PARAMETER)
        bare, *times = alternating_medians(
            ROUNDS,
            caller(project, sys.executable, "-c", "pass"),
            caller(project, RYE, "--version", expected="rye "),
            caller(project, RYE, "run", "bench/hello", expected="hello\n"),
            caller(project, RYE, "run", "bench/greet", "name=Ada", expected="hello Ada\n"),
        )
    limits = {
        "rye --version": VERSION_LIMIT,
        "rye run, bash runtime": RUN_LIMIT,
        "rye run with a parameter": RUN_WITH_PARAMETER_LIMIT,
    }
    return Report(
        [
            Row(
                f"{what} ÷ python -c pass",
                taken / bare,
                limit,
                detail=f"{taken / 1000:.1f} / {bare / 1000:.1f} ms",
            )
            for (what, limit), taken in zip(limits.items(), times, strict=True)
        ]
    )
