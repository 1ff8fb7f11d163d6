"""A confined job and processes: those outside, its own, the helper, and the next job."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confined_jobs import PYTHON, SECRET, SYSTEM_PATH, ConfinedJobs, confined_jobs, users
from processes import is_alive, pid_in, wait_until


@pytest.fixture(params=users())
def jobs(request: pytest.FixtureRequest) -> Iterator[ConfinedJobs]:
    """The jobs of root and of an ordinary user."""
    with confined_jobs(request.param) as jobs:
        yield jobs


@pytest.fixture
def victim(jobs: ConfinedJobs) -> Iterator[int]:
    """A process of the same user outside the job."""
    user = None if jobs.uid == os.geteuid() else jobs.uid
    process = subprocess.Popen(["sleep", "600"], env={"PATH": SYSTEM_PATH}, user=user)
    yield process.pid
    process.kill()
    process.wait()


X86 = platform.machine() == "x86_64"


@pytest.mark.parametrize(
    "attack",
    [
        "os.kill(int(a[0]), signal.SIGKILL)",
        "os.kill(int(a[0]), 0)",
        "signal.pidfd_send_signal(os.pidfd_open(int(a[0])), signal.SIGKILL)",
        "os.kill(os.getppid(), signal.SIGKILL)",
        "libc.ptrace(16, int(a[0]), 0, 0) < 0 and call(-1) or os.kill(int(a[0]), 0)",
        "call(438, os.pidfd_open(int(a[0])), 0, 0)",  # pidfd_getfd on every processor
        "import resource; resource.prlimit(int(a[0]), resource.RLIMIT_CPU, (0, 0))",
        "open(f'/proc/{a[0]}/mem', 'rb')",
        "open(f'/proc/{a[0]}/environ', 'rb')",
        "open(os.path.join('/proc', a[0], 'root', 'etc', 'passwd'))",
        "os.readlink(f'/proc/{a[0]}/cwd')",
        "os.readlink(f'/proc/{a[0]}/fd/0')",
    ],
)
def test_a_process_outside_cannot_be_signalled_or_traced(
    jobs: ConfinedJobs, victim: int, attack: str
) -> None:
    confinement = jobs.confinement(read=["/proc"])
    attack = attack.replace("call(-1)", "(_ for _ in ()).throw(OSError(ctypes.get_errno(), ''))")
    assert jobs.error_of(attack, victim, confinement=confinement) in ("EPERM", "EACCES", "ENOSYS")
    assert is_alive(psutil.Process(victim))


@pytest.mark.skipif(not X86, reason="the numbers are those of x86_64")
@pytest.mark.parametrize(
    ("attack", "error"),
    [
        pytest.param("call(101, 0, 0, 0, 0)", "EPERM", id="ptrace"),
        pytest.param("call(310, os.getpid(), 0, 0, 0, 0, 0)", "EPERM", id="process_vm_readv"),
        pytest.param("call(165, 0, 0, 0, 0, 0)", "EPERM", id="mount"),
        pytest.param("call(272, 0x10000000)", "EPERM", id="unshare"),
        pytest.param("call(308, 0, 0)", "EPERM", id="setns"),
        pytest.param("call(56, 0x10000011, 0, 0, 0, 0)", "EPERM", id="clone"),
        pytest.param("call(435, 0, 0)", "ENOSYS", id="clone3"),
        pytest.param("call(250, 0, -3, 0)", "EPERM", id="keyctl"),
        pytest.param("call(321, 0, 0, 0)", "EPERM", id="bpf"),
        pytest.param("call(425, 8, 0)", "EPERM", id="io_uring_setup"),
        pytest.param("call(323, 0)", "EPERM", id="userfaultfd"),
        pytest.param("call(29, 1234, 4096, 0o1600)", "EPERM", id="shmget"),
        pytest.param(
            "b = ctypes.create_string_buffer(bytes([8, 0, 0, 0, 1, 0, 0, 0]) + bytes(8)); "
            "call(304, -100, ctypes.addressof(b), 0)",
            "EPERM",
            id="open_by_handle_at",
        ),
        pytest.param("call(0x40000000 + 39)", "ENOSYS", id="x32"),
        pytest.param("call(500)", "ENOSYS", id="unknown"),
    ],
)
def test_a_system_call_around_the_confinement_is_refused(
    jobs: ConfinedJobs, attack: str, error: str
) -> None:
    assert jobs.error_of(attack) == error


def test_root_has_only_rights_over_files(jobs: ConfinedJobs) -> None:
    jobs.needs("privileges")
    confinement = jobs.confinement(read=["/proc"])
    status = jobs.python("print(open('/proc/self/status').read())", confinement=confinement)
    fields = dict(line.split(":\t") for line in status.splitlines())
    expected = "000000000000000b" if jobs.uid == 0 else "0000000000000000"
    assert (fields["CapEff"], fields["CapPrm"], fields["NoNewPrivs"]) == (expected, expected, "1")


@pytest.mark.parametrize(
    "start",
    [
        "import threading; threading.Thread(target=attack).start()",
        "import os; os.fork() or attack()",
        "import os; os.fork() or (os.setsid(), os.fork() or attack())",
        "import subprocess, sys; subprocess.run([sys.executable, '-c', code])",
        "import os, sys; os.posix_spawn(sys.executable, ['p', '-c', code], os.environ)",
    ],
)
def test_everything_that_a_job_starts_is_confined(jobs: ConfinedJobs, start: str) -> None:
    body = f"""
