"""`rye run` ended from outside: no process of the tool survives."""

import fcntl
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import termios
import weakref
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psutil
import pytest
from processes import Tree, assert_ended, is_alive, pid_in, wait_until
from rye.cli.output.progress import RunningTime
from rye.cli.run.interruption import Interrupted, Interruption
from rye.cli.run.live_output import LiveOutput
from rye_command import COMMAND, DEADLINE, Terminal, default_signals, environment, without_progress
from rye_project import HTTP_CLIENT, Project

RED = "\x1b[31;1mrye:\x1b[0m"
ENDED = "rye: interrupted; the tool and its processes were ended\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, shipped_system=True)


@pytest.fixture
def tree(project: Project) -> Tree:
    """A tool that ignores SIGTERM and starts a child, a new session and a daemon."""
    tree = Tree(project.path / "tree")
    script = "trap '' TERM INT HUP\n" + tree.script("while :; do sleep 600; done")
    project.command("tools/tree", "/bin/sh", "-c", script)
    return tree


@contextmanager
def started(
    project: Project, *args: str, argv: tuple[str, ...] = COMMAND
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the command with pipes; kill it at the end."""
    with default_signals():
        process = subprocess.Popen(
            [*argv, *args],
            cwd=project.path,
            env=environment(project.user),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    with process:
        try:
            yield process
        finally:
            process.kill()


def alive(processes: dict[str, psutil.Process]) -> list[str]:
    return [name for name, process in processes.items() if is_alive(process)]


def test_ctrl_c_ends_the_whole_tree(project: Project, tree: Tree) -> None:
    with Terminal("run", "tools/tree", cwd=project.path, user=project.user) as terminal:
        processes = tree.processes()
        terminal.interrupt()
        assert terminal.finish() == 130
        # Without waiting: they have ended before the command has.
        assert alive(processes) == []
        assert without_progress(terminal.shown) == f"^C\n{ENDED.replace('rye:', RED)}"


def test_buffered_output_is_shown_after_an_interrupt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as stdout, os.fdopen(master, "rb", buffering=0) as terminal:
        monkeypatch.setattr(sys, "stdout", stdout)
        output = LiveOutput(Interruption(), RunningTime("tools/half", wanted=False))
        output("stdout", '{"begun":')
        assert select.select([terminal], [], [], 0) == ([], [], [])
        output.finish_interrupted()
        shown = b""
        while not shown.endswith(b"\n"):
            shown += terminal.read(100)
        assert shown == b'{"begun":\r\n'


def test_ctrl_c_before_the_tool_started_does_not_mention_processes(project: Project) -> None:
    params = project.path / "params"
    os.mkfifo(params)
    args = ("run", "tools/any", "--params", f"@{params}")
    with Terminal(*args, cwd=project.path, user=project.user) as terminal:
        with params.open("w"):  # waits until rye reads
            terminal.interrupt()
            assert terminal.finish() == 130
        assert terminal.shown == f"^C\n{RED} interrupted\n"


def test_a_second_ctrl_c_leaves_no_process_behind(project: Project, tree: Tree) -> None:
    with Terminal("run", "tools/tree", cwd=project.path, user=project.user) as terminal:
        processes = tree.processes()
        for _ in range(3):
            terminal.interrupt()
            terminal.wait_for("^C")
            terminal.shown = ""
        assert terminal.finish() == 130
        assert alive(processes) == []
        assert terminal.shown.count("interrupted") == 1


def test_only_the_first_signal_is_raised() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with default_signals(), Interruption():
        with pytest.raises(Interrupted) as caught:
            signal.raise_signal(signal.SIGTERM)
        assert caught.value.exit_code == 143
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_signal_that_an_extension_turns_into_another_exception_is_not_lost() -> None:
    class Panic(BaseException):
        pass

    def panic_when_interrupted() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except Interrupted as error:
            raise Panic from error

    with default_signals(), pytest.raises(Interrupted) as caught, Interruption():
        panic_when_interrupted()
    assert caught.value.exit_code == 130


def test_a_signal_during_a_weakref_callback_is_not_lost() -> None:
    def callback(_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    class Module:
        pass

    alarm = signal.getsignal(signal.SIGALRM)
    with default_signals(), Interruption():
        module = Module()
        lock = weakref.ref(module, callback)
        with pytest.raises(Interrupted) as caught:  # noqa: PT012 - raised while waiting
            del module
            wait_until(lambda: False, "the signal arrives")
        assert lock() is None
        assert caught.value.exit_code == 130
    assert signal.getsignal(signal.SIGALRM) is alarm


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_to_the_command_alone_ends_the_whole_tree(
    project: Project, tree: Tree, number: signal.Signals, code: int
) -> None:
    with started(project, "run", "tools/tree") as command:
        processes = tree.processes()
        command.send_signal(number)
        out, err = command.communicate(timeout=DEADLINE)
        assert command.returncode == code
        assert alive(processes) == []
        assert (out, err.decode()) == (b"", ENDED)


def test_closing_the_terminal_ends_the_whole_tree(project: Project, tree: Tree) -> None:
    with Terminal("run", "tools/tree", cwd=project.path, user=project.user) as terminal:
        processes = tree.processes()
        assert terminal.hang_up() == 129
        assert alive(processes) == []


def test_a_hanging_request_is_aborted(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        project.yaml("tools/hangs", executor_id=HTTP_CLIENT, config={"url": url})
        with started(project, "run", "tools/hangs") as command:
            server.settimeout(DEADLINE)
            connection, _ = server.accept()
            with connection:
                assert connection.recv(3) == b"GET"
                command.send_signal(signal.SIGTERM)
                _, err = command.communicate(timeout=DEADLINE)
            assert (command.returncode, err.decode()) == (143, ENDED)


def test_killing_the_command_ends_the_whole_tree(project: Project, tree: Tree) -> None:
    with started(project, "run", "tools/tree") as command:
        processes = tree.processes()
        command.kill()
        assert_ended(processes)


def test_an_ignored_hang_up_stays_ignored(project: Project, tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    project.command("tools/waits", "/bin/sh", "-c", f"echo $$ > up; read _ < {go}; echo done")
    ignoring = ("/bin/sh", "-c", 'trap "" HUP; exec "$@"', "sh", *COMMAND)
    with started(project, "run", "tools/waits", argv=ignoring) as command:
        pid_in(project.path / "up")
        command.send_signal(signal.SIGHUP)
        go.write_text("\n")
        out, err = command.communicate(timeout=DEADLINE)
        assert (command.returncode, out, err) == (0, b"done\n", b"")


def test_a_closed_pipe_ends_the_tool_silently(project: Project) -> None:
    project.command("tools/endless", "/bin/sh", "-c", "echo $$ > up; while :; do echo more; done")
    with started(project, "run", "tools/endless") as command:
        assert command.stdout is not None
        assert command.stderr is not None
        assert command.stdout.readline() == b"more\n"
        tool = pid_in(project.path / "up")
        command.stdout.close()
        assert command.wait(DEADLINE) == 141
        assert not is_alive(tool)
        assert command.stderr.read() == b""


def test_a_full_pipe_does_not_block_the_end_of_the_command(
    project: Project,
) -> None:
    project.command("tools/endless", "/bin/sh", "-c", "echo $$ > up; exec yes")
    with started(project, "run", "tools/endless") as command:
        assert command.stdout is not None
        assert command.stderr is not None
        tool = pid_in(project.path / "up")
        full = 65536 - 4096
        wait_until(lambda: unread(command.stdout) >= full, "the pipe is full")
        command.send_signal(signal.SIGTERM)
        assert command.wait(DEADLINE) == 143
        assert not is_alive(tool)
        assert command.stderr.read().decode() == ENDED


def unread(pipe: IO[bytes] | None) -> int:
    assert pipe is not None
    return int(array("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0])
