"""A tool run in a new process, against a Python process that does nothing.

The tool uses the bash runtime (tool → bash_runtime → subprocess), with all checks enabled:
signatures, lockfile, schema. It has run before, so the caches are filled. The processes alternate,
with compiled modules; medians are compared.

A program that runs one tool and exits needs no garbage collection and no cleanup, so it runs
without the collector and exits with ``os._exit``. The last row is measured with both.

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
NORMAL_EXIT_LIMIT = 6.0
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
    """Return a function that runs ``code`` in a new process."""
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", code]
    return lambda: subprocess.run(command, check=True, env=environ, stdout=subprocess.DEVNULL)


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as name:
        project = Project(Path(name), shipped_system=True)
        project.tool("bench/say.sh", TOOL)
        paths = {"project": str(project.path), "user": str(project.user)}
        plain = CALL.format(parameters=None, **paths)
        given = CALL.format(parameters={"word": "hi"}, **paths)
        # The first run writes the lockfile, the second one caches it.
        for code in (plain, plain, given):
            python(code)()
        kinds = {
            "run of a bash tool": (LEAN.format(call=plain), LIMIT),
            "  with parameters to validate": (LEAN.format(call=given), PARAMETERS_LIMIT),
            "  with a normal exit": (plain, NORMAL_EXIT_LIMIT),
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
