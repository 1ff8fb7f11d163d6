"""Output of a running job reaches a callback."""

from __future__ import annotations

import asyncio
import io
import sys
import time
from pathlib import Path

import pytest
from lilux.primitives.subprocess import BlockingSubprocess, SubprocessPrimitive, SubprocessResult
from lilux.primitives.subprocess.output import output_bytes, readable_output
from process_transports import Execute


def test_output_reaches_a_callback_while_the_job_runs(execute: Execute, tmp_path: Path) -> None:
    proceed = tmp_path / "proceed"
    seen: list[tuple[str, str]] = []

    def on_output(stream: str, text: str) -> None:
        seen.append((stream, text))
        proceed.touch()  # the job waits for this, so it cannot have ended

    script = f"printf first; while [ ! -e {proceed} ]; do sleep 0.01; done; printf second >&2"
    result = execute({"command": "sh", "args": ["-c", script]}, on_output=on_output)
    assert seen == [("stdout", "first"), ("stderr", "second")]
    assert (result.stdout, result.stderr) == ("first", "second")


def test_a_character_split_between_pieces_reaches_the_callback_whole(execute: Execute) -> None:
    seen: list[str] = []
    script = r"printf '\303'; sleep 0.2; printf '\251\303'"
    execute({"command": "sh", "args": ["-c", script]}, on_output=lambda _, text: seen.append(text))
    assert seen == ["é", "\udcc3"]


def test_bytes_that_are_not_text_can_be_restored(execute: Execute) -> None:
    seen: list[str] = []
    script = (
        r"printf 'a\377\000\355\240\200'; sleep 0.2; printf '\303'; sleep 0.2; printf '\050\303'"
    )
    execute({"command": "sh", "args": ["-c", script]}, on_output=lambda _, text: seen.append(text))
    assert b"".join(map(output_bytes, seen)) == b"a\xff\0\xed\xa0\x80\xc3(\xc3"
    assert readable_output("".join(seen)).startswith("a\ufffd\0\ufffd")


def test_a_callback_may_return_anything(execute: Execute) -> None:
    text = io.StringIO()
    script = "echo one; sleep 0.1; echo two"
    result = execute(
        {"command": "sh", "args": ["-c", script]}, on_output=lambda _, t: text.write(t)
    )
    assert (text.getvalue(), result.output_error) == ("one\ntwo\n", None)


def test_a_failing_callback_is_reported_and_the_job_continues(execute: Execute) -> None:
    calls = []

    def on_output(stream: str, text: str) -> None:
        calls.append(text)
        raise RuntimeError("S3CRET")

    script = "echo one; sleep 0.1; echo two"
    result = execute({"command": "sh", "args": ["-c", script]}, on_output=on_output)
    assert (result.success, result.stdout, len(calls)) == (True, "one\ntwo\n", 1)
    assert result.output_error == "the output callback failed: RuntimeError"


def test_a_slow_callback_gets_all_output(execute: Execute) -> None:
    size = 0

    def on_output(stream: str, text: str) -> None:
        nonlocal size
        time.sleep(0.001)
        size += len(text)

    config = {"command": "head", "args": ["-c", "9000000", "/dev/zero"], "output_limit": 10}
    assert execute(config, on_output=on_output).success
    assert size == 9_000_000


def test_a_slow_async_callback_pauses_its_job_and_gets_all_output_in_order(
    tmp_path: Path,
) -> None:
    line, lines = "0123456789abcdef" * 64, 40_000  # 41 MB, ten times what may be queued
    progress = tmp_path / "progress"
    writer = f"""
import os
for n in range({lines}):
    os.write(1, b"{line}\\n")
    if n % 1000 == 0:
        open("{progress}", "w").write(str(n))
"""
    open_gate = asyncio.Event()
    received = 0

    async def on_output(stream: str, text: str) -> None:
        nonlocal received
        await open_gate.wait()
        received += len(text)

    async def main() -> SubprocessResult:
        config = {"command": sys.executable, "args": ["-c", writer], "render": False}
        job = asyncio.create_task(
            SubprocessPrimitive().execute({**config, "output_limit": 100}, on_output=on_output)
        )
        await asyncio.to_thread(wait_until_unchanged, progress)
        stopped_at = int(progress.read_text())
        assert 1000 <= stopped_at < lines // 2
        open_gate.set()
        return await job

    assert asyncio.run(main()).success
    assert received == lines * (len(line) + 1)


def wait_until_unchanged(path: Path) -> None:
    """Return when the content of the file has not changed for a second."""
    last, since = "", time.monotonic()
    deadline = time.monotonic() + 30
    while time.monotonic() - since < 1:
        assert time.monotonic() < deadline
        now = path.read_text() if path.exists() else ""
        if now != last or not now:
            last, since = now, time.monotonic()
        time.sleep(0.01)


def test_cancelled_error_of_a_callback_does_not_cancel_the_call() -> None:
    async def on_output(stream: str, text: str) -> None:
        raise asyncio.CancelledError

    config = {"command": "head", "args": ["-c", "9000000", "/dev/zero"]}
    result = asyncio.run(SubprocessPrimitive().execute(config, on_output=on_output))
    assert result.success
    assert result.output_error == "the output callback failed: CancelledError"


def test_a_stuck_callback_stops_only_its_own_job() -> None:
    async def main() -> None:
        primitive = SubprocessPrimitive()
        stuck = asyncio.Event()

        async def never(stream: str, text: str) -> None:
            stuck.set()
            await asyncio.Event().wait()

        endless = asyncio.create_task(
            primitive.execute({"command": "cat", "args": ["/dev/zero"]}, on_output=never)
        )
        await stuck.wait()
        assert (await primitive.execute({"command": "echo", "args": ["hi"]})).stdout == "hi\n"
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless

    asyncio.run(main())


def test_a_coroutine_function_cannot_be_a_callback_without_an_event_loop() -> None:
    async def take(stream: str, text: str) -> None:
        raise AssertionError("never run")

    with BlockingSubprocess() as blocking:
        result = blocking.execute({"command": "echo", "args": ["a"]}, on_output=take)
    assert result.success
    assert result.output_error == (
        "the output callback is a coroutine function; pass a plain function here"
    )
