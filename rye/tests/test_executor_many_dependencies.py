"""A tool with many dependencies: verified once, read on each call, and never on the event loop."""

import asyncio
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rye.errors import UntrustedKeyError
from rye.executor.chain import snapshot
from rye.executor.chain.dependencies import FEW_FILES
from rye.executor.run.execute import PrimitiveExecutor
from rye.executor.run.result import ExecutionResult
from rye.trust.store import TrustStore
from rye.trust.verify import verify_item
from rye_project import SUBPROCESS, Project

FILES = 3 * FEW_FILES
TOOL = "kit/tool"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.yaml(
        "runtimes/true",
        executor_id=SUBPROCESS,
        space="system",
        config={"command": "/bin/true"},
        verify_deps={"scope": "tool_dir", "extensions": [".py"]},
    )
    project.yaml(TOOL, executor_id="runtimes/true")
    signed = project.tool("kit/lib/m0.py", "x = 1\n").read_bytes()
    for number in range(1, FILES):
        # A signature is over the content alone, so a copy is signed as well.
        (project.path / f".ai/tools/kit/lib/m{number}.py").write_bytes(signed)
    return project


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files whose signatures were verified, in this order."""
    files: list[Path] = []

    def verify(file: Any, *rest: Any) -> Any:
        files.append(file.path)
        return verify_item(file, *rest)

    monkeypatch.setattr(snapshot, "verify_item", verify)
    return files


def planned_twice(project: Project, between: Callable[[], object] = lambda: None) -> list[str]:
    """The type of the error of each of two calls of one executor, empty for a success."""

    async def body() -> list[str]:
        async with PrimitiveExecutor(context=project.context) as executor:
            first = await executor.execute(TOOL, dry_run=True)
            between()
            second = await executor.execute(TOOL, dry_run=True)
        return [one.metadata.get("error_type", "") for one in (first, second)]

    return asyncio.run(body())


def test_a_verified_dependency_is_not_verified_again(
    project: Project, verified: list[Path]
) -> None:
    def forget() -> None:
        assert len(verified) == FILES
        verified.clear()

    assert planned_twice(project, forget) == ["", ""]
    assert verified == []


def test_only_a_changed_dependency_is_verified_again(
    project: Project, verified: list[Path]
) -> None:
    path = project.path / ".ai/tools/kit/lib/m7.py"

    def change() -> None:
        verified.clear()
        path.write_text(path.read_text().replace("x = 1", "x = 2"))  # as long as before

    assert planned_twice(project, change) == ["", "ChangedError"]
    assert verified == [path]


def test_a_removed_key_makes_every_dependency_untrusted(
    project: Project, verified: list[Path]
) -> None:
    # The library is signed by a key of which the trust store has the public half only.
    keys = project.user / ".ai" / "keys"
    friend = TrustStore(project.context).add((keys / "public_key.pem").read_bytes(), "a friend")
    for file in keys.iterdir():
        file.unlink()

    def distrust() -> None:
        TrustStore(project.context).remove(friend.fingerprint)

    assert planned_twice(project, distrust) == ["", "UntrustedKeyError"]


def test_a_link_in_place_of_a_verified_dependency_is_refused(
    project: Project, tmp_path: Path
) -> None:
    path = project.path / ".ai/tools/kit/lib/m3.py"

    def swap() -> None:
        elsewhere = tmp_path / "elsewhere.py"
        elsewhere.write_bytes(path.read_bytes())
        path.unlink()
        path.symlink_to(elsewhere)

    assert planned_twice(project, swap) == ["", "AnchorError"]


@pytest.mark.parametrize("warm", [False, True])
def test_other_tasks_run_while_dependencies_are_verified(
    project: Project, monkeypatch: pytest.MonkeyPatch, warm: bool
) -> None:
    verify_file = snapshot.Snapshot.verify_file

    async def body() -> ExecutionResult:
        async with PrimitiveExecutor(context=project.context) as executor:
            if warm:
                await executor.execute(TOOL, dry_run=True)
            verifying, went_on = threading.Event(), threading.Event()

            def verify(self: snapshot.Snapshot, path: str, root: Path, name: str) -> str:
                verifying.set()
                assert went_on.wait(15), "the event loop is blocked"
                return verify_file(self, path, root, name)

            monkeypatch.setattr(snapshot.Snapshot, "verify_file", verify)
            call = asyncio.create_task(executor.execute(TOOL, dry_run=True))
            while not verifying.is_set():
                await asyncio.sleep(0.001)
            went_on.set()
            return await call

    result = asyncio.run(body())
    assert result.success, result.error


def test_a_verdict_is_kept_for_the_state_of_the_trust_store_that_decided_it(
    project: Project,
) -> None:
    """While a call verifies its dependencies, another may refresh the trust store."""
    path = project.path / ".ai/tools/kit/lib/m0.py"
    public_key = project.user / ".ai/keys/public_key.pem"
    data = public_key.read_bytes()
    public_key.unlink()
    library = snapshot.Library(project.context)
    first = library.snapshot()
    TrustStore(project.context).add(data, "a friend")
    library.snapshot()
    assert first.verify_file(str(path), path.parent, "m0")
    shutil.rmtree(project.user / ".ai/trusted_keys")
    now = library.snapshot()
    assert now.trust_stamp != first.trust_stamp  # although the files are as they were
    with pytest.raises(UntrustedKeyError):
        now.verify_file(str(path), path.parent, "m0")
