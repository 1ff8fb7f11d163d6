# rye:signed:20261118T125305Z:9b2f2e6f49e2dbcd56dabb969d6b6108b79fd502a7f563b3ff385ebe747dd876:oGpkeob_eGbLzUeD0KGvc2Fb2LuzLvmc6YQFidWd0BM8orC175t-kDRjRoEshTS1xDan6PYxJ5eqnnnq1IafCA==:0cdadc7a57fefd2c
"""Become a prepared process: load a tool once, then fork for each call.

``lilux-proc`` starts this process like a call of the tool, confined like one, and gives it a socket.
When the tool is imported, nothing else of it has run, and nothing else may be going on: a thread, a
child or an open file would be missing in the copies, or shared by them. Then one line of JSON on
stdout says so, and each packet on the socket is a call: strings and descriptors, from which a copy
of this process makes its own environment, working directory and streams. A copy announces itself
and waits for the answer before it runs anything, so a call that could not start has had no effect.

A copy is made with ``CLONE_PARENT``: it is a child of ``lilux-proc``, not of this process.
"""

# ruff: noqa: PTH100, PTH109, PTH112, PTH118, PTH120, PTH208 - pathlib would add to every prepared process

from __future__ import annotations

import ctypes
import gc
import json
import os
import random
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, NoReturn  # noqa: UP035 - the project may use an old Python

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "runtimes"
__tool_description__ = "Prepares a Python tool for many calls; not a tool itself"
CONFIG_SCHEMA = {"type": "object"}

VARIABLE = "LILUX_PREPARED"
PRIVATE = "WARM_PRIVATE_FOLDERS"
"""The variables with private folders, which are different for each call."""

_SYS_CLONE = {"x86_64": 56, "aarch64": 220}
_SYS_LANDLOCK_CREATE_RULESET = 444
_SYS_LANDLOCK_RESTRICT_SELF = 446
_LANDLOCK_MAKE_BLOCK = 0x800
_LANDLOCK_SCOPE_SIGNAL = 2
_CLONE_PARENT = 0x8000
_CLONE_CHILD_CLEARTID = 0x200000
_CLONE_CHILD_SETTID = 0x1000000
_SIGCHLD = 17
_SIGKILL = 9
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_NO_NEW_PRIVS = 39
_PR_GET_TID_ADDRESS = 40

_MAX_PACKET = 128 * 1024
_MAX_DESCRIPTORS = 6
_NUMBERS = {"stdin": 0, "stdout": 1, "stderr": 2, "channel": 3}
_MAX_PROBED = 4096
_MAX_REPORT = 60_000


class Unfit(Exception):  # noqa: N818 - a fact about a tool
    """Why the tool cannot be prepared; calls start it anew."""


def prepare(load: Callable[[], Any]) -> Any:
    """Load the tool; return it once for each call, in a copy of this process."""
    control = socket.socket(fileno=int(os.environ.pop(VARIABLE)))
    names = os.environ.pop(PRIVATE, "").split()
    private = [os.environ[name] for name in names if os.environ.get(name)]
    report = os.dup(1)
    try:
        clone, generators, surroundings = _Clone(), _Generators(), _Surroundings()
        tool = _load_quietly(load, private)
        generators.loaded()
        surroundings.loaded(private)
        gc.collect()
        # The collector would write to the memory that all copies share.
        gc.freeze()
        ready = {"pid": os.getpid(), "memory": _memory(), "paths": _imported_from()}
        line = json.dumps(ready).encode()
        if len(line) > _MAX_REPORT:
            raise Unfit("it imports too many files that are not installed")
    except Unfit as reason:
        os.write(report, json.dumps({"cold": str(reason)}).encode() + b"\n")
        os._exit(0)
    os.write(report, line + b"\n")
    os.close(report)
    _serve(control, clone, surroundings)
    generators.seed()
    return tool


def leave(end: SystemExit) -> NoReturn:
    """End a copy like the interpreter, but without taking apart everything that was imported."""
    code = end.code
    if not isinstance(code, (int, type(None))):
        sys.stderr.write(f"{code}\n")
        code = 1
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()  # type: ignore[attr-defined]
        import atexit

        atexit._run_exitfuncs()
        _flush_files()
    finally:
        os._exit((code or 0) & 0xFF)


def _flush_files() -> None:
    """Write what the call left in the buffers of open files."""
    import io

    for one in gc.get_objects():  # without those that existed before the call
        if issubclass(type(one), io.IOBase):
            try:
                one.flush()
            except (OSError, ValueError):
                continue
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            continue


