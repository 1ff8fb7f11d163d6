"""Programs and Python modules that a tool needs and this machine does not have."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence

from lilux.files.search_path import find_program

from rye.items.element import ChainElement

_SECONDS = 20
_PYTHON_RUNTIMES = ("python_runtime", "python_script_runtime")
_TYPESCRIPT = (".ts", ".mts", ".cts", ".tsx")
_REMOVES_TYPES = [22, 18]
# Finds top-level modules without importing any.
_PROBE = (
    "import importlib.util, sys\n"
    "print('\\n'.join(n for n in sys.argv[1:] if importlib.util.find_spec(n) is None))"
)


def missing_program(chain: Sequence[ChainElement], env: Mapping[str, str]) -> Iterator[str]:
    """The command of a tool, if it is a plain name that is not on PATH."""
    tool = chain[0]
    command = tool.metadata.config.get("command")
    if not isinstance(command, str) or "{" in command or os.sep in command or not command:
        return
    if find_program(command, env.get("PATH", "").split(os.pathsep)) is None:
        yield (
            f"{tool.path}: the program '{command}' is not installed; "
            "install it, or correct config.command"
        )


def typescript_problem(chain: Sequence[ChainElement], env: Mapping[str, str]) -> Iterator[str]:
    """A TypeScript tool whose node cannot remove types, in a project without tsx."""
    tool, node = chain[0], env.get("RYE_NODE", "")
    if tool.path is None or tool.path.suffix not in _TYPESCRIPT or not node:
        return
    root = tool.resolution.space.root.parent
    if (root / "node_modules" / "tsx").is_dir():
        return
    try:
        done = subprocess.run(
            [node, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return
    version = done.stdout.decode(errors="replace").strip().removeprefix("v")
    numbers = [int(part) for part in re.findall(r"\d+", version)[:2]]
    if numbers < _REMOVES_TYPES:
        yield (
            f"{tool.path}: TypeScript needs node 22.18 or newer, or tsx in the project, and {node} "
            f"is {version}; install tsx with: npm install tsx"
        )


def missing_modules(chain: Sequence[ChainElement], env: Mapping[str, str]) -> Iterator[str]:
    """Modules that a Python tool imports at its start and that its interpreter does not have."""
    tool = chain[0]
    runtime = (tool.executor_id or "").rpartition("/")[2]
    python = env.get("RYE_PYTHON", "")
    if tool.path is None or tool.path.suffix != ".py" or runtime not in _PYTHON_RUNTIMES:
        return
    # In a folder that is one tool, other files of the tool are modules too.
    own = {one.stem for one in tool.path.parent.iterdir()} | {tool.path.parent.name}
    names = [
        name
        for name in _imported(tool.path.read_bytes())
        if name not in sys.stdlib_module_names and name not in own and not name.startswith("rye_")
    ]
    if not names or not python:
        return
    try:
        done = subprocess.run(
            [python, "-I", "-c", _PROBE, *names],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=True,
            env={"PATH": env.get("PATH", "")},
        )
    except (OSError, subprocess.SubprocessError):
        return
    for name in done.stdout.decode(errors="replace").split():
        yield (
            f"{tool.path}: the module '{name}' is not installed for {python}; "
            f"install it with: {python} -m pip install {name}"
        )


def _imported(content: bytes) -> list[str]:
    """The packages that the module imports when it is loaded, wherever that cannot fail."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(content)
    found: dict[str, None] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            found.update(dict.fromkeys([one.name.partition(".")[0] for one in statement.names]))
        elif isinstance(statement, ast.ImportFrom) and not statement.level and statement.module:
            found[statement.module.partition(".")[0]] = None
    return list(found)
