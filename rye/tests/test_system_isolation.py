"""Unsigned files next to a signed tool or in its environment do not run."""

from __future__ import annotations

import importlib.util
import json
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rye_project import SUBPROCESS, Project

RUNTIMES = Path("tools/rye/core/runtimes")
OWN_PYTHON = f"{Path(sys.executable).parent}:/usr/bin:/bin"
"""Bytecode works only with the Python that compiled it."""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, shipped_system=True, environ={"PATH": OWN_PYTHON})


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "planted"


def bytecode(mark: Path, path: Path) -> None:
    source = mark.with_suffix(".evil.py")
    source.write_text(f"open({str(mark)!r}, 'w')\n")
    py_compile.compile(str(source), str(path), doraise=True)


def header(runtime: str) -> str:
    return f'__version__ = "1.0.0"\n__executor_id__ = "{runtime}"\n'


RETURNS = "import json\ndef main():\n    return [1]\n"
PRINTS = "import json\nprint(json.dumps([1]))\n"


@pytest.mark.parametrize(
    ("runtime", "body"), [("python_runtime", RETURNS), ("python_script_runtime", PRINTS)]
)
def test_an_unsigned_module_beside_a_signed_tool_does_not_run(
    project: Project, mark: Path, runtime: str, body: str
) -> None:
    project.tool("a/tool.py", header(runtime) + body)
    project.tool("a/json.py", f"open({str(mark)!r}, 'w')\n", signed=False)

    assert project.run("a/tool").data == [1]
    assert not mark.exists()


@pytest.mark.parametrize(
    ("runtime", "body"), [("python_runtime", RETURNS), ("python_script_runtime", PRINTS)]
)
@pytest.mark.parametrize("variable", ["PYTHONPATH", "RYE_ANCHOR_PATH"])
def test_the_environment_cannot_add_a_module_path(
    tmp_path: Path, mark: Path, runtime: str, body: str, variable: str
) -> None:
    evil = tmp_path / "evil"
    evil.mkdir()
    for name in ("sitecustomize.py", "json.py", "decimal.py"):
        (evil / name).write_text(f"open({str(mark)!r}, 'w')\n")
    environ = {"PATH": OWN_PYTHON, variable: str(evil)}
    project = Project(tmp_path, shipped_system=True, environ=environ)
    project.tool("tool.py", header(runtime) + "import decimal\n" + body)

    assert project.run("tool").data == [1]
    assert not mark.exists()


@pytest.mark.parametrize("name", ["sitecustomize", "json", "typing", "helper"])
@pytest.mark.parametrize("folder", ["tools/a", "tools/rye/core/runtimes/lib/python"])
@pytest.mark.parametrize("verified", [True, False])
def test_bytecode_in_an_anchor_or_a_library_does_not_run(
    project: Project, mark: Path, name: str, folder: str, *, verified: bool
) -> None:
    runtimes = project.path / ".ai" / RUNTIMES
    shutil.copytree(
        project.system / ".ai" / RUNTIMES, runtimes, ignore=shutil.ignore_patterns("__pycache__")
    )
    for path in [runtimes / "python_runtime.yaml", *(runtimes / "lib/python").glob("*.py")]:
        project.sign(path)
    body = (
        "import json, sys\ntry:\n    import helper\nexcept ImportError:\n    pass\n"
        "def main():\n    return sys.orig_argv\n"
    )
    project.tool("a/tool.py", header("python_runtime") + body)
    project.tool("a/__init__.py", "")
    argv = project.run("a/tool").data
    assert str(project.path / ".ai/tools/a") in argv
    bytecode(mark, project.path / ".ai" / folder / f"{name}.pyc")

    if verified:
        assert not project.run("a/tool").success
    else:  # planted after the check
        done = subprocess.run(argv, input="{}", capture_output=True, text=True, check=False)
        assert (json.loads(done.stdout), done.stderr) == (argv, "")
    assert not mark.exists()


def test_a_tool_can_import_the_library_and_its_signed_modules(project: Project) -> None:
    body = "import helper, rye_walk\ndef main():\n    return [helper.N, rye_walk.MAX_ENTRIES]\n"
    project.tool("a/tool.py", header("python_runtime") + body)
    project.tool("a/helper.py", "N = 5\n")
    project.tool("a/__init__.py", "")

    result = project.run("a/tool")

    assert (result.error, result.data) == (None, [5, 200_000])


def test_a_system_tool_called_in_a_checkout_does_not_run_the_checkouts_python(
    project: Project, mark: Path
) -> None:
    python = project.path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\ntouch {mark}\n")
    python.chmod(0o755)

    assert project.run("rye/fs/list", {"path": "."}).success
    assert not mark.exists()

    project.tool("mine.py", header("python_runtime") + RETURNS)
    project.run("mine")
    assert mark.exists()


def test_a_custom_runtime_can_ignore_planted_bytecode(tmp_path: Path) -> None:
    """The advice of docs/security.md for authors of runtimes."""
    project = Project(tmp_path)
    project.yaml(
        "runtimes/mine",
        tool_type="runtime",
        executor_id=SUBPROCESS,
        config={
            "command": sys.executable,
            "args": ["-X", "pycache_prefix=/dev/null", "{tool_path}"],
        },
        verify_deps={"scope": "tool_dir", "extensions": [".py"]},
    )
    project.tool("a/tool.py", header("runtimes/mine") + "import helper\nprint(helper.WORD)\n")
    helper = project.tool("a/helper.py", "WORD = 'verified'\n")
    evil = tmp_path / "evil.py"
    evil.write_text("WORD = 'planted'\n")
    py_compile.compile(
        str(evil),
        importlib.util.cache_from_source(str(helper)),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        doraise=True,
    )
    assert project.run("a/tool").data["stdout"] == "verified\n"