def _load_quietly(load: Callable[[], Any], folders: list[str]) -> Any:
    modules, before = set(sys.modules), _descriptors()
    output = os.memfd_create("output")
    kept = [os.dup(1), os.dup(2)]
    os.dup2(output, 1)
    os.dup2(output, 2)
    try:
        tool = load()
    except BaseException as error:  # noqa: BLE001 - a cold call shows it
        raise Unfit(f"it cannot be imported ({type(error).__name__})") from None
    finally:
        for number, fd in zip((1, 2), kept):  # noqa: B905 - not in Python 3.9
            sys.stdout.flush()
            sys.stderr.flush()
            os.dup2(fd, number)
            os.close(fd)
        printed = os.fstat(output).st_size
        os.close(output)
    if printed:
        raise Unfit("it prints when it is imported")
    _require_one_thread()
    if _descriptors() != before:
        raise Unfit("it opens files or connections when it is imported")
    _require_no_children()
    _require_no_private_paths(folders, set(sys.modules) - modules)
    return tool


def _require_one_thread() -> None:
    try:
        count = len(os.listdir("/proc/self/task"))
    except OSError:
        count = len(sys._current_frames())
    if count != 1:
        raise Unfit("it starts threads when it is imported")


def _require_no_children() -> None:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return
    raise Unfit("it starts processes when it is imported")


def _require_no_private_paths(folders: list[str], imported: set[str]) -> None:
    """A copy has another private folder, so a module must not keep the path of this one."""
    temporary = sys.modules.get("tempfile")
    if temporary is not None:
        temporary.tempdir = None  # type: ignore[attr-defined]
    for name in imported if folders else ():
        for value in list(getattr(sys.modules[name], "__dict__", {}).values()):
            if isinstance(value, (str, os.PathLike)) and str(value).startswith(tuple(folders)):
                shown = "it" if name == "rye_tool" else f"its module {name}"
                raise Unfit(f"{shown} keeps the path of its private folder when it is imported")


def _descriptors() -> set[int]:
    """The open descriptors. Not from /proc, which the tool may not be allowed to read."""
    found = set()
    for number in range(min(os.sysconf("SC_OPEN_MAX"), _MAX_PROBED)):
        try:
            os.get_inheritable(number)
        except OSError:
            continue
        found.add(number)
    return found


def _imported_from() -> list[str]:
    """The folders that modules are imported from, and each module that is not installed.

    Installing something changes a folder; editing a module of the project does not.
    """
    found = [path for path in sys.path if os.path.isdir(path)]
    standard, library = os.path.dirname(os.__file__), os.path.dirname(os.path.abspath(__file__))
    # Packages are in site-packages, or in dist-packages.
    known = (os.path.join(standard, ""), os.path.join(os.path.dirname(library), ""))
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and not path.startswith(known) and "-packages/" not in path:
            found.append(path)
    return found


def _memory() -> int:
    """The bytes of this process; those that it shares with n others count as 1/n, if known."""
    try:
        with open("/proc/self/smaps_rollup", "rb") as file:  # noqa: PTH123 - as above
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class _Surroundings:
    """The environment and the working directory of a call, with what the import changes of them."""

    def __init__(self) -> None:
        self._given, self._folder, self._moved = dict(os.environ), _working_directory(), False

    def loaded(self, private: list[str]) -> None:
        """The tool is imported. Raises :class:`Unfit`."""
        folder = _working_directory()
        self._moved = folder != self._folder
        kept = [value for name, value in os.environ.items() if value != self._given.get(name)]
        if self._moved:
            kept.append(folder)
        if any(one in value for one in private for value in kept):
            raise Unfit("it keeps the path of its private folder when it is imported")

    def enter(self, folder: str, environment: dict[str, str]) -> None:
        """Do in a copy what a cold call does before the import, except for what that changed."""
        if folder and not self._moved:
            os.chdir(folder)
        for name in {*self._given, *environment}:
            before, now = self._given.get(name), environment.get(name)
            if before != now and os.environ.get(name) == before:
                os.environ.pop(name, None)
                if now is not None:
                    os.environ[name] = now


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


class _Generators:
    """The generators of ``random``: a copy gets other numbers, unless the tool chose the seed."""

    def __init__(self) -> None:
        """Note from now on who seeds a generator."""
        shared = random._inst  # type: ignore[attr-defined]
        found: dict[int, random.Random] = {id(shared): shared}
        seed = random.Random.seed

        def noting_seed(one: random.Random, a: Any = None, version: int = 2) -> None:
            seed(one, a, version)
            if a is None:
                found[id(one)] = one
            else:
                found.pop(id(one), None)

        self._shared, self._found, self._seed, self._state = shared, found, seed, None
        self._replace(noting_seed)

    def loaded(self) -> None:
        """The tool is imported."""
        self._replace(self._seed)
        if self._found.pop(id(self._shared), None) is None:
            self._state = self._shared.getstate()

    def seed(self) -> None:
        """Called in a copy, in which Python has just seeded the shared generator."""
        for one in self._found.values():
            self._seed(one)
        if self._state is not None:
            self._shared.setstate(self._state)
        # Python has no such hook for numpy's global generator.
        numpy = sys.modules.get("numpy.random")
        if numpy is not None:
            numpy.seed()  # type: ignore[attr-defined]

    def _replace(self, seed: Callable[..., None]) -> None:
        random.Random.seed = seed  # type: ignore[method-assign]
        random.seed = self._shared.seed


