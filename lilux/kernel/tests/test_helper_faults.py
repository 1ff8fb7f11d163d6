"""A helper ends its jobs as long as one of its processes runs, whatever happens to the others."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from helper_faults import FAULTS, NAMES, Faults, keep_stopped
from lilux.primitives.errors import HelperError
from lilux.primitives.subprocess import session
from process_transports import TRANSPORTS, Execute
from processes import Tree, assert_ended, helper_processes, is_alive

TESTING = Path(__file__).parents[3] / "testing"
ENDED = (
    "lilux-proc ended unexpectedly during a call; its processes are being ended; "
    "try again: the next call starts a new helper"
)
SILENT = ENDED.replace("ended unexpectedly", "did not answer")
# For a busy machine; the previous release took 45 seconds.
MARGIN_SECONDS = 10

CALLER = """
import sys
from process_transports import open_transport
with open_transport(sys.argv[1]) as execute:
    execute({"command": "sh", "args": ["-c", sys.argv[2]], "render": False})
"""


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "tree")


def helper_below(pid: int) -> dict[str, psutil.Process]:
    """Keeper, guardian and worker of the only helper of a process."""
    children = psutil.Process(pid).children()
    (keeper,) = [one for one in children if one.name() == "lilux-proc" and is_alive(one)]
    return dict(zip(NAMES, helper_processes(keeper.pid), strict=True))


def shell(script: str) -> dict[str, object]:
    return {"command": "sh", "args": ["-c", script], "render": False}


@contextlib.contextmanager
def meanwhile(act: Callable[[], None]) -> Iterator[None]:
    """Run ``act`` on another thread during the ``with`` block."""
    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        thread.join()


@contextlib.contextmanager
def caller_with_a_call(tree: Tree, transport: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", CALLER, transport, tree.script()]
    environment = {**os.environ, "PYTHONPATH": str(TESTING)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as caller:
        try:
            yield caller
        finally:
            caller.kill()


@pytest.mark.parametrize("faults", FAULTS)
def test_no_process_survives_a_killed_caller_and_the_faults_of_its_helper(
    tree: Tree, faults: Faults
) -> None:
    with caller_with_a_call(tree, "blocking") as caller:
        processes = tree.processes()
        helper = helper_below(caller.pid)
        faults.inject(helper)
    assert_ended({**processes, **helper})


@pytest.mark.parametrize("faults", FAULTS)
def test_a_call_of_a_helper_with_faults_ends_with_one_error_or_goes_on(
    execute: Execute, tree: Tree, faults: Faults
) -> None:
    execute({"command": "true"})
    processes: dict[str, psutil.Process] = {}
    go = tree.folder / "go"

    def act() -> None:
        processes.update(tree.processes())
        processes.update(helper := helper_below(os.getpid()))
        faults.inject(helper)
        if faults.are_cured:
            go.touch()

    script = tree.script(f"while [ ! -e {go} ]; do sleep 0.01; done; echo done")
    with pytest.MonkeyPatch.context() as patch, meanwhile(act):
        patch.setattr(session, "SILENCE_SECONDS", 2)
        if faults.are_cured:
            assert execute(shell(script)).stdout == "done\n"
        else:
            with pytest.raises(HelperError) as raised:
                execute(shell(script))
            # With a stopped keeper, the silence may be noticed before the end.
            expected = {ENDED, SILENT} if "keeper" in faults.stopped else {ENDED}
            assert str(raised.value) in expected
    assert execute({"command": "echo", "args": ["again"]}).stdout == "again\n"
    if not faults.are_cured:
        assert_ended(processes)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_stopping_the_worker_and_killing_the_guardian_leaves_no_process_when_the_caller_exits(
    tree: Tree, transport: str
) -> None:
    with caller_with_a_call(tree, transport) as caller:
        processes = tree.processes()
        helper = helper_below(caller.pid)
        began = time.monotonic()
        helper["worker"].suspend()
        helper["guardian"].kill()
        # The call raises an error, which ends the caller.
        assert caller.wait(60) == 1
        assert time.monotonic() - began < session.SILENCE_SECONDS + MARGIN_SECONDS
        assert_ended({**processes, **helper})


def test_a_stopped_helper_is_noticed_within_five_seconds(execute: Execute, tree: Tree) -> None:
    processes: dict[str, psutil.Process] = {}
    stopped_at: list[float] = []

    def act() -> None:
        processes.update(tree.processes())
        processes.update(helper := helper_below(os.getpid()))
        stopped_at.append(time.monotonic())
        for process in helper.values():
            process.suspend()

    with meanwhile(act), pytest.raises(HelperError) as raised:
        execute(shell(tree.script()))
    assert str(raised.value) == SILENT
    assert time.monotonic() - stopped_at[0] < session.SILENCE_SECONDS + MARGIN_SECONDS
    assert_ended(processes)


def test_a_worker_that_is_stopped_again_and_again_is_killed(execute: Execute, tree: Tree) -> None:
    execute({"command": "true"})
    processes: dict[str, psutil.Process] = {}

    def act() -> None:
        processes.update(tree.processes())
        processes.update(helper := helper_below(os.getpid()))
        helper["guardian"].kill()
        keep_stopped(helper["worker"])

    with meanwhile(act), pytest.raises(HelperError) as raised:
        execute(shell(tree.script()))
    assert str(raised.value) == ENDED
    assert_ended(processes)
