"""The program behind a version manager's shim: asked once and remembered."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from rye.cache.disk import DiskCache
from rye.executor.config.shims import NoProgramError, Shims
from rye.spaces.model import SpaceName
from rye_project import SUBPROCESS, Project

# Counts its calls, and chooses by a variable, by a file in the working directory, or by its own.
MANAGER = """\
#!/bin/sh
echo "$@" >> {root}/asked
version=${{TESTENV_VERSION:-$(cat .python-version 2>/dev/null || cat {root}/version)}}
program={root}/versions/$version/bin/$2
[ -x "$program" ] || {{ echo "testenv: $2: command not found" >&2; exit 127; }}
[ "$1" = which ] && {{ echo "$program"; exit; }}
shift 2; exec "$program" "$@"
"""


class Manager:
    """A version manager with two versions of one program."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.program = self.write("bin/testenv", MANAGER.format(root=root))
        for version in ("1.0", "2.0"):
            self.write(
                f"versions/{version}/bin/python3", f'#!/bin/sh\nexec {sys.executable} "$@"\n'
            )
        (root / "version").write_text("1.0\n")
        self.shim = self.write(
            "shims/python3", f'#!/bin/bash\nset -e\nexec "{self.program}" exec "${{0##*/}}" "$@"\n'
        )

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def version(self, number: str) -> str:
        return str(self.root / "versions" / number / "bin" / "python3")

    @property
    def asked(self) -> int:
        path = self.root / "asked"
        return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.fixture
def manager(tmp_path: Path) -> Manager:
    return Manager(tmp_path / "testenv")


ENVIRON = {"PATH": "/usr/bin:/bin"}


def test_a_shim_is_asked_once(manager: Manager) -> None:
    shims = Shims(ENVIRON)
    for _ in range(3):
        assert shims.program(str(manager.shim), None) == manager.version("1.0")
    assert manager.asked == 1