try: open({str(jobs.secret)!r}).read()
except OSError as error: open('errors', 'a').write(type(error).__name__ + '\\n')
else: open('errors', 'a').write('read\\n')
import socket
try: socket.socket()
except OSError as error: open('errors', 'a').write(type(error).__name__ + '\\n')
"""
    code = f"import os, time\ncode = {body!r}\ndef attack(): exec(code)\n{start}\n"
    wait = "while open('errors', 'a') and os.path.getsize('errors') < 30: time.sleep(0.01)"
    jobs.python(code + wait)
    assert (jobs.project / "errors").read_text().split() == ["PermissionError"] * 2


def test_the_helper_and_the_next_job_are_not_confined(jobs: ConfinedJobs) -> None:
    assert jobs.error_of("open(a[0])", jobs.secret) == "EACCES"
    answer = jobs.client.exec("cat", str(jobs.secret))
    assert answer.stdout.decode() == SECRET
    assert "confinement" not in answer.header
    status = "/proc/self/status"
    answer = jobs.client.exec("grep", "-E", "^(NoNewPrivs|Seccomp):", status)
    assert answer.stdout.decode().split() == ["NoNewPrivs:", "0", "Seccomp:", "0"]


@pytest.mark.skipif(not X86, reason="only x86_64 has a second table of system calls")
def test_a_call_of_another_architecture_ends_the_process(jobs: ConfinedJobs) -> None:
    # getpid by the table of 32-bit programs, in machine code: mov eax, 20; int 0x80; ret.
    code = """if True:
        import ctypes, mmap
        memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        memory.write(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))
        at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        print(ctypes.CFUNCTYPE(ctypes.c_int)(at)() > 0)
    """
    command = (PYTHON, "-I", "-S", "-c", code)
    answer = jobs.run(*command)
    assert (answer.header["signal"], answer.stdout) == (signal.SIGSYS, b"")


def test_a_helper_inside_a_confined_job_confines_its_jobs_further(jobs: ConfinedJobs) -> None:
    inner = jobs.make_folder("project/inner")
    binary = str(jobs.folder / "lilux-proc")
    request = {
        "command": "touch",
        "args": ["inner/allowed", "refused"],
        "confinement": {
            "execute": jobs.confinement()["execute"],
            "write": ["/dev/null", str(inner)],
            "require": ["fs", "net", "privileges"],
        },
    }
    outer = jobs.confinement(execute=[binary], read=["/proc"])
    command = (binary, "exec", "--request")
    answer = jobs.run(*command, confinement=outer, payload=json.dumps(request).encode())
    printed = json.loads(answer.stdout)
    assert "confinement" in printed, printed
    assert printed["stderr"] == "touch: cannot touch 'refused': Permission denied\n"
    assert (inner / "allowed").exists()


def test_jobs_with_different_confinements_do_not_mix(jobs: ConfinedJobs) -> None:
    other = jobs.make_folder("other")
    both = [jobs.confinement(), jobs.confinement(write=[str(other)])]
    for turn in range(6):
        wanted = "EACCES" if turn % 2 == 0 else "done"
        error = jobs.error_of("open(a[0] + '/x', 'w')", other, confinement=both[turn % 2])
        assert error in (wanted, "EROFS" if wanted == "EACCES" else wanted)


def test_more_profiles_than_are_kept_still_work(jobs: ConfinedJobs) -> None:
    folders = [jobs.make_folder(f"many/{number}") for number in range(70)]
    for folder in [*folders, *folders]:
        confinement = jobs.confinement(write=[str(folder)])
        answer = jobs.run("touch", str(folder / "file"), confinement=confinement)
        assert answer.header["success"], answer.stderr


def test_a_confined_job_can_signal_its_own_processes(jobs: ConfinedJobs) -> None:
    answer = jobs.run("sh", "-c", "sleep 600 & kill $!; wait $!; echo $?")
    assert answer.stdout.decode().strip() == "143"


def test_a_confined_job_is_ended_on_timeout_with_its_tree(jobs: ConfinedJobs) -> None:
    script = "setsid sleep 600 & echo $! > new; mv new pid; exec sleep 600"
    answer = jobs.run("sh", "-c", script, timeout=1)
    assert answer.header["timed_out"]
    assert answer.header["tree"]["known_by"] == "subreaper"
    assert not psutil.pid_exists(int((jobs.project / "pid").read_text()))


def test_a_confined_job_ends_with_the_helper(jobs: ConfinedJobs) -> None:
    env = {"PATH": SYSTEM_PATH}
    jobs.client.send(
        "exec",
        command=PYTHON,
        args=["-c", "import os, time; print(os.getpid(), file=open('pid', 'w')); time.sleep(600)"],
        cwd=str(jobs.project),
        env=env,
        env_mode="exact",
        confinement=jobs.confinement(),
    )
    process = pid_in(jobs.project / "pid")
    os.kill(jobs.client.process.pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(process), "the job has ended")


def test_the_working_directory_of_the_helper_is_kept(jobs: ConfinedJobs) -> None:
    answer = jobs.client.exec("pwd", confinement=jobs.confinement())
    assert answer.stdout.decode().strip() == str(Path.cwd())
