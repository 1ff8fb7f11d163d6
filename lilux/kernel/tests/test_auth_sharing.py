"""Concurrent tasks, threads and processes share one refresh, and no token is lost."""

import asyncio
import contextlib
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from lilux.primitives.errors import AuthenticationRequired, RefreshError
from lilux.runtime.auth import AuthStore
from lilux.runtime.auth.files import locked, name_digest
from oauth_server import DEADLINE_SECONDS, TokenServer, json_answer

NOW = 1_000_000.0


class CountingClock:
    """A clock that counts how often it was read.

    A store reads it after loading the stored token: a caller that has read the clock has seen an
    expired token and will request a refresh. The refresh reads it once more before its request.
    """

    def __init__(self, now: float) -> None:
        self._now = now
        self._count = 0
        self._changed = threading.Condition()

    def __call__(self) -> float:
        with self._changed:
            self._count += 1
            self._changed.notify_all()
        return self._now

    def wait_for(self, count: int) -> None:
        with self._changed:
            seen = self._changed.wait_for(lambda: self._count >= count, DEADLINE_SECONDS)
        assert seen, f"{self._count} of {count} callers read the clock"


def make_store(folder: Path, clock: Callable[[], float] = lambda: NOW, **more: Any) -> AuthStore:
    return AuthStore(storage_dir=folder / "auth", keychain=None, clock=clock, **more)


def store_expired(folder: Path, url: str | None, service: str = "github") -> None:
    """Store a token that has expired at ``NOW``."""
    make_store(folder, lambda: NOW - 3601).set_token(
        service, "access-0", "refresh-0", token_url=url, client_id="client"
    )


def refresh_lock(folder: Path) -> Path:
    return folder / "auth" / f"{name_digest('lilux', 'github')}.refresh-lock"


def test_tasks_of_one_loop_share_one_refresh(tmp_path: Path) -> None:
    clock = CountingClock(NOW)

    async def ask_all(server: TokenServer) -> list[str]:
        store = make_store(tmp_path, clock)
        tasks = [asyncio.create_task(store.get_token("github")) for _ in range(50)]
        await asyncio.to_thread(clock.wait_for, 51)
        await asyncio.to_thread(server.wait_for_requests, 1)
        server.release()
        return await asyncio.gather(*tasks)

    with TokenServer() as server:
        server.hold()
        store_expired(tmp_path, server.url)
        tokens = asyncio.run(ask_all(server))

    assert tokens == ["access-1"] * 50
    assert len(server.requests) == 1


def test_loops_in_several_threads_share_one_refresh(
    tmp_path: Path,
) -> None:
    clock = CountingClock(NOW)

    def ask() -> str:
        return asyncio.run(make_store(tmp_path, clock).get_token("github"))

    with TokenServer() as server, ThreadPoolExecutor(8) as threads:
        server.hold()
        store_expired(tmp_path, server.url)
        asked = [threads.submit(ask) for _ in range(8)]
        clock.wait_for(9)
        server.wait_for_requests(1)
        server.release()
        tokens = [future.result(DEADLINE_SECONDS) for future in asked]

    assert tokens == ["access-1"] * 8
    assert len(server.requests) == 1


ASKING_PROCESS = f"""
import asyncio, sys
from lilux.runtime.auth import AuthStore

said = False

def clock():
    global said
    if not said:
        said = True
        print("read", flush=True)
    return {NOW}

async def main():
    store = AuthStore(storage_dir=sys.argv[1], keychain=None, clock=clock)
    print(await store.get_token("github"), flush=True)

asyncio.run(main())
"""


