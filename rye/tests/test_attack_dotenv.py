"""Attacks by the .env of a checkout: none of its lines may run the checkout's code.

``/proc/self/cwd`` is an absolute path to the checkout, wherever it was cloned to. Each attack
worked while the whole file became the environment of tools.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rye_project import SUBPROCESS, Project

HERE = "/proc/self/cwd"
UP = "../" * 20
"""To the root, from any folder."""
PATH = f"{Path(sys.executable).parent}:/usr/bin:/bin"
REAL_PYENV = shutil.which("pyenv")

PYTHON_TOOL = (
    '__version__ = "1.0.0"\n__executor_id__ = "python_runtime"\ndef main():\n    return [1]\n'
)

# Like pyenv in what matters: its variables choose hooks, which are sourced, and a version.
MANAGER = """\
#!/bin/bash
verb=$1 name=$2
for hook in "$PYENV_HOOK_PATH"/"$verb"/*.bash; do [ -e "$hook" ] && . "$hook"; done
version=${PYENV_VERSION:-$(cat .python-version 2>/dev/null || cat "$PYENV_ROOT/version")}
program="$PYENV_ROOT/versions/$version/bin/$name"
[ -x "$program" ] || { echo "pyenv: $name: command not found" >&2; exit 127; }
[ "$verb" = which ] && { echo "$program"; exit; }
shift 2
exec "$program" "$@"
"""


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def version_manager(root: Path) -> Path:
    """Create a manager with one Python and its shim; return the folder of the shims."""
    manager = script(root / "libexec" / "pyenv", MANAGER)
    real = script(
        root / "versions" / "3.11.0" / "bin" / "python3", f'#!/bin/sh\nexec {sys.executable} "$@"\n'
    )
    assert real.exists()
    (root / "version").write_text("3.11.0\n")
    shim = f'#!/bin/bash\nexport PYENV_ROOT="{root}"\nexec "{manager}" exec "${{0##*/}}" "$@"\n'
    return script(root / "shims" / "python3", shim).parent


def project_with(tmp_path: Path, path: str = PATH, **environ: str) -> Project:
    return Project(tmp_path, shipped_system=True, environ={"PATH": path, **environ})


def dotenv(project: Project, *lines: str) -> None:
    (project.path / ".env").write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return project_with(tmp_path)


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "pwned"


# ── version managers ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "line",
    [f"PYENV_HOOK_PATH={HERE}/hooks", f"PYENV_VERSION={UP}{HERE[1:]}/evil"],
)
@pytest.mark.parametrize("tool", ["rye/fs/list", "rye/git/git", "mine"])
def test_a_dotenv_cannot_choose_the_python_of_a_version_manager(
    tmp_path: Path, mark: Path, line: str, tool: str
) -> None:
    shims = version_manager(tmp_path / "pyenv")
    project = project_with(tmp_path, f"{shims}:{PATH}")
    subprocess.run(["git", "init", "--quiet", str(project.path)], check=True)
    for verb in ("exec", "which"):
        script(project.path / "hooks" / verb / "evil.bash", f"touch {mark}\n")
    script(project.path / "evil" / "bin" / "python3", f"#!/bin/sh\ntouch {mark}\n")
    project.tool("mine.py", PYTHON_TOOL, space="user")
    dotenv(project, line)

    result = project.run(tool, {"command": "status"} if tool == "rye/git/git" else {})

    assert (result.error, mark.exists()) == (None, False)


@pytest.mark.skipif(REAL_PYENV is None, reason="pyenv is not installed")
@pytest.mark.parametrize("tool", ["rye/fs/list", "mine"])
def test_a_dotenv_cannot_add_hooks_to_the_installed_pyenv(
    tmp_path: Path, mark: Path, tool: str
) -> None:
    project = project_with(tmp_path, os.environ["PATH"], HOME=os.environ["HOME"])
    for verb in ("exec", "which", "rehash"):
        script(project.path / "hooks" / verb / "evil.bash", f"touch {mark}\n")
    project.tool("mine.py", PYTHON_TOOL, space="user")
    dotenv(project, f"PYENV_HOOK_PATH={HERE}/hooks")

    assert (project.run(tool).error, mark.exists()) == (None, False)


