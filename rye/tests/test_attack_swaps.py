"""Attacks that change files during a call."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rye.errors import RyeError
from rye.items.reader import read_item
from rye.spaces.resolver import Resolver
from rye_project import SUBPROCESS, Project

ROUNDS = 150
TOOL = 'version: "1.0.0"\nexecutor_id: {executor}\nconfig: {{command: echo, args: [{word}]}}\n'
REFUSALS = {
    "UnsafePathError", "UnsignedError", "ChangedError", "ItemNotFoundError", "AmbiguousIdError",
}  # fmt: skip


PYTHON = """{line}__version__ = "1.0.0"
__executor_id__ = "rye/core/runtimes/python_runtime"


def main(**params):
    return "{word}"
"""


@contextlib.contextmanager
def swapping(*states: Callable[[], None]) -> Iterator[None]:
    """Create one state after the other in a thread, as fast as possible, until the block ends."""
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            for state in states:
                state()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def put(path: Path, content: bytes) -> Callable[[], None]:
    """A state in which the file has this content; it is replaced atomically."""

    def state() -> None:
        new = path.with_name(f".{path.name}.new")
        new.write_bytes(content)
        new.replace(path)

    return state


def link(path: Path, target: Path) -> Callable[[], None]:
    """A state in which the path is a link to the target."""

    def state() -> None:
        new = path.with_name(f".{path.name}.new")
        new.symlink_to(target)
        new.replace(path)

    return state


def outcomes(project: Project, item_id: str, rounds: int = ROUNDS) -> set[str]:
    """Return the different outcomes of the calls: the output, or the type of the error."""

    async def calls() -> set[str]:
        seen: set[str] = set()
        async with project.executor() as executor:
            for _ in range(rounds):
                result = await executor.execute(item_id, use_lockfile=False)
                seen.add(result.data["stdout"] if result.success else result.metadata["error_type"])
        return seen

    return asyncio.run(calls())


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_swapping_a_tool_for_a_link_never_runs_the_target(project: Project, tmp_path: Path) -> None:
    tool = project.tool("t.yaml", TOOL.format(executor=SUBPROCESS, word="good"))
    outside = tmp_path / "evil.yaml"
    outside.write_text(TOOL.format(executor=SUBPROCESS, word="evil"))
    with swapping(link(tool, outside), put(tool, tool.read_bytes())):
        seen = outcomes(project, "t")
    assert seen <= {"good\n", *REFUSALS}


def test_swapping_the_content_of_a_tool_never_runs_the_change(project: Project) -> None:
    tool = project.tool("t.yaml", TOOL.format(executor=SUBPROCESS, word="good"))
    good = tool.read_bytes()
    with swapping(put(tool, good.replace(b"good", b"evil")), put(tool, good)):
        seen = outcomes(project, "t")
    assert seen <= {"good\n", *REFUSALS}


def test_swapping_the_content_of_a_runtime_never_runs_the_change(project: Project) -> None:
    runtime = project.yaml("runtimes/echo", executor_id=SUBPROCESS, config={"command": "echo"})
    project.yaml("t", executor_id="runtimes/echo", config={"args": ["good"]})
    good = runtime.read_bytes()
    with swapping(put(runtime, good.replace(b"echo", b"true")), put(runtime, good)):
        seen = outcomes(project, "t")
    assert seen <= {"good\n", *REFUSALS}


def test_swapping_a_folder_for_a_link_never_runs_a_tool_outside_the_space(
    project: Project, tmp_path: Path
) -> None:
    """Even a signed tool does not run if its file is outside the space."""
    inside = project.tool("folder/t.yaml", TOOL.format(executor=SUBPROCESS, word="good")).parent
    outside = tmp_path / "outside"
    outside.mkdir()
    away = inside.with_name("away")
    moved = TOOL.format(executor=SUBPROCESS, word="elsewhere")
    (outside / "t.yaml").write_bytes(project.tool("moved.yaml", moved).read_bytes())

    def exchange() -> None:
        inside.rename(away)
        inside.symlink_to(outside)

    def restore() -> None:
        inside.unlink()
        away.rename(inside)

    with swapping(exchange, restore):
        seen = outcomes(project, "folder/t")
    assert seen <= {"good\n", *REFUSALS}


def test_swapping_a_tool_for_a_link_never_reads_the_target(
    project: Project, tmp_path: Path
) -> None:
    """The reader alone, without the signature check that follows it in a call."""
    tool = project.tool("t.yaml", TOOL.format(executor=SUBPROCESS, word="good"))
    good = tool.read_bytes()
    outside = tmp_path / "evil.yaml"
    outside.write_bytes(b"evil")
    resolver = Resolver(project.context)
    with swapping(link(tool, outside), put(tool, good)):
        for _ in range(ROUNDS * 5):
            with contextlib.suppress(RyeError):
                found = resolver.resolve("t")
                assert found.path is not None
                assert read_item(found.path, found.space.root).content == good


def test_swapping_a_lockfile_for_a_link_never_writes_to_the_target(
    project: Project, tmp_path: Path
) -> None:
    project.tool("t.yaml", TOOL.format(executor=SUBPROCESS, word="good"))
    lockfile = project.lockfile("t")
    lockfile.parent.mkdir()
    precious = tmp_path / "precious"
    precious.write_text("precious")

    def unlink() -> None:
        with contextlib.suppress(FileNotFoundError):
            lockfile.unlink()

    async def calls() -> None:
        async with project.executor() as executor:
            for _ in range(30):
                await executor.execute("t")

    with swapping(link(lockfile, precious), unlink):
        asyncio.run(calls())
    assert precious.read_text() == "precious"


PYTHON_HELPER = "from {module} import word\n\n\ndef main():\n    return word()\n"
BLOCK = '{sign} /// rye\n{sign} executor_id = "{runtime}"\n{sign} ///\n'
RUNTIMES = "rye/core/runtimes"
# The program of each runtime, and the files of a tool; all of them say "good".
SWAPPED = {
    "python": ("python", {"t.py": PYTHON.format(line="", word="good")}),
    "python with a module": (
        "python",
        {
            "__init__.py": "",
            "words.py": 'def word():\n    return "good"\n',
            "t.py": f'__executor_id__ = "{RUNTIMES}/python_runtime"\n'
            + PYTHON_HELPER.format(module="words"),
        },
    ),
    "python script": (
        "python",
        {"t.py": f'__executor_id__ = "{RUNTIMES}/python_script_runtime"\nprint("good")\n'},
    ),
    "bash": (
        "bash",
        {"t.sh": BLOCK.format(sign="#", runtime=f"{RUNTIMES}/bash_runtime") + "echo good\n"},
    ),
    "awk": (
        "awk",
        {"t.awk": BLOCK.format(sign="#", runtime="runtimes/awk") + 'BEGIN { print "good" }\n'},
    ),
    "node": (
        "node",
        {
            "t.mjs": BLOCK.format(sign="//", runtime=f"{RUNTIMES}/node_runtime")
            + 'export const main = () => "good";\n'
        },
    ),
    "node with a module": (
        "node",
        {
            "words.mjs": 'export const word = "good";\n',
            "t.mjs": BLOCK.format(sign="//", runtime=f"{RUNTIMES}/node_runtime")
            + 'import { word } from "./words.mjs";\nexport const main = () => word;\n',
        },
    ),
    "uv": (
        "uv",
        {"t.py": f'__executor_id__ = "{RUNTIMES}/uv_script_runtime"\nprint("good")\n'},
    ),
    "library of a runtime": (
        "sh",
        {
            "lib/run.sh": "# /// rye\n# ///\necho good\n",
            "own.yaml": f"tool_type: runtime\nexecutor_id: {SUBPROCESS}\n"
            "env_config:\n"
            "  interpreter: {type: system_binary, binary: sh, var: OWN_SH, fallback: sh}\n"
            "anchor: {mode: never, lib: lib}\n"
            'config: {command: "${OWN_SH}", args: ["{runtime_lib}/run.sh"]}\n',
            "t.yaml": "executor_id: kit/own\n",
        },
    ),
}


@pytest.mark.parametrize("case", SWAPPED)
def test_files_replaced_while_their_interpreter_starts_do_not_run(
    tmp_path: Path, case: str
) -> None:
    """The worst case: the interpreter itself replaces the files just before opening them."""
    program, files = SWAPPED[case]
    real = sys.executable if program == "python" else shutil.which(program)
    if real is None:
        pytest.skip(f"{program} is not installed")
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    project = Project(
        tmp_path,
        shipped_system=True,
        environ={"PATH": f"{bin_folder}:{os.environ['PATH']}", "UV_OFFLINE": "1"},
    )
    project.yaml(
        "runtimes/awk",
        executor_id=SUBPROCESS,
        tool_type="runtime",
        config={"command": "awk", "args": ["-f", "{tool_path}"]},
    )
    if "node with" in case:
        (project.path / ".ai/tools/kit").mkdir()
        (project.path / ".ai/tools/kit/package.json").write_text("{}")
    originals = [project.tool(f"kit/{name}", text) for name, text in files.items()]
    swaps = []
    for number, path in enumerate(originals):
        evil = tmp_path / f"evil{number}"
        evil.write_bytes(path.read_bytes().replace(b"good", b"evil"))
        swaps.append(f"cp {evil} {path}.new && mv {path}.new {path}")
    wrapper = bin_folder / program
    if program == "python":
        wrapper = project.path / ".venv/bin/python"
        wrapper.parent.mkdir(parents=True)
    wrapper.write_text("\n".join(["#!/bin/sh", *swaps, f'exec {real} "$@"\n']))
    wrapper.chmod(0o755)
    result = project.run("kit/t")
    assert result.success, result.error
    said = result.data["stdout"].strip() if isinstance(result.data, dict) else result.data
    assert said == "good"
    assert any(b"evil" in path.read_bytes() for path in originals)
    assert not project.run("kit/t").success


def test_a_copy_that_was_changed_does_not_run(tmp_path: Path) -> None:
    """Not even by the same user, who can change the modes."""
    project = Project(tmp_path, shipped_system=True)
    project.tool("kit/__init__.py", "")
    project.tool("kit/words.py", 'def word():\n    return "good"\n')
    project.tool("kit/t.py", SWAPPED["python with a module"][1]["t.py"])
    first = project.run("kit/t")
    assert first.data == "good"
    copy = project.user / ".ai/cache/closures" / first.metadata["closure"]

    def unlock() -> None:
        for folder in (copy, copy / "tool", copy / "lib"):
            folder.chmod(0o700)

    def overwrite(name: str) -> None:
        path = copy / name
        path.chmod(0o600)
        path.write_bytes(path.read_bytes().replace(b"good", b"evil").replace(b"_load", b"_evil"))

    def plant() -> None:
        (copy / "tool/json.py").write_text("raise SystemExit(9)")

    def link() -> None:
        (copy / "tool/words.py").unlink()
        evil = tmp_path / "evil.py"
        evil.write_text('def word():\n    return "evil"\n')
        (copy / "tool/words.py").symlink_to(evil)

    for change in (
        lambda: overwrite("tool/words.py"),
        lambda: overwrite("lib/rye_run_tool.py"),
        plant,
        link,
        lambda: shutil.rmtree(copy),
        (copy / "tool/words.py").unlink,
        lambda: (copy / "tool/words.py").chmod(0o700),
    ):
        unlock()
        change()
        assert project.run("kit/t").data == "good"
        assert (copy / "tool/words.py").stat().st_mode & 0o777 == 0o400
    assert project.run("kit/t").metadata["closure"] == first.metadata["closure"]