def start(script: str, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", script, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def read_line(child: "subprocess.Popen[str]") -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def finish(child: "subprocess.Popen[str]") -> str:
    output, errors = child.communicate(timeout=DEADLINE_SECONDS)
    assert (child.returncode, errors) == (0, "")
    return output.strip()


def test_processes_share_one_refresh(tmp_path: Path) -> None:
    with TokenServer() as server:
        server.hold()
        store_expired(tmp_path, server.url)
        children = [start(ASKING_PROCESS, str(tmp_path / "auth")) for _ in range(3)]
        assert [read_line(child) for child in children] == ["read"] * 3
        server.wait_for_requests(1)
        server.release()
        tokens = [finish(child) for child in children]

    assert tokens == ["access-1"] * 3
    assert len(server.requests) == 1


def test_process_killed_during_its_refresh_does_not_block_others(tmp_path: Path) -> None:
    with TokenServer(lambda _: json_answer(access_token="access-new")) as server:
        server.hold()
        store_expired(tmp_path, server.url)
        child = start(ASKING_PROCESS, str(tmp_path / "auth"))
        server.wait_for_requests(1)
        child.kill()
        child.communicate()
        server.release()

        assert asyncio.run(make_store(tmp_path).get_token("github")) == "access-new"
        assert len(server.requests) == 2


def test_services_are_refreshed_independently(tmp_path: Path) -> None:
    async def ask_both(server: TokenServer) -> list[str]:
        store = make_store(tmp_path)
        both = asyncio.gather(store.get_token("github"), store.get_token("gitlab"))
        await asyncio.to_thread(server.wait_for_requests, 2)
        server.release()
        return list(await both)

    with TokenServer(lambda _: json_answer(access_token="access-new")) as server:
        server.hold()
        store_expired(tmp_path, server.url, "github")
        store_expired(tmp_path, server.url, "gitlab")
        assert asyncio.run(ask_both(server)) == ["access-new"] * 2


@pytest.mark.parametrize("cancelled", [0, 1], ids=["first", "second"])
def test_cancelled_caller_does_not_cancel_the_others(tmp_path: Path, cancelled: int) -> None:
    clock = CountingClock(NOW)

    async def ask_and_cancel(server: TokenServer) -> str:
        store = make_store(tmp_path, clock)
        tasks = [asyncio.create_task(store.get_token("github"))]
        await asyncio.to_thread(server.wait_for_requests, 1)
        tasks.append(asyncio.create_task(store.get_token("github")))
        await asyncio.to_thread(clock.wait_for, 3)
        leaver = tasks.pop(cancelled)
        leaver.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaver
        server.release()
        return await tasks[0]

    with TokenServer() as server:
        server.hold()
        store_expired(tmp_path, server.url)
        assert asyncio.run(ask_and_cancel(server)) == "access-1"

    assert len(server.requests) == 1


def test_refresh_without_waiting_callers_is_still_stored(tmp_path: Path) -> None:
    async def ask_and_leave(server: TokenServer) -> None:
        task = asyncio.create_task(make_store(tmp_path).get_token("github"))
        await asyncio.to_thread(server.wait_for_requests, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with TokenServer() as server:
        server.hold()
        store_expired(tmp_path, server.url)
        asyncio.run(ask_and_leave(server))
        server.release()

        assert asyncio.run(make_store(tmp_path).get_token("github")) == "access-1"
        assert len(server.requests) == 1


LEAVING_PROCESS = f"""
import asyncio, sys
from lilux.runtime.auth import AuthStore

async def main():
    store = AuthStore(storage_dir=sys.argv[1], keychain=None, clock=lambda: {NOW})
    task = asyncio.create_task(store.get_token("github"))
    await asyncio.to_thread(sys.stdin.readline)
    task.cancel()

asyncio.run(main())
print("leaving", flush=True)
"""


def test_exiting_process_stores_the_rotated_refresh_token_first(tmp_path: Path) -> None:
    with TokenServer() as server:
        server.hold()
        store_expired(tmp_path, server.url)
        child = start(LEAVING_PROCESS, str(tmp_path / "auth"))
        server.wait_for_requests(1)
        assert child.stdin is not None
        child.stdin.write("leave\n")
        child.stdin.flush()
        assert read_line(child) == "leaving"
        server.release()
        finish(child)

        assert asyncio.run(make_store(tmp_path).get_token("github")) == "access-1"
        assert len(server.requests) == 1


FORKING_PROCESS = f"""
import asyncio, os, sys, threading
from lilux.runtime.auth import AuthStore

def ask():
    store = AuthStore(storage_dir=sys.argv[1], keychain=None, clock=lambda: {NOW})
    return asyncio.run(store.get_token("github"))

asker = threading.Thread(target=ask)
asker.start()
sys.stdin.readline()
child = os.fork()
if child == 0:
    print("forked", flush=True)
    print(ask(), flush=True)
    os._exit(0)
asker.join()
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python warns about a fork with threads")
def test_process_forked_during_a_refresh_gets_the_token(tmp_path: Path) -> None:
    with TokenServer() as server:
        server.hold()
        store_expired(tmp_path, server.url)
        process = start(FORKING_PROCESS, str(tmp_path / "auth"))
        server.wait_for_requests(1)
        assert process.stdin is not None
        process.stdin.write("fork\n")
        process.stdin.flush()
        assert read_line(process) == "forked"
        server.release()

        assert finish(process) == "access-1"
        assert len(server.requests) == 1


def test_token_stored_during_a_refresh_is_not_overwritten(tmp_path: Path) -> None:
    async def log_in_meanwhile(server: TokenServer) -> str:
        store = make_store(tmp_path)
        task = asyncio.create_task(store.get_token("github"))
        await asyncio.to_thread(server.wait_for_requests, 1)
        store.set_token("github", "access-of-the-user")
        server.release()
        return await task

    with TokenServer() as server:
        server.hold()
        store_expired(tmp_path, server.url)
        assert asyncio.run(log_in_meanwhile(server)) == "access-of-the-user"

    assert asyncio.run(make_store(tmp_path).get_token("github")) == "access-of-the-user"


def test_token_cleared_during_a_refresh_does_not_come_back(tmp_path: Path) -> None:
    async def log_out_meanwhile(server: TokenServer) -> None:
        store = make_store(tmp_path)
        task = asyncio.create_task(store.get_token("github"))
        await asyncio.to_thread(server.wait_for_requests, 1)
        store.clear_token("github")
        server.release()
        await task

    with TokenServer() as server:
        server.hold()
        store_expired(tmp_path, server.url)
        with pytest.raises(AuthenticationRequired, match=r"^no token is stored for 'github'"):
            asyncio.run(log_out_meanwhile(server))

    assert make_store(tmp_path).is_authenticated("github") is False


def test_callers_that_share_a_failure_get_separate_errors(tmp_path: Path) -> None:
    clock = CountingClock(NOW)

    async def ask_twice(server: TokenServer) -> list[Any]:
        store = make_store(tmp_path, clock)
        asked = asyncio.gather(
            store.get_token("github"), store.get_token("github"), return_exceptions=True
        )
        await asyncio.to_thread(server.wait_for_requests, 1)
        await asyncio.to_thread(clock.wait_for, 3)
        server.release()
        return list(await asked)

    with TokenServer(lambda _: json_answer(400, error="invalid_grant")) as server:
        server.hold()
        store_expired(tmp_path, server.url)
        one, other = asyncio.run(ask_twice(server))

    assert isinstance(one, RefreshError)
    assert isinstance(other, RefreshError)
    assert str(one) == str(other)
    assert one is not other
    assert len(server.requests) == 1
    assert "refresh-0" not in "".join(traceback.format_exception(one))


def test_wait_for_the_refresh_of_another_process_is_bounded(tmp_path: Path) -> None:
    with TokenServer() as server:
        store_expired(tmp_path, server.url)
        with (
            locked(refresh_lock(tmp_path)),
            pytest.raises(RefreshError) as raised,
        ):
            asyncio.run(make_store(tmp_path, refresh_timeout=0.05).get_token("github"))
        assert server.requests == []
        # Let the waiting thread get the lock, so that it does not outlive this test.
        with contextlib.suppress(RefreshError):
            asyncio.run(make_store(tmp_path).get_token("github"))

    assert str(raised.value) == (
        "the token of 'github' could not be refreshed"
        ": another process has been refreshing it for 0.1 s; try again later"
    )


IMPATIENT_PROCESS = f"""
import asyncio, sys
from lilux.primitives.errors import RefreshError
from lilux.runtime.auth import AuthStore

store = AuthStore(storage_dir=sys.argv[1], keychain=None, clock=lambda: {NOW}, refresh_timeout=0.05)
try:
    asyncio.run(store.get_token("github"))
except RefreshError:
    print("gave up")
"""


def test_process_exits_without_the_lock_after_its_timeout(tmp_path: Path) -> None:
    store_expired(tmp_path, "http://127.0.0.1:1/token")

    with locked(refresh_lock(tmp_path)):
        assert finish(start(IMPATIENT_PROCESS, str(tmp_path / "auth"))) == "gave up"
