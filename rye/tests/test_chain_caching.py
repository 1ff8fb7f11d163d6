"""The caches: used while nothing changed, dropped as soon as a new build would differ."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from rye.errors import ItemNotFoundError, UnsafePathError, UntrustedKeyError
from rye.executor.caches import BoundedDict
from rye.executor.chain.snapshot import CacheEntry, Library
from rye.executor.run.execute import PrimitiveExecutor
from rye.trust.store import TrustStore
from rye_project import SUBPROCESS, Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.yaml("tools/hello", executor_id="runtimes/plain")
    project.yaml("runtimes/plain", executor_id=SUBPROCESS, space="system")
    return project


def within(project: Project, body: Callable[[PrimitiveExecutor], None]) -> None:
    async def call() -> None:
        async with project.executor() as executor:
            body(executor)

    asyncio.run(call())


def test_an_unchanged_chain_is_built_once(project: Project) -> None:
    def body(executor: PrimitiveExecutor) -> None:
        assert executor._build_chain("tools/hello") is executor._build_chain("tools/hello")

    within(project, body)


def test_cache_entries_have_the_hash_of_their_files(
    project: Project,
) -> None:
    from hashlib import sha256

    def body(executor: PrimitiveExecutor) -> None:
        chain = executor._build_chain("tools/hello")
        entry = executor._chain_cache["tools/hello"]
        assert isinstance(entry, CacheEntry)
        assert entry.data is chain
        assert len(entry.content_hash) == 64
        path = chain[0].path
        assert path is not None
        metadata = executor._metadata_cache[path]
        assert metadata.data is chain[0].metadata
        assert metadata.content_hash == sha256(path.read_bytes()).hexdigest()

    within(project, body)


@pytest.mark.parametrize("name", ["tools/hello", "runtimes/plain"])
def test_a_changed_element_gives_a_new_chain(project: Project, name: str) -> None:
    def body(executor: PrimitiveExecutor) -> None:
        before = executor._build_chain("tools/hello")
        if name == "tools/hello":
            project.yaml(name, executor_id="runtimes/plain", version="2.0.0")
        else:
            project.yaml(name, executor_id=SUBPROCESS, version="2.0.0", space="system")
        after = executor._build_chain("tools/hello")
        assert [one.version for one in before] != [one.version for one in after]
        assert "2.0.0" in [one.version for one in after]

    within(project, body)


def test_content_is_compared_and_not_the_time_stamp(project: Project) -> None:
    """A change of equal length with the old time stamp is noticed."""
    import os

    tool = project.yaml("tools/hello", executor_id="runtimes/plain", description="one")

    def body(executor: PrimitiveExecutor) -> None:
        before = executor._build_chain("tools/hello")
        status = tool.stat()
        project.yaml("tools/hello", executor_id="runtimes/plain", description="two")
        os.utime(tool, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert executor._build_chain("tools/hello")[0].integrity != before[0].integrity

    within(project, body)


def test_a_file_that_appears_in_a_higher_space_shadows_a_cached_element(project: Project) -> None:
    def body(executor: PrimitiveExecutor) -> None:
        assert executor._build_chain("tools/hello")[1].space == "system"
        mine = project.yaml("runtimes/plain", executor_id=SUBPROCESS, space="user")
        assert executor._build_chain("tools/hello")[1].path == mine
        mine.unlink()
        assert executor._build_chain("tools/hello")[1].space == "system"

    within(project, body)


def test_a_removed_key_invalidates_a_cached_chain(project: Project) -> None:
    public_key = project.user / ".ai" / "keys" / "public_key.pem"
    TrustStore(project.context).add(public_key.read_bytes(), "a friend")
    for file in public_key.parent.iterdir():
        file.unlink()

    def body(executor: PrimitiveExecutor) -> None:
        signer = executor._build_chain("tools/hello")[0].signer
        TrustStore(project.context).remove(signer)
        with pytest.raises(UntrustedKeyError):
            executor._build_chain("tools/hello")
        assert "tools/hello" not in executor._chain_cache

    within(project, body)


def test_a_removed_file_invalidates_a_cached_chain(project: Project) -> None:
    def body(executor: PrimitiveExecutor) -> None:
        tool = executor._build_chain("tools/hello")[0].path
        assert tool is not None
        tool.unlink()
        with pytest.raises(ItemNotFoundError):
            executor._build_chain("tools/hello")

    within(project, body)


def test_a_link_to_the_same_content_invalidates_a_cached_chain(
    project: Project, tmp_path: Path
) -> None:
    def body(executor: PrimitiveExecutor) -> None:
        tool = executor._build_chain("tools/hello")[0].path
        assert tool is not None
        outside = tmp_path / "hello.yaml"
        tool.rename(outside)
        tool.symlink_to(outside)
        with pytest.raises(UnsafePathError):
            executor._build_chain("tools/hello")

    within(project, body)


def test_a_bounded_dict_drops_the_oldest_entry() -> None:
    cache: BoundedDict[str, int] = BoundedDict(2)
    cache["a"], cache["b"], cache["b"], cache["c"] = 1, 2, 3, 4
    assert cache == {"b": 3, "c": 4}


def test_concurrent_calls_share_the_caches(project: Project) -> None:
    project.command("tools/echo", "/bin/echo", "hi")

    async def call() -> list[object]:
        async with project.executor() as executor:
            calls: list[Awaitable[object]] = [executor.execute("tools/echo") for _ in range(20)]
            return list(await asyncio.gather(*calls))

    results = asyncio.run(call())
    assert [getattr(result, "error", "?") for result in results] == [None] * 20


def test_a_call_that_read_other_bytes_does_not_use_a_cached_chain(project: Project) -> None:
    library = Library(project.context)
    first = library.snapshot()
    files = first.files([first.resolve("tools/hello")])
    project.yaml("tools/hello", executor_id="runtimes/plain", version="2.0.0")
    second = library.snapshot()
    changed = second.files([second.resolve("tools/hello")])
    assert not second.reads_again(files)
    assert second.reads_again(changed)