class _Clone:
    """The system call, which Python's ``fork`` does not offer."""

    def __init__(self) -> None:
        number = _SYS_CLONE.get(os.uname().machine)
        if number is None or sys.platform != "linux":
            raise Unfit("this machine has no prepared processes")
        self.libc = ctypes.PyDLL(None)
        self.libc.syscall.restype = ctypes.c_long
        self._python = ctypes.pythonapi
        self._number = ctypes.c_long(number)
        address = ctypes.c_void_p()
        flags = _CLONE_PARENT | _SIGCHLD
        # The C library keeps the id of the thread there, and has to find the new one in a copy.
        if self.libc.prctl(_PR_GET_TID_ADDRESS, ctypes.byref(address), 0, 0, 0) == 0:
            flags |= _CLONE_CHILD_SETTID | _CLONE_CHILD_CLEARTID
        self._flags, self._address = ctypes.c_long(flags), address
        self._apart = self._ruleset_apart()

    def __call__(self) -> int:
        """Return 0 in the copy, its pid in this process, and -1 if there is no copy."""
        self._python.PyOS_BeforeFork()
        # The address is the fourth argument or the fifth, depending on the processor.
        pid = int(
            self.libc.syscall(self._number, self._flags, None, None, self._address, self._address)
        )
        if pid == 0:
            self._python.PyOS_AfterFork_Child()
        else:
            self._python.PyOS_AfterFork_Parent()
        return pid

    def restrict(self, ruleset: int | None) -> None:
        """Apply a Landlock ruleset, which also keeps this process out of the prepared one.

        Otherwise a confined call could take the socket from it, and with that the next calls.
        """
        used = self._apart if ruleset is None else ruleset
        number = ctypes.c_long(_SYS_LANDLOCK_RESTRICT_SELF)
        if used >= 0 and self.libc.syscall(number, used, 0) != 0:
            raise OSError("the ruleset was refused")
        if self._apart >= 0:
            os.close(self._apart)

    def _ruleset_apart(self) -> int:
        """A ruleset that denies nothing else; -1 if this process is not confined by Landlock."""
        if self.libc.prctl(_PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1:
            return -1
        number = ctypes.c_long(_SYS_LANDLOCK_CREATE_RULESET)
        version = self.libc.syscall(number, None, ctypes.c_size_t(0), 1)
        rights = (ctypes.c_uint64 * 3)(_LANDLOCK_MAKE_BLOCK, 0, _LANDLOCK_SCOPE_SIGNAL)
        size = ctypes.c_size_t(24 if version > 5 else 8)  # signals since version 6
        return int(self.libc.syscall(number, ctypes.byref(rights), size, 0))

    def become_job(self) -> None:
        """Adopt the orphans of this process, and end with the process that supervises it."""
        self.libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)


def _serve(control: socket.socket, clone: _Clone, surroundings: _Surroundings) -> None:
    """Make copies for ever; return in each of them when its call begins."""
    while True:
        packet, fds, _, _ = socket.recv_fds(control, _MAX_PACKET, _MAX_DESCRIPTORS)
        if not packet:
            os._exit(0)
        if clone() == 0:
            try:
                control.close()
                _become(packet, fds, clone, surroundings)
            except BaseException:  # noqa: BLE001 - nobody may see a copy that has not begun
                os._exit(1)
            return
        for fd in fds:
            os.close(fd)


def _become(packet: bytes, fds: list[int], clone: _Clone, surroundings: _Surroundings) -> None:
    names, count, *strings = packet.split(b"\0")[:-1]
    given = dict(zip(names.decode().split(), fds))  # noqa: B905 - not in Python 3.9
    cwd, environment = strings[int(count)], strings[int(count) + 1 :]
    clone.become_job()
    clone.restrict(given.get("ruleset"))
    for name, number in _NUMBERS.items():
        if name in given:
            os.dup2(given[name], number)
    surroundings.enter(
        os.fsdecode(cwd), dict(os.fsdecode(one).split("=", 1) for one in environment)
    )
    call = socket.socket(fileno=given.pop("call"))
    for fd in given.values():
        os.close(fd)
    call.send(b"\1")
    if call.recv(1) != b"\1":
        os._exit(1)
    call.close()
