"""Real programs work inside a confinement with sensible declarations."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from confined_machine import needs
from git_repository import create
from loopback_http import LoopbackServer, respond
from rye.permissions.locations import steps_to
from rye_project import Project

pytestmark = needs("fs", "net", "unix", "syscalls", "privileges", "read_only", "hidden")

HEADER = '__version__ = "1.0.0"\n__executor_id__ = "rye/core/runtimes/python_runtime"\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    return Project(tmp_path, shipped_system=True, environ={"PATH": path})


def bash(project: Project, command: str) -> str:
    result = project.run("rye/bash/bash", {"command": command})
    assert result.success, f"{result.error} {result.data}"
    text: str = result.data["stdout"]
    return text


def needs_program(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed")


def test_pipelines_and_here_documents(project: Project) -> None:
    assert bash(project, "cat <<'E' | tr a-z A-Z | sort\nb\na\nE\ngrep x <<<'x y'") == "A\nB\nx y\n"
    assert bash(project, "diff <(echo a) <(echo a) && echo same") == "same\n"
    large = "head -c 300000 /dev/zero | tr '\\0' x"
    assert bash(project, f'x=$({large}); wc -c <<<"$x" | tee out; cat out') == "300001\n" * 2


def test_git_commits_in_the_shell(project: Project) -> None:
    create(project.path)
    identity = "git -c user.name=A -c user.email=a@example.org"
    script = f"echo two > b.txt && git add b.txt && {identity} commit -q -m second"
    assert bash(project, f"git status -s; {script} && git log --format=%s").endswith(
        "second\nfirst\n"
    )


def test_a_program_of_a_version_manager(project: Project) -> None:
    program = project.user / ".local/share/uv/python/cpython-3.13/bin/python3.13"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho managed\n")
    program.chmod(0o755)
    link = project.path / ".venv/bin/python"
    link.parent.mkdir(parents=True)
    link.symlink_to(program)
    assert bash(project, ".venv/bin/python") == "managed\n"


@needs_program("gcc")
@needs_program("make")
def test_make_builds_and_runs_a_program(project: Project) -> None:
    (project.path / "hello.c").write_text('#include <stdio.h>\nint main(){puts("built");}\n')
    (project.path / "Makefile").write_text("run: hello\n\t./hello\n")
    assert bash(project, "make -s run").endswith("built\n")


@needs_program("node")
def test_a_node_tool(project: Project) -> None:
    header = (
        '// /// rye\n// version = "1.0.0"\n// executor_id = "rye/core/runtimes/node_runtime"\n'
        '// permissions = {write = ["{project_path}"]}\n// ///\n'
    )
    body = (
        "import fs from 'node:fs';\nimport os from 'node:os';\n"
        "export function main() { fs.writeFileSync('n.txt', 'x'); return os.cpus().length > 0 }\n"
    )
    project.tool("t/n.mjs", header + body)
    result = project.run("t/n")
    assert result.data is True, result.error
    assert (project.path / "n.txt").read_text() == "x"


def test_a_python_tool_with_threads_processes_and_files(project: Project) -> None:
    body = """PERMISSIONS = {"write": ["{project_path}/out", "tmp"], "run": ["cat"]}
def main():
    import subprocess, tempfile, ssl, json, concurrent.futures as f
    with tempfile.NamedTemporaryFile("w") as file, f.ThreadPoolExecutor(2) as pool:
        file.write("x"); file.flush()
        text = pool.submit(subprocess.check_output, ["cat", file.name], text=True).result()
    open("out/result", "w").write(text)
    ssl.create_default_context()
    return text
"""
    project.tool("t/p.py", HEADER + body)
    result = project.run("t/p")
    assert result.data == "x", result.error
    assert (project.path / "out" / "result").read_text() == "x"


def test_a_python_tool_with_httpx(project: Project) -> None:
    body = """PERMISSIONS = {"net": True}
def main(url):
    import httpx2
    return httpx2.get(url).json()
"""
    (project.path / ".venv").symlink_to(Path(sys.prefix))
    project.tool("t/h.py", HEADER + body)
    with LoopbackServer() as server:
        server.on("/", respond(json={"pong": True}))
        result = project.run("t/h", {"url": f"{server.url}/"})
    assert result.data == {"pong": True}, result.error


@needs_program("uv")
def test_a_uv_script(project: Project) -> None:
    text = (
        "# /// script\n# dependencies = []\n# ///\n"
        '__version__ = "1.0.0"\n__executor_id__ = "rye/core/runtimes/uv_script_runtime"\n'
        "PERMISSIONS = {}\n"
        "import json, sys\nprint(json.dumps(json.load(sys.stdin)))\n"
    )
    uv = Path(shutil.which("uv") or "").parent
    project.environ["PATH"] += f":{uv}"
    project.tool("t/u.py", text)
    result = project.run("t/u", {"a": 1})
    assert result.data == {"a": 1}, json.dumps(result.metadata) + str(result.error)


def test_a_shell_tool_on_the_bash_runtime(project: Project) -> None:
    project.tool(
        "t/s.sh",
        '# /// rye\n# version = "1.0.0"\n# executor_id = "rye/core/runtimes/bash_runtime"\n'
        '# permissions.run = ["wc"]\n# ///\nprintf %s "$RYE_PARAM_TEXT" | wc -c\n',
    )
    result = project.run("t/s", {"text": "x" * 60000})
    assert result.data == 60000, result.error


def test_the_links_on_the_way_to_a_path(tmp_path: Path) -> None:
    base = str(tmp_path.resolve())
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("./a/../a/b")
    (tmp_path / "outer").symlink_to(f"{base}/link")
    (tmp_path / "loop").symlink_to("loop")

    for known in ("", base, f"{base}/elsewhere"):
        assert steps_to(f"{base}/a/b", known) == [f"{base}/a/b"]
        assert steps_to(f"{base}/outer/new", known) == [
            *(f"{base}/outer", f"{base}/link", f"{base}/a/b/new")
        ]
    assert steps_to(f"{base}/loop")[-1] == f"{base}/loop"
    assert steps_to("/..") == ["/"]
