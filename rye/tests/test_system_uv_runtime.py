"""uv_script_runtime, offline: the dependency is a wheel that the test creates."""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from rye_project import Project

pytestmark = pytest.mark.skipif(shutil.which("uv") is None, reason="uv is not installed")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    environ = {
        "PATH": os.environ["PATH"],
        "UV_OFFLINE": "1",
        "UV_CACHE_DIR": str(tmp_path / "cache"),
        "UV_PYTHON_DOWNLOADS": "never",
    }
    return Project(tmp_path, shipped_system=True, environ=environ)


def wheel(folder: Path) -> Path:
    """Create a package ``ryedemo`` with one constant."""
    path = folder / "ryedemo-1.0-py3-none-any.whl"
    info = "ryedemo-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ryedemo.py", "ANSWER = 42\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: ryedemo\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


def test_a_script_gets_its_dependencies_and_parameters_on_stdin(
    project: Project, tmp_path: Path
) -> None:
    project.tool(
        "tool.py",
        "# /// script\n"
        f'# dependencies = ["ryedemo @ {wheel(tmp_path).as_uri()}"]\n'
        "# ///\n"
        '__version__ = "1.0.0"\n__executor_id__ = "uv_script_runtime"\n'
        "import json, sys\nimport ryedemo\n"
        "print(json.dumps([ryedemo.ANSWER, json.load(sys.stdin), sys.argv[1:]]))\n",
    )

    result = project.run("tool", {"a": "${HOME} é"})

    assert result.error is None
    assert result.data == [42, {"a": "${HOME} é"}, ["--project-path", str(project.path)]]


def test_a_script_runs_on_the_interpreter_that_runs_rye_in_an_environment_of_its_own(
    project: Project,
) -> None:
    project.tool(
        "tool.py",
        "# /// script\n# dependencies = []\n# ///\n"
        '__version__ = "1.0.0"\n__executor_id__ = "uv_script_runtime"\n'
        "import importlib.util, json, sys\n"
        "print(json.dumps([sys.base_prefix, importlib.util.find_spec('rye') is None]))\n",
    )
    assert project.run("tool").data == [sys.base_prefix, True]


def test_a_script_may_choose_another_interpreter(project: Project, tmp_path: Path) -> None:
    chosen = tmp_path / "chosen"
    chosen.symlink_to(Path(sys.executable).resolve())
    rule = {"type": "system_binary", "binary": str(chosen), "var": "RYE_PYTHON"}
    project.tool(
        "tool.py",
        "# /// script\n# dependencies = []\n# ///\n"
        '__version__ = "1.0.0"\n__executor_id__ = "uv_script_runtime"\n'
        f"ENV_CONFIG = {{'interpreter': {rule}}}\nprint([1])\n",
    )
    assert str(chosen) in project.run("tool", dry_run=True).data["argv"]
    assert project.run("tool").data == [1]


def test_a_missing_dependency_fails_with_the_message_of_uv(project: Project) -> None:
    project.tool(
        "tool.py",
        '# /// script\n# dependencies = ["no-such-package-ryedemo"]\n# ///\n'
        '__executor_id__ = "uv_script_runtime"\nprint("never")\n',
    )

    result = project.run("tool")

    assert not result.success
    assert "no-such-package-ryedemo" in result.data["stderr"]


def test_an_unsigned_module_next_to_a_signed_script_does_not_run(
    project: Project, tmp_path: Path
) -> None:
    mark = tmp_path / "planted"
    project.tool(
        "a/tool.py",
        '# /// script\n# requires-python = ">=3.11"\n# dependencies = []\n# ///\n'
        '__version__ = "1.0.0"\n__executor_id__ = "uv_script_runtime"\n'
        "import json\nprint(json.dumps([1]))\n",
    )
    project.tool("a/json.py", f"open({str(mark)!r}, 'w')\n", signed=False)

    result = project.run("a/tool")

    assert (result.error, result.data) == (None, [1])
    assert not mark.exists()


def test_a_uv_toml_in_the_project_does_not_choose_the_package_index(
    project: Project, tmp_path: Path
) -> None:
    wheel(tmp_path)
    (project.path / "uv.toml").write_text(f'no-index = true\nfind-links = ["{tmp_path}"]\n')
    project.tool(
        "tool.py",
        '# /// script\n# dependencies = ["ryedemo"]\n# ///\n'
        '__version__ = "1.0.0"\n__executor_id__ = "uv_script_runtime"\n'
        "import ryedemo\nprint(ryedemo.ANSWER)\n",
    )

    assert not project.run("tool").success