def test_another_process_remembers_the_answer(manager: Manager, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    for _ in range(3):
        cache = DiskCache(folder)
        assert Shims(ENVIRON, cache).program(str(manager.shim), None) == manager.version("1.0")
        cache.flush()
    assert manager.asked == 1


def test_a_changed_input_is_noticed(manager: Manager, tmp_path: Path) -> None:
    shims = Shims(ENVIRON)
    project = tmp_path / "deep" / "project"
    project.mkdir(parents=True)
    shim = str(manager.shim)
    assert shims.program(shim, project) == manager.version("1.0")
    (manager.root / "version").write_text("2.0\n\n")
    assert shims.program(shim, project) == manager.version("2.0")
    (project / ".python-version").write_text("1.0\n")
    assert shims.program(shim, project) == manager.version("1.0")
    (project / ".python-version").unlink()
    assert shims.program(shim, project) == manager.version("2.0")
    chosen = Shims({**ENVIRON, "TESTENV_VERSION": "1.0"})
    assert chosen.program(shim, project) == manager.version("1.0")


def test_a_version_that_is_installed_later_is_noticed(manager: Manager) -> None:
    (manager.root / "version").write_text("3.0\n")
    shims = Shims(ENVIRON)
    with pytest.raises(NoProgramError) as caught:
        shims.program(str(manager.shim), None)
    assert str(caught.value) == (
        "'testenv which python3' found no program (testenv: python3: command not found)"
    )
    manager.write("versions/3.0/bin/python3", "#!/bin/sh\n")
    assert shims.program(str(manager.shim), None) == manager.version("3.0")


def test_a_remembered_program_that_is_gone_is_asked_for_again(
    manager: Manager, tmp_path: Path
) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    cache = DiskCache(folder)
    Shims(ENVIRON, cache).program(str(manager.shim), None)
    cache.flush()
    Path(manager.version("1.0")).unlink()
    with pytest.raises(NoProgramError):
        Shims(ENVIRON, DiskCache(folder)).program(str(manager.shim), None)


def test_the_version_files_of_the_working_directory_are_not_used(
    manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".python-version").write_text("2.0\n")
    monkeypatch.chdir(tmp_path)
    assert Shims(ENVIRON).program(str(manager.shim), None) == manager.version("1.0")
    assert Shims(ENVIRON).program(str(manager.shim), tmp_path) == manager.version("2.0")


def test_a_link_to_the_manager_is_a_shim(manager: Manager) -> None:
    """As mise makes them."""
    link = manager.root / "linked" / "shims" / "python3"
    link.parent.mkdir(parents=True)
    link.symlink_to(manager.program)
    assert Shims(ENVIRON).program(str(link), None) == manager.version("1.0")


def test_a_manager_is_found_on_the_path(manager: Manager) -> None:
    """As asdf names itself in its shims."""
    shim = manager.write("asdf/shims/python3", '#!/bin/sh\nexec testenv exec "python3" "$@"\n')
    environ = {"PATH": f"{manager.program.parent}:/usr/bin:/bin"}
    assert Shims(environ).program(str(shim), None) == manager.version("1.0")


def test_other_programs_are_left_alone(manager: Manager) -> None:
    elsewhere = manager.write("elsewhere/python3", manager.shim.read_text())
    plain = manager.write("plain/shims/python3", "#!/bin/sh\necho mine\n")
    manager.write("own/shims/python3.11", "#!/bin/sh\n")
    link = manager.root / "own" / "shims" / "python3"
    link.symlink_to("python3.11")
    shims = Shims(ENVIRON)
    for path in (str(elsewhere), str(plain), str(link), "python3", "", sys.executable):
        assert shims.program(path, None) == path
    assert manager.asked == 0


# ── in a call ────────────────────────────────────────────────────────────────────────────────

TOOL = (
    '__version__ = "1.0.0"\n__executor_id__ = "python_runtime"\n'
    "import os\ndef main():\n"
    "    return [os.environ[name] for name in ('RYE_PYTHON', 'PROJECT_VENV_PYTHON')]\n"
)


@pytest.fixture
def project(tmp_path: Path, manager: Manager) -> Project:
    path = f"{manager.shim.parent}:/usr/bin:/bin"
    return Project(tmp_path, shipped_system=True, environ={"PATH": path})


def test_a_tool_runs_on_the_program_behind_the_shim(project: Project, manager: Manager) -> None:
    project.tool("mine.py", TOOL)
    for _ in range(2):
        assert project.run("mine").data == [manager.version("1.0")] * 2
    assert manager.asked == 1


def test_a_version_file_chooses_only_for_tools_of_the_project(
    project: Project, manager: Manager
) -> None:
    (project.path / ".python-version").write_text("2.0\n")
    project.tool("mine.py", TOOL)
    project.tool("theirs.py", TOOL, space="user")
    assert project.run("mine").data[0] == manager.version("2.0")
    assert project.run("theirs").data[0] == manager.version("1.0")


def test_a_shim_without_a_program_is_a_missing_interpreter(
    project: Project, manager: Manager
) -> None:
    (manager.root / "version").write_text("3.0\n")
    project.tool("mine.py", TOOL)
    result = project.run("mine")
    assert result.metadata["error_type"] == "InterpreterMissingError"
    runtime = project.system / ".ai/tools/rye/core/runtimes/python_runtime.yaml"
    assert result.error == (
        f"the interpreter of 'rye/core/runtimes/python_runtime' ({runtime}) is missing: "
        f"{manager.shim}: 'testenv which python3' found no program "
        "(testenv: python3: command not found); "
        "install it, or set RYE_PYTHON in the env_config of the tool"
    )


def test_tools_that_ship_with_rye_run_on_the_interpreter_that_runs_rye(
    project: Project, manager: Manager
) -> None:
    for name in ("python3", "python"):
        manager.write(f"shims/{name}", "#!/bin/sh\nexit 9\n")
    plan = project.run("rye/fs/list", dry_run=True).data
    assert plan["argv"][0] == sys.executable
    assert project.run("rye/fs/list").error is None


@pytest.mark.parametrize("space", ["project", "user"])
def test_a_command_that_is_a_shim_is_resolved_too(
    project: Project, manager: Manager, space: SpaceName
) -> None:
    (project.path / ".python-version").write_text("2.0\n")
    for version in ("1.0", "2.0"):
        manager.write(f"versions/{version}/bin/python3", f"#!/bin/sh\necho {version}\n")
    config = {"command": "python3", "args": []}
    project.yaml("t", space=space, executor_id=SUBPROCESS, config=config)
    for _ in range(2):
        assert project.run("t").data == (2.0 if space == "project" else 1.0)
    assert manager.asked == 1


def test_a_command_behind_which_there_is_no_program_is_reported(
    project: Project, manager: Manager
) -> None:
    (manager.root / "version").write_text("3.0\n")
    project.command("t", "python3")
    assert project.run("t").error == (
        f"the program of 't' is missing: {manager.shim}: 'testenv which python3' found no program "
        "(testenv: python3: command not found); install it, or choose another version"
    )
