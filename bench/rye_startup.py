"""A tool in a new process, beside a Python that does nothing, in one run.

The tool stands on the bash runtime (tool → bash_runtime → subprocess), with every check on:
signatures, lockfile, schema. It has run before, so that what can be remembered is. Each round
starts one process of each kind, in turn, with compiled modules; medians are compared.

A program that runs one tool and ends need not collect garbage or tidy up, so that one is started
like this: without the collector, and left by ``os._exit``. The last line does neither.

Usage: python bench/rye_startup.py [rounds]
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "testing"))

from rye_project import Project
from table import Row, alternating_medians, finish

LIMIT = 5.0
PARAMETERS_LIMIT = 8.0
TIDY_LIMIT = 6.0
ROUNDS = 40
TOOL = """\
#!/usr/bin/env bash
# /// rye
# version = "1.0.0"
# executor_id = "rye/core/runtimes/bash_runtime"
# [config_schema]
# type = "object"
# additionalProperties = false
# [config_schema.properties.word]
# type = "string"
# default = "hello"
# ///
echo "$RYE_PARAM_WORD"
"""
CALL = """
from rye.context import Context
from rye.executor.run.blocking import execute_blocking
context = Context.from_machine({project!r}, {user!r})
result = execute_blocking("bench/say", {parameters!r}, context=context)
assert result.success, result
"""
LEAN = "import gc\ngc.disable()\n{call}\nimport os\nos._exit(0)\n"


def python(code: str) -> Callable[[], object]:
    """A new process that runs ``code``."""
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", code]
    return lambda: subprocess.run(command, check=True, env=environ, stdout=subprocess.DEVNULL)


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as name:
        project = Project(Path(name), shipped_system=True)
        project.tool("bench/say.sh", TOOL)
        places = {"project": str(project.path), "user": str(project.user)}
        plain = CALL.format(parameters=None, **places)
        given = CALL.format(parameters={"word": "hi"}, **places)
        # The first run makes the lockfile, the second remembers it.
        for code in (plain, plain, given):
            python(code)()
        kinds = {
            "run of a bash tool": (LEAN.format(call=plain), LIMIT),
            "  with parameters to validate": (LEAN.format(call=given), PARAMETERS_LIMIT),
            "  left in the usual way": (plain, TIDY_LIMIT),
        }
        programs = [python(code) for code, _ in kinds.values()]
        nothing, *times = alternating_medians(rounds, python("pass"), *programs)
    return finish(
        [
            Row(what, time / nothing, limit, detail=f"{time / 1000:.1f} / {nothing / 1000:.1f} ms")
            for (what, (_, limit)), time in zip(kinds.items(), times, strict=True)
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
