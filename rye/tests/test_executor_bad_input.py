"""No input makes execute() raise anything but cancellation; each fault has a type."""

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from rye.executor.run import prepare
from rye.executor.run.execute import PrimitiveExecutor
from rye_project import SUBPROCESS, Project

from rye import errors


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.command("tools/hello", "/bin/echo", "hi")
    return project


BAD_IDS: list[Any] = [
    "",
    " ",
    "/",
    "..",
    "../x",
    "/etc/passwd",
    "a//b",
    "a/../b",
    "a\\b",
    "a\0b",
    "a\nb",
    ".hidden",
    "x" * 5000,
    "\ud800",
    None,
    7,
    b"tools/hello",
    ["tools/hello"],
    {"a": 1},
]


@pytest.mark.parametrize("item_id", BAD_IDS, ids=ascii)
def test_no_id_makes_execute_raise(project: Project, item_id: Any) -> None:
    result = project.run(item_id)
    assert not result.success
    assert result.metadata["error_type"] in {"ItemIdError", "ItemNotFoundError"}, result.error
    assert result.error


def test_a_missing_tool_comes_with_the_nearest_names(project: Project) -> None:
    result = project.run("tools/helo")
    assert result.metadata["error_type"] == "ItemNotFoundError"
    assert result.metadata["nearest"] == ["tools/hello"]
    assert result.error == "there is no item 'tools/helo'; did you mean tools/hello?"
    assert result.chain == ()


def test_a_cycle_is_a_result(project: Project) -> None:
    project.yaml("tools/self", executor_id="tools/self")
    assert project.run("tools/self").metadata["error_type"] == "ChainCycleError"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("broken.py", "def (:\n"),
        ("broken.yaml", "a: [\n"),
        ("broken.sh", "#!/bin/sh\n# /// rye\n# executor_id =\n# ///\n"),
        ("empty.yaml", ""),
        ("computed.py", "__executor_id__ = input()\n"),
    ],
)
def test_a_file_that_does_not_parse_is_named(project: Project, name: str, text: str) -> None:
    path = project.tool(f"tools/{name}", text)
    result = project.run(f"tools/{path.stem}")
    assert result.metadata["error_type"] == "ItemFormatError", result.error
    assert result.error is not None
    assert result.error.startswith(str(path))


def test_an_unsigned_tool_does_not_run_and_the_message_ends_in_the_command(
    project: Project,
) -> None:
    path = project.command("tools/hello", "/bin/echo", "hi")
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    result = project.run("tools/hello")
    assert result.metadata["error_type"] == "UnsignedError"
    assert result.error is not None
    assert result.error.endswith(f"rye sign {path}")


def test_a_changed_tool_does_not_run(project: Project) -> None:
    path = project.command("tools/hello", "/bin/echo", "hi")
    path.write_text(path.read_text().replace("hi", "ho"))
    assert project.run("tools/hello").metadata["error_type"] == "ChangedError"


def test_a_changed_file_that_cannot_be_parsed_is_reported_as_changed(project: Project) -> None:
    path = project.command("tools/hello", "/bin/echo", "hi")
    path.write_text(path.read_text() + "{ not yaml")
    assert project.run("tools/hello").metadata["error_type"] == "ChangedError"


def test_a_chain_that_does_not_fit_together_does_not_run(project: Project) -> None:
    limits = {"tools/new": {"max_version": "1.5"}}
    project.yaml(
        "runtimes/true",
        executor_id=SUBPROCESS,
        config={"command": "/bin/true"},
        inputs=["image"],
        child_constraints=limits,
    )
    project.yaml("tools/new", executor_id="runtimes/true", version="2.0.0", outputs=["text"])
    result = project.run("tools/new")
    assert result.metadata["error_type"] == "ChainValidationError"
    assert len(result.metadata["issues"]) == 2
    assert len(result.chain) == 3
    assert project.run("tools/new", validate_chain=False).success


def test_a_tool_by_an_unknown_key_does_not_run(project: Project, tmp_path: Path) -> None:
    from lilux.primitives.signing import generate_keypair, save_keypair

    for file in (project.user / ".ai" / "keys").iterdir():
        file.unlink()
    save_keypair(*generate_keypair(), project.user / ".ai" / "keys")
    assert project.run("tools/hello").metadata["error_type"] == "UntrustedKeyError"


def test_a_fifo_instead_of_a_tool_does_not_hang(project: Project) -> None:
    os.mkfifo(project.path / ".ai" / "tools" / "pipe.yaml")
    assert project.run("pipe").metadata["error_type"] == "UnsafePathError"


def test_a_socket_instead_of_a_tool_is_refused(project: Project, monkeypatch: Any) -> None:
    monkeypatch.chdir(project.path / ".ai" / "tools")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.yaml")
        assert project.run("socket").metadata["error_type"] == "UnsafePathError"


def test_a_link_out_of_the_space_is_refused(project: Project, tmp_path: Path) -> None:
    outside = tmp_path / "outside.yaml"
    outside.write_text(f"executor_id: {SUBPROCESS}\n")
    (project.path / ".ai" / "tools" / "link.yaml").symlink_to(outside)
    assert project.run("link").metadata["error_type"] == "UnsafePathError"


def test_wrong_types_in_the_config_are_results(project: Project) -> None:
    for index, config in enumerate([{"command": 7}, {"command": "/bin/true", "args": "x"}, {}]):
        project.yaml(f"tools/odd{index}", executor_id=SUBPROCESS, config=config)
        result = project.run(f"tools/odd{index}")
        assert not result.success
        assert result.error
        assert result.metadata["error_type"] != "TypeError"


def test_a_version_that_cannot_be_a_file_name_is_a_result(project: Project) -> None:
    project.command("tools/odd", "/bin/true", version="a/b")
    assert project.run("tools/odd").error is not None


def test_a_defect_is_a_result_that_shows_its_place_and_no_value(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("the password is hunter2")

    monkeypatch.setattr(prepare, "resolve_anchor", broken)
    result = project.run("tools/hello")
    assert not result.success
    assert result.metadata["error_type"] == "ZeroDivisionError"
    assert result.error is not None
    assert result.error.startswith("unexpected ZeroDivisionError at test_executor_bad_input.py:")
    assert result.error.endswith("; this is a defect of rye or of a primitive: please report it")
    assert "hunter2" not in repr(result)
    assert len(result.chain) == 2


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, asyncio.CancelledError])
def test_interrupts_are_never_swallowed(
    project: Project, monkeypatch: pytest.MonkeyPatch, interrupt: type[BaseException]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise interrupt

    monkeypatch.setattr(prepare, "resolve_anchor", broken)
    with pytest.raises(interrupt):
        project.run("tools/hello")


def test_every_error_type_of_a_refusal_is_a_class_of_the_public_tree(project: Project) -> None:
    for item_id in ("nope", "../x"):
        name = project.run(item_id).metadata["error_type"]
        assert issubclass(getattr(errors, name), errors.RyeError)


def test_a_missing_project_is_a_result(tmp_path: Path) -> None:
    async def call() -> Any:
        async with PrimitiveExecutor(
            tmp_path / "nowhere", tmp_path / "nobody", tmp_path / "nothing"
        ) as executor:
            return await executor.execute("tools/hello")

    assert asyncio.run(call()).metadata["error_type"] == "ItemNotFoundError"
