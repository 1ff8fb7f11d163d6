"""Prepared processes through the process primitive."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import prepared_program
import psutil
import pytest
from lilux.primitives.errors import NotPreparedError
from lilux.primitives.subprocess import PreparedProcess, SubprocessPrimitive
from processes import is_alive, wait_until

pytestmark = pytest.mark.anyio

CONFIG = {
    "command": sys.executable,
    "args": [prepared_program.__file__],
    "env": {"A": "1"},
    "env_mode": "exact",
    "render": False,
}


def call(code: str, **changes: Any) -> dict[str, Any]:
    """The config of a call."""
    return {**CONFIG, "args": [prepared_program.__file__, code], **changes}


def process_of(prepared: PreparedProcess) -> psutil.Process:
    """The process itself, by the line that it printed."""
    return psutil.Process(int(prepared.report.split()[1]))


async def test_calls_are_copies_with_their_own_input_and_output() -> None:
    prepared = await SubprocessPrimitive().prepare(CONFIG)
    chunks: list[str] = []
    code = "print(value, sys.stdin.read(), os.environ['A'], os.getpid())"
    calls = [
        prepared.execute(call(code, input_data=str(number), env={"A": f"env {number}"}))
        for number in range(8)
    ]
    results = await asyncio.gather(*calls)
    for number, result in enumerate(results):
        assert result.success, result.stderr
        assert result.stdout.startswith(f"['as prepared'] {number} env {number} ")
    await prepared.execute(
        call("print('streamed')"), on_output=lambda stream, text: chunks.append(text)
    )
    assert "".join(chunks) == "streamed\n"
    await prepared.aclose()


async def test_a_call_after_the_end_says_that_it_had_no_effect() -> None:
    prepared = await SubprocessPrimitive().prepare(CONFIG)
    process = process_of(prepared)
    process.kill()
    ended = "^the prepared process is not running; prepare it again$"
    with pytest.raises(NotPreparedError, match=ended):
        await prepared.execute(call("print(1)"))
    async with asyncio.timeout(15):
        while prepared.alive:
            await asyncio.sleep(0.01)
    with pytest.raises(NotPreparedError, match=ended):
        await prepared.execute(call("print(1)"))


async def test_calls_go_on_after_the_prepared_process_was_closed() -> None:
    prepared = await SubprocessPrimitive().prepare(CONFIG)
    process = process_of(prepared)
    started = asyncio.Event()

    def seen(stream: str, text: str) -> None:
        started.set()

    code = "print('on', flush=True); import time; time.sleep(0.3); print('done')"
    running = asyncio.create_task(prepared.execute(call(code), on_output=seen))
    await started.wait()
    await prepared.aclose()
    assert not is_alive(process)
    assert (await running).stdout == "on\ndone\n"


async def test_a_program_that_ends_instead_is_reported_with_its_words() -> None:
    with pytest.raises(NotPreparedError, match=r"^no, thanks$"):
        await SubprocessPrimitive().prepare(call("sys.exit('no, thanks')"))
    with pytest.raises(NotPreparedError, match="Failed to spawn: /does/not/exist: No such file"):
        await SubprocessPrimitive().prepare({**CONFIG, "command": "/does/not/exist"})


def test_a_loop_ends_although_a_prepared_process_waits() -> None:
    loop = asyncio.new_event_loop()
    prepared = loop.run_until_complete(SubprocessPrimitive().prepare(CONFIG))
    process = process_of(prepared)
    loop.run_until_complete(asyncio.wait_for(loop.shutdown_asyncgens(), 10))
    wait_until(lambda: not is_alive(process), "the prepared process ended")
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
