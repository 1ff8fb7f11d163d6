"""An interrupt at any moment of a blocking call leaves no process and no descriptor behind."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import psutil
import pytest
from lilux.primitives.subprocess import BlockingSubprocess, session
from lilux.primitives.subprocess import binary as helper_binary
from lilux.primitives.subprocess import blocking as transport
from processes import is_alive, wait_until


def helpers() -> list[psutil.Process]:
    children = psutil.Process().children()
    return [one for one in children if is_alive(one) and one.name() == "lilux-proc"]


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@contextlib.contextmanager
def interrupt_at_line(wanted: int, files: tuple[str, ...], hits: list[int]) -> Iterator[None]:
    """Raise ``KeyboardInterrupt`` before a line of ``files``, counted as the lines are executed.

    If that many lines are executed, the number is added to ``hits``.
    """
    lines = itertools.count(1)

    def trace(frame: FrameType, event: str, _: object) -> Any:
        # Python prints and drops exceptions that are raised while a generator is collected.
        if frame.f_code.co_filename not in files or sys.exc_info()[0] is GeneratorExit:
            return None
        if event == "line" and next(lines) == wanted:
            hits.append(wanted)
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def test_an_interrupt_at_any_line_leaves_neither_helper_nor_descriptor() -> None:
    files = (transport.__file__, helper_binary.__file__, session.__file__)
    config = {"command": "sh", "args": ["-c", "sleep 600 & echo a"], "grace": 0.05}
    wait_until(lambda: not helpers(), "no other helper")
    before = descriptors()
    for line in itertools.count(1):
        with BlockingSubprocess() as blocking:
            hits: list[int] = []
            with (
                contextlib.suppress(KeyboardInterrupt),
                interrupt_at_line(line, files, hits),
            ):
                blocking.execute(config)
                blocking.close()
        wait_until(lambda: not helpers(), "no helper is left")
        assert descriptors() == before, f"after an interrupt at line {line}"
        if not hits:
            break
    assert line > 60


def test_a_second_interrupt_is_raised_after_all_processes_have_ended() -> None:
    files = (helper_binary.__file__,)
    for line in itertools.count(1):
        wait_until(lambda: not helpers(), "no other helper")
        blocking = BlockingSubprocess()
        pids: list[int] = []
        hits: list[int] = []
        with contextlib.ExitStack() as second:

            def interrupt(stream: str, text: str) -> None:
                pids.extend((int(text), *(one.pid for one in helpers())))  # noqa: B023 - called in this iteration
                second.enter_context(interrupt_at_line(line, files, hits))  # noqa: B023 - likewise
                raise KeyboardInterrupt

            config = {"command": "sh", "args": ["-c", "echo $$; exec sleep 600"], "grace": 0.05}
            with pytest.raises(KeyboardInterrupt):
                blocking.execute(config, on_output=interrupt)
        assert len(pids) == 2
        assert not any(map(psutil.pid_exists, pids)), f"a second interrupt at line {line}"
        blocking.close()
        if not hits:
            break
    # How many lines run depends on how soon the helper exits, but some always do.
    assert line > 1


def test_an_interrupt_that_loses_the_answer_does_not_wait_for_another(tmp_path: Path) -> None:
    """A signal may be handled after the answer was read and before it was stored."""
    blocking = BlockingSubprocess()

    def lose_the_answer(stream: str, text: str) -> None:
        (tmp_path / "proceed").touch()
        reading = blocking._helper._reading.fileno()
        os.set_blocking(reading, True)
        lost = b""
        while b'"return_code"' not in lost:
            lost += os.read(reading, 65536)
        os.set_blocking(reading, False)
        raise KeyboardInterrupt

    script = f"echo a; while [ ! -e {tmp_path}/proceed ]; do sleep 0.01; done"
    began = time.monotonic()
    with blocking, pytest.raises(KeyboardInterrupt):
        blocking.execute({"command": "sh", "args": ["-c", script]}, on_output=lose_the_answer)
    assert time.monotonic() - began < session.SILENCE_SECONDS