def test_a_version_file_of_a_checkout_does_not_choose_the_python_of_a_users_tool(
    tmp_path: Path, mark: Path
) -> None:
    shims = version_manager(tmp_path / "pyenv")
    project = project_with(tmp_path, f"{shims}:{PATH}")
    script(project.path / "evil" / "bin" / "python3", f"#!/bin/sh\ntouch {mark}\n")
    (project.path / ".python-version").write_text(f"{UP}{project.path}/evil\n")
    project.tool("mine.py", PYTHON_TOOL, space="user")

    assert (project.run("mine").data, mark.exists()) == ([1], False)


# ── uv ───────────────────────────────────────────────────────────────────────────────────────

needs_uv = pytest.mark.skipif(shutil.which("uv") is None, reason="uv is not installed")
UV_TOOL = (
    '# /// script\n# requires-python = ">=3.11"\n# dependencies = {dependencies}\n# ///\n'
    '__version__ = "1.0.0"\n__executor_id__ = "uv_script_runtime"\nprint("[1]")\n'
)


def uv_project(tmp_path: Path, *, path: str | None = None) -> Project:
    """A project whose user has a uv, a python3, and an own cache; nothing is downloaded."""
    home = tmp_path / "user"
    environ = {"HOME": str(home), "UV_PYTHON_DOWNLOADS": "never"}
    return Project(
        tmp_path,
        shipped_system=True,
        environ={"PATH": path or f"{PATH}:{os.environ['PATH']}", **environ},
    )


