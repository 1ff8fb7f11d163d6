"""Many calls at once on one executor, small ones on the event loop and large ones in a thread."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from rye.executor.chain import snapshot
from rye.executor.chain.dependencies import FEW_ENTRIES, FEW_FILES
from rye.executor.config.build import ExecutionConfig
from rye.executor.run.execute import PrimitiveExecutor
from rye.executor.run.parameters import ParameterGate
from rye.executor.run.primitives import PrimitivePool
from rye.executor.run.result import ExecutionResult
from rye.trust.verify import verify_item
from rye_project import SUBPROCESS, Project

FILES = 2 * FEW_FILES
LARGE, SMALL = "large/tool", "small/tool"


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
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    for tool in (LARGE, SMALL):
        project.yaml(tool, executor_id="runtimes/true", config_schema=schema)
    signed = project.tool("small/one.py", "x = 1\n").read_bytes()
    for number in range(FILES):
        # A signature is over the content alone, so a copy is signed as well.
        path = project.path / f".ai/tools/large/m{number}.py"
        path.write_bytes(signed)
    return project


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """The names of the threads that verified the files of each folder."""
    seen: dict[str, set[str]] = {}

    def verify(file: Any, *rest: Any) -> Any:
        seen.setdefault(file.path.parent.name, set()).add(threading.current_thread().name)
        return verify_item(file, *rest)

    monkeypatch.setattr(snapshot, "verify_item", verify)
    return seen


def execute(project: Project, item_id: str, **options: Any) -> ExecutionResult:
    async def body() -> ExecutionResult:
        async with PrimitiveExecutor(context=project.context) as executor:
            return await executor.execute(item_id, **options)

    return asyncio.run(body())


def test_few_dependencies_are_verified_on_the_loop_and_many_in_one_thread(
    project: Project, threads: dict[str, set[str]]
) -> None:
    async def body() -> None:
        async with PrimitiveExecutor(context=project.context) as executor:
            calls = [executor.execute(item, dry_run=True) for item in (SMALL, LARGE, SMALL, LARGE)]
            for result in await asyncio.gather(*calls):
                assert result.success, result.error

    asyncio.run(body())
    assert threads == {"small": {"MainThread"}, "large": {"rye-verify_0"}}


def test_a_folder_with_many_other_files_is_searched_in_the_thread(
    project: Project, threads: dict[str, set[str]]
) -> None:
    for number in range(FEW_ENTRIES):
        (project.path / f".ai/tools/small/{number}.txt").touch()
    assert execute(project, SMALL, dry_run=True).success
    assert threads == {"small": {"rye-verify_0"}}


def test_many_tasks_share_one_executor(project: Project) -> None:
    async def body() -> list[ExecutionResult]:
        async with PrimitiveExecutor(context=project.context) as executor:

            async def call(number: int) -> ExecutionResult:
                item = LARGE if number % 3 == 0 else SMALL
                return await executor.execute(item, {"n": number}, dry_run=number % 2 == 0)

            return await asyncio.gather(*(call(number) for number in range(60)))

    results = asyncio.run(body())
    assert [one.error for one in results if not one.success] == []
    plans = [one.metadata["plan"] for one in results if "plan" in one.metadata]
    assert {(plan["item_id"], len(plan["dependencies"])) for plan in plans} == {
        (LARGE, FILES),
        (SMALL, 1),
    }
    assert project.lockfile(LARGE).exists()
    assert project.lockfile(SMALL).exists()


def test_an_executor_in_each_of_many_threads(project: Project) -> None:
    """Executors in several threads share only the files on disk."""
    errors: list[str | None] = []

    def work() -> None:
        errors.extend(execute(project, item).error for item in (SMALL, LARGE))

    started = [threading.Thread(target=work) for _ in range(6)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(60)
    assert errors == [None] * 12


def test_a_large_call_that_is_refused_lists_its_chain(project: Project) -> None:
    refused = execute(project, LARGE, parameters={"n": "x"})
    assert refused.metadata["error_type"] == "ParameterError"
    assert [one["item_id"] for one in refused.chain] == [LARGE, "runtimes/true", SUBPROCESS]


def test_a_changed_file_among_many_is_refused(project: Project) -> None:
    path = project.path / ".ai/tools/large/m7.py"
    path.write_text(path.read_text().replace("x = 1", "x = 2"))
    assert execute(project, LARGE).metadata["error_type"] == "ChangedError"


def test_large_calls_are_checked_against_their_lock(project: Project) -> None:
    assert execute(project, LARGE).success
    (project.path / ".ai/tools/large/m7.py").unlink()
    assert execute(project, LARGE).metadata["error_type"] == "LockUpgradeError"


def test_a_cancelled_large_call_leaves_the_executor_usable(project: Project) -> None:
    async def body() -> None:
        async with PrimitiveExecutor(context=project.context) as executor:
            task = asyncio.create_task(executor.execute(LARGE, dry_run=True))
            await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await executor.execute(LARGE, dry_run=True)).success
            await executor.aclose()
            assert (await executor.execute(LARGE, dry_run=True)).success

    asyncio.run(body())


def test_parameters_are_read_at_one_moment(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller who changes them after the check must not change what runs."""
    project.yaml(
        "large/shown",
        executor_id="runtimes/true",
        config_schema={"type": "object", "properties": {"n": {"type": "array"}}},
        config={"args": ["{n}"]},
    )
    parameters: dict[str, Any] = {"n": ["checked"]}
    admitted, changed = threading.Event(), threading.Event()
    admit = ParameterGate.admit

    def slow_admit(self: ParameterGate, tool: Any, given: Any) -> dict[str, Any]:
        result = admit(self, tool, given)
        admitted.set()
        changed.wait(0.5)
        return result

    monkeypatch.setattr(ParameterGate, "admit", slow_admit)

    async def body() -> ExecutionResult:
        async with PrimitiveExecutor(context=project.context) as executor:
            call = asyncio.create_task(executor.execute("large/shown", parameters, dry_run=True))
            while not admitted.is_set():
                await asyncio.sleep(0.001)
            parameters["n"][0] = "changed"
            changed.set()
            return await call

    assert asyncio.run(body()).data["argv"] == ["/bin/true", "checked"]


def test_a_primitive_may_be_added_while_others_are_closed() -> None:
    class Slow:
        async def execute(self, config: Any, params: Any) -> None:
            pass

        async def close(self) -> None:
            await asyncio.sleep(0)

    async def body() -> None:
        pool = PrimitivePool({"first": Slow, "second": Slow}, Path())
        await pool.run(ExecutionConfig(primitive_id="first", config={}, params={}))
        closing = asyncio.create_task(pool.aclose())
        await asyncio.sleep(0)
        await pool.run(ExecutionConfig(primitive_id="second", config={}, params={}))
        await closing

    asyncio.run(body())


def test_the_thread_ends_after_the_executor_was_closed(project: Project) -> None:
    assert execute(project, LARGE).success
    deadline = time.monotonic() + 15
    while any(one.name.startswith("rye-verify") for one in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_large_call_that_runs_while_the_executor_is_closed_succeeds(project: Project) -> None:
    async def body() -> list[ExecutionResult]:
        executor = PrimitiveExecutor(context=project.context)
        before = [asyncio.create_task(executor.execute(LARGE, dry_run=True)) for _ in range(3)]
        await asyncio.sleep(0)
        await executor.aclose()
        return [*await asyncio.gather(*before), await executor.execute(LARGE, dry_run=True)]

    assert [one.error for one in asyncio.run(body())] == [None] * 4
