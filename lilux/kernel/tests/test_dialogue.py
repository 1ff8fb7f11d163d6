"""Talking to a running job, over both transports."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import subprocess
import sys
import weakref

import pytest
from lilux.primitives.subprocess import BlockingSubprocess, SubprocessPrimitive
from lilux.primitives.subprocess.dialogue import Dialogue, JobSight
from process_transports import Execute

# Answers each line with its number, until the end of the channel.
COUNTING = (
    'n=0; while read -r line <&"$TALK"; do n=$((n+1)); echo "$n $line" >&"$TALK"; done; echo end'
)


def bash(script: str) -> dict[str, object]:
    return {"command": "bash", "args": ["-c", script], "timeout": 60}


def test_what_was_sent_before_the_start_arrives_in_order(execute: Execute) -> None:
    dialogue = Dialogue(stdin=True)
    for text in (b"a", b"b" * 200_000, b"c"):
        assert dialogue.send(text)
    dialogue.close()
    assert not dialogue.send(b"after the end")
    result = execute(bash("wc -c"), dialogue=dialogue)
    assert result.stdout.strip() == "200002"


def test_input_data_comes_before_what_is_sent(execute: Execute) -> None:
    dialogue = Dialogue(stdin=True)
    dialogue.send(b" second", last=True)
    config = {**bash("cat"), "input_data": "first"}
    assert execute(config, dialogue=dialogue).stdout == "first second"


def test_a_job_is_answered_on_its_channel(execute: Execute) -> None:
    heard: list[bytes] = []

    def answer(data: bytes) -> None:
        heard.append(data)
        if len(heard) < 3:
            dialogue.send(b"more\n", stream="channel")
        else:
            dialogue.close("channel")

    dialogue = Dialogue(channel="TALK", on_message=answer)
    dialogue.send(b"hello\n", stream="channel")
    result = execute(bash(COUNTING), dialogue=dialogue)
    assert heard == [b"1 hello\n", b"2 more\n", b"3 more\n"]
    assert result.stdout == "end\n"
    assert not dialogue.is_open("channel")


def test_output_and_messages_do_not_mix(execute: Execute) -> None:
    heard: list[bytes] = []
    printed: list[tuple[str, str]] = []
    dialogue = Dialogue(channel="TALK", on_message=heard.append)
    execute(
        bash('echo message >&"$TALK"; echo output'),
        dialogue=dialogue,
        on_output=lambda stream, text: printed.append((stream, text)),
    )
    assert (heard, printed) == ([b"message\n"], [("stdout", "output\n")])


def test_a_failing_message_callback_does_not_end_the_job(execute: Execute) -> None:
    def fail(data: bytes) -> None:
        raise RuntimeError("s3cret")

    dialogue = Dialogue(channel="TALK", on_message=fail)
    result = execute(bash('echo one >&"$TALK"; echo two >&"$TALK"; echo done'), dialogue=dialogue)
    assert result.stdout == "done\n"
    assert dialogue.error == "the message callback failed: RuntimeError"


def test_a_dialogue_ends_with_its_job(execute: Execute) -> None:
    dialogue = Dialogue(stdin=True, channel="TALK")
    execute(bash("true"), dialogue=dialogue)
    assert not dialogue.send(b"text")
    assert not dialogue.send(b"text", stream="channel")


def test_an_ended_dialogue_is_no_work_for_the_garbage_collector(execute: Execute) -> None:
    class Listener:
        def __init__(self) -> None:
            self.dialogue = Dialogue(channel="TALK", on_message=self.hear)

        def hear(self, data: bytes) -> None:
            pass

    gc.disable()
    try:
        listener = Listener()
        alive = weakref.ref(listener)
        execute(bash('echo message >&"$TALK"'), dialogue=listener.dialogue)
        del listener
        assert alive() is None
    finally:
        gc.enable()


def test_a_source_is_copied_to_its_end() -> None:
    reading, writing = os.pipe()
    copying = subprocess.Popen(
        [sys.executable, "-c", "print('x' * 300_000, end='')"], stdout=writing
    )
    os.close(writing)
    with BlockingSubprocess() as primitive:
        result = primitive.execute(bash("wc -c"), dialogue=Dialogue(source=reading))
    os.close(reading)
    assert copying.wait() == 0
    assert result.stdout.strip() == "300000"


def test_a_source_is_not_read_beyond_what_the_job_takes() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"first\nsecond\n")
    with BlockingSubprocess() as primitive:
        # The job ends although the source stays open.
        result = primitive.execute(
            bash("read -r line; echo $line"), dialogue=Dialogue(source=reading)
        )
    os.close(writing)
    os.close(reading)
    assert result.stdout == "first\n"


async def _ask_while_it_runs() -> str:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    dialogue = Dialogue(stdin=True, channel="TALK", on_message=ready.set_result)
    job = asyncio.create_task(
        SubprocessPrimitive().execute(bash('echo ready >&"$TALK"; cat'), dialogue=dialogue)
    )
    assert await ready == b"ready\n"
    dialogue.send(b"from another task", last=True)
    return (await job).stdout


def test_another_task_can_talk_to_the_job() -> None:
    assert asyncio.run(_ask_while_it_runs()) == "from another task"


async def _cancelled() -> bool:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    dialogue = Dialogue(stdin=True, channel="TALK", on_message=ready.set_result)
    job = asyncio.create_task(
        SubprocessPrimitive().execute(bash('echo ready >&"$TALK"; cat'), dialogue=dialogue)
    )
    await ready
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    return dialogue.send(b"text")


def test_a_cancelled_job_takes_nothing_more() -> None:
    assert asyncio.run(_cancelled()) is False


def test_the_output_of_a_job_that_does_not_stream_can_be_looked_at(execute: Execute) -> None:
    seen: list[JobSight] = []

    def heard(_: bytes) -> None:
        assert dialogue.look(saw, stdout_from=-4, stderr_from=1)
        assert not dialogue.look(saw), "the first look was not answered yet"

    def saw(sight: JobSight) -> None:
        seen.append(sight)
        dialogue.send(b"go on\n", stream="channel")

    dialogue = Dialogue(channel="TALK", on_message=heard)
    script = 'echo some output; echo oops >&2; echo up >&"$TALK"; read -r line <&"$TALK"; echo $$'
    result = execute(bash(script), dialogue=dialogue)
    # The message may arrive before the output is read, as they come through different pipes.
    assert [one.pid for one in seen] == [int(result.stdout.splitlines()[1])]
    for stream, whole, start in (("stdout", b"some output\n", 8), ("stderr", b"oops\n", 1)):
        sight = getattr(seen[0], stream)
        assert (sight.start, sight.data, sight.total) in {
            (start, whole[start:], len(whole)),
            (0, b"", 0),
        }
    assert not dialogue.look(saw), "the job has ended"


class Beside:
    """Ends a call when its descriptor can be read."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.reading, False)
        self.served = 0
        self.due: float | None = None

    def wanted(self) -> list[tuple[int, int]]:
        return [(self.reading, select.POLLIN)]

    def serve(self) -> None:
        self.served += 1
        try:
            raise LookupError(os.read(self.reading, 10))
        except BlockingIOError:
            return


def test_a_bystander_of_a_blocking_call_can_end_it() -> None:
    beside = Beside()

    def heard(_: bytes) -> None:
        assert beside.served
        os.write(beside.writing, b"stop")

    dialogue = Dialogue(channel="TALK", on_message=heard)
    dialogue.beside = beside
    with BlockingSubprocess() as process, pytest.raises(LookupError, match="stop"):
        process.execute(bash('echo $$ >&"$TALK"; sleep 600'), dialogue=dialogue)