def plant_python(venv: Path, mark: Path) -> None:
    """Create what uv takes for a virtual environment; its Python leaves a mark."""
    script(venv / "bin" / "python", f'#!/bin/sh\ntouch {mark}\nexec {sys.executable} "$@"\n')
    for name in ("python3", "python3.11", "python3.12", "python3.13"):
        (venv / "bin" / name).symlink_to("python")
    (venv / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    (venv / "conda-meta").mkdir()


@needs_uv
@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_a_dotenv_cannot_give_uv_an_environment(tmp_path: Path, mark: Path, variable: str) -> None:
    project = uv_project(tmp_path)
    plant_python(project.path / "evil", mark)
    project.tool("mine.py", UV_TOOL.format(dependencies=[]), space="user")
    dotenv(project, f"{variable}={HERE}/evil")

    assert (project.run("mine").error, mark.exists()) == (None, False)


@needs_uv
def test_a_dotenv_cannot_give_uv_a_doctored_cache(tmp_path: Path, mark: Path) -> None:
    """uv keeps the environments of scripts in its cache, and runs them as they are."""
    project = uv_project(tmp_path)
    project.tool("mine.py", UV_TOOL.format(dependencies=[]), space="user")
    cache = project.path / "evil"
    project.environ["XDG_CACHE_HOME"] = str(cache)
    assert project.run("mine").error is None
    for site in cache.glob("uv/environments-v2/*/lib/python*/site-packages"):
        (site / "evil.pth").write_text(f"import os; os.mkdir({str(mark)!r})\n")
    assert project.run("mine").error is None
    assert mark.exists(), "the attack works if the user sets the variable"
    mark.rmdir()
    del project.environ["XDG_CACHE_HOME"]
    dotenv(project, f"XDG_CACHE_HOME={HERE}/evil")

    assert (project.run("mine").error, mark.exists()) == (None, False)


@needs_uv
@pytest.mark.parametrize("place", ["project/.venv", ".venv"])
def test_uv_does_not_search_a_checkout_or_its_parents_for_a_python(
    tmp_path: Path, mark: Path, place: str
) -> None:
    project = uv_project(tmp_path)
    plant_python(tmp_path / place, mark)
    (project.path / ".python-version").write_text("3.11\n")
    project.tool("mine.py", UV_TOOL.format(dependencies=[]), space="user")

    assert (project.run("mine").error, mark.exists()) == (None, False)


@needs_uv
def test_a_dotenv_cannot_put_a_proxy_before_the_package_index(tmp_path: Path) -> None:
    """A uv that only prints its variables shows what a real one would obey."""
    fake = script(tmp_path / "bin" / "uv", "#!/bin/sh\nenv\n")
    project = uv_project(tmp_path, path=f"{fake.parent}:{PATH}")
    project.tool("mine.py", UV_TOOL.format(dependencies='["requests"]'), space="user")
    lines = [f"SSL_CERT_FILE={HERE}/evil.pem", "HTTPS_PROXY=http://127.0.0.1:1", "ALL_PROXY=x"]
    dotenv(project, *lines, "https_proxy=http://127.0.0.1:1")

    stdout = project.run("mine").data["stdout"]

    assert "RYE_UV=" in stdout
    assert [line for line in stdout.splitlines() if "PROXY" in line.upper() or "CERT" in line] == []


# ── programs that obey variables ─────────────────────────────────────────────────────────────


def test_a_dotenv_cannot_allow_git_a_transport_that_runs_a_program(
    project: Project, mark: Path
) -> None:
    subprocess.run(["git", "init", "--quiet", str(project.path)], check=True)
    project.yaml(
        "fetch",
        space="user",
        executor_id=SUBPROCESS,
        config={"command": "git", "args": ["ls-remote", f"ext::touch {mark}"]},
    )
    dotenv(project, "GIT_ALLOW_PROTOCOL=ext:https")

    result = project.run("fetch")

    assert "transport 'ext' not allowed" in (result.error or "")
    assert not mark.exists()


@pytest.mark.parametrize("name", ["GIT_TRACE", "GIT_TRACE2_EVENT", "GIT_TRACE_SETUP"])
def test_a_dotenv_cannot_make_git_append_to_a_file(project: Project, mark: Path, name: str) -> None:
    subprocess.run(["git", "init", "--quiet", str(project.path)], check=True)
    dotenv(project, f"{name}={mark}")

    assert project.run("rye/git/git", {"command": "status"}).error is None
    assert not mark.exists()


def test_a_dotenv_cannot_give_tar_an_option_that_runs_a_program(
    project: Project, mark: Path
) -> None:
    tar = {"command": "tar", "args": ["cf", "/dev/null", "."]}
    project.yaml("pack", space="user", executor_id=SUBPROCESS, config=tar)
    (project.path / "file").write_text("x" * 100_000)
    dotenv(project, f"TAR_OPTIONS=--checkpoint=1 --checkpoint-action=exec='touch {mark}'")

    assert (project.run("pack").error, mark.exists()) == (None, False)


def test_a_dotenv_cannot_redirect_the_cd_of_a_shell_script(
    project: Project, tmp_path: Path
) -> None:
    for folder in (project.path / "evil" / "build", project.path / "build"):
        folder.mkdir(parents=True)
    sh = {"command": "/bin/bash", "args": ["-c", "cd build >/dev/null && pwd"]}
    project.yaml("build", space="user", executor_id=SUBPROCESS, config=sh)
    dotenv(project, f"CDPATH={HERE}/evil")

    assert project.run("build").data["stdout"] == f"{project.path}/build\n"


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_dotenv_cannot_make_node_write_files(project: Project, tmp_path: Path) -> None:
    node = {"command": str(shutil.which("node")), "args": ["-e", "1"]}
    project.yaml("js", space="user", executor_id=SUBPROCESS, config=node)
    dotenv(project, f"NODE_V8_COVERAGE={tmp_path}/pwned")

    assert project.run("js").error is None
    assert not (tmp_path / "pwned").exists()


# ── parameters ───────────────────────────────────────────────────────────────────────────────

BASH_TOOL = """\
# /// rye
# version = "1.0.0"
# executor_id = "bash_runtime"
# [config_schema]
# type = "object"
# additionalProperties = false
# ///
echo "force=${RYE_PARAM_FORCE-unset}"
"""


def test_a_dotenv_cannot_add_a_parameter(project: Project) -> None:
    project.tool("t.sh", BASH_TOOL)
    dotenv(project, "RYE_PARAM_FORCE=1")
    assert project.run("t").data["stdout"] == "force=unset\n"


def test_the_environment_of_the_caller_cannot_add_a_parameter(tmp_path: Path) -> None:
    """A tool that calls Rye has its own parameters in its environment."""
    project = project_with(tmp_path, RYE_PARAM_FORCE="1", RYE_PARAMETERS="kept")
    project.tool("t.sh", f'{BASH_TOOL}echo "$RYE_PARAMETERS"\n')
    assert project.run("t").data["stdout"] == "force=unset\nkept\n"


@pytest.mark.parametrize("space", ["project", "user"])
def test_a_dotenv_cannot_set_a_variable_of_rye_even_if_a_file_refers_to_it(
    project: Project, space: str
) -> None:
    text = {"command": "echo", "args": ["${RYE_SECRET:-none}", "${RYE_PARAM_X:-none}"]}
    project.yaml("t", space=space, executor_id=SUBPROCESS, config=text)  # type: ignore[arg-type]
    dotenv(project, "RYE_SECRET=1", "RYE_PARAM_X=1")
    assert project.run("t").data["stdout"] == "none none\n"


def test_a_pattern_of_names_does_not_include_the_variables_of_rye(project: Project) -> None:
    project.tool(
        "t.py",
        '__version__ = "1.0.0"\n__executor_id__ = "python_runtime"\n'
        'PERMISSIONS = {"env": ["R*"]}\n'
        "import os\ndef main():\n    return sorted({'RED', 'RYE_PARAM_X'} & set(os.environ))\n",
    )
    dotenv(project, "RED=1", "RYE_PARAM_X=1")
    assert project.run("t").data == ["RED"]


# ── what an author asks for ──────────────────────────────────────────────────────────────────


def test_names_that_the_author_signed_are_supplied_and_no_others(project: Project) -> None:
    show = (
        "import os\ndef main():\n    return {k: v for k, v in os.environ.items() if k in NAMES}\n"
    )
    project.tool(
        "t.py",
        '__version__ = "1.0.0"\n__executor_id__ = "python_runtime"\n'
        'PERMISSIONS = {"env": ["TOKEN", "AWS_*"]}\n'
        'NAMES = ["TOKEN", "AWS_REGION", "AWS", "TOKEN_TWO", "OTHER"]\n' + show,
    )
    dotenv(project, "TOKEN=a", "AWS_REGION=b", "AWS=c", "TOKEN_TWO=d", "OTHER=e")
    assert project.run("t").data == {"TOKEN": "a", "AWS_REGION": "b"}


def test_the_error_of_a_tool_that_lacks_a_variable_says_what_to_declare(project: Project) -> None:
    body = "import os\ndef main():\n    return os.environ['TOKEN']\n"
    head = '__version__ = "1.0.0"\n__executor_id__ = "python_runtime"\n'
    path = project.tool("t.py", head + body)
    dotenv(project, "TOKEN=hunter2", "OTHER=x")

    result = project.run("t")

    assert result.error == (
        "'t' ended with exit code 1: KeyError: 'TOKEN'; the project's .env sets TOKEN, which 't' "
        f"""does not ask for: add the line `PERMISSIONS = {{"env": ["TOKEN"]}}` to {path}, then """
        "run: rye sign t && rye lock --update t"
    )
    assert "hunter2" not in json.dumps([result.error, result.metadata])
    project.tool("t.py", f'{head}PERMISSIONS = {{"env": ["TOKEN"]}}\n{body}')
    assert project.run("t").data == "hunter2"
