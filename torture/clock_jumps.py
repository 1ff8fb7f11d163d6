"""The wall clock jumps by years, forward and back, while calls run.

A small library, loaded before the C library, moves the wall clock of the caller and of the helper.
The clock of the machine is not changed.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import struct
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from lilux.primitives.errors import AuthenticationRequired
from lilux.primitives.http_client import HttpClientPrimitive
from lilux.primitives.subprocess import SubprocessPrimitive
from lilux.runtime.auth import AuthStore
from loopback_http import Answer, Connection, LoopbackServer, hang, respond
from proc_client import find_binary
from rye_project import Project

from torture import children
from torture.scenario import Outcome, ScenarioSkippedError

SEED = 20261116
YEAR = 365 * 24 * 3600
SHORT, WORK, LONG = 0.3, 0.15, 60.0

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long long *offset;

__attribute__((constructor)) static void map_offset(void) {
    int file = open(getenv("TORTURE_CLOCK"), O_RDONLY | O_CLOEXEC);
    void *page = mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) offset = page;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (!result && offset && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += *offset;
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return result;
}

time_t time(time_t *out) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (out) *out = exact.tv_sec;
    return exact.tv_sec;
}
"""


def jumps(times: int, folder: Path) -> Outcome:
    """Timeouts fire neither early nor late; tokens, signatures and lockfiles stay valid."""
    shim = _compiled(folder)
    clock = folder / "clock"
    clock.write_bytes(bytes(8))
    env = {"LD_PRELOAD": str(shim), "TORTURE_CLOCK": str(clock)}
    helper = folder / "bin" / "lilux-proc"
    helper.parent.mkdir()
    settings = " ".join(f"{name}='{value}'" for name, value in env.items())
    helper.write_text(f'#!/bin/sh\n{settings} exec {find_binary()} "$@"\n')
    helper.chmod(0o755)
    path = f"{helper.parent}{os.pathsep}{os.environ['PATH']}"
    return children.run("clock_jumps", folder, times, env=children.environment(**env, PATH=path))


def _compiled(folder: Path) -> Path:
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        raise ScenarioSkippedError("needs Linux and a C compiler to move the clock")
    source, shim = folder / "shim.c", folder / "shim.so"
    source.write_text(SHIM)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", str(shim), str(source), "-ldl"], check=True
    )
    return shim


class Clock:
    """The wall clock of this process and its helper."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def jump(self, seconds: int) -> None:
        """Set the offset from the real time in seconds."""
        with self._path.open("r+b") as file:
            file.write(struct.pack("<q", seconds))

    @contextmanager
    def jumping(self, numbers: random.Random) -> Iterator[None]:
        """Make the clock jump every few milliseconds while the body runs."""
        done = threading.Event()

        def work() -> None:
            while not done.wait(0.005):
                self.jump(numbers.randrange(-10 * YEAR, 10 * YEAR))

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            self.jump(0)


async def _jump_often(folder: Path, times: int) -> Outcome:
    numbers = random.Random(SEED)
    clock = Clock(folder / "clock")
    clock.jump(10 * YEAR)
    if abs(time.time() - 10 * YEAR - _true_time()) > 3600:
        return Outcome(
            tried=1, failures=("the clock does not jump, so the scenario tested nothing",)
        )
    failures: list[str] = []
    for turn in range(times):
        with clock.jumping(numbers):
            failures += await _processes()
            failures += await _requests()
        failures += await _token(folder / f"tokens-{turn}", clock)
        failures += await _tool(folder / f"project-{turn}", clock, numbers)
    return Outcome(tried=times, failures=tuple(failures))


def _true_time() -> float:
    """Return the time from the kernel's boot time and uptime, which no library can change."""
    started = next(
        int(line.split()[1])
        for line in Path("/proc/stat").read_text().splitlines()
        if line.startswith("btime")
    )
    return started + float(Path("/proc/uptime").read_text().split()[0])


async def _processes() -> list[str]:
    primitive = SubprocessPrimitive()
    started = time.monotonic()
    stuck, busy = await asyncio.gather(
        primitive.execute({"command": "sleep", "args": ["60"], "timeout": SHORT}),
        primitive.execute({"command": "sleep", "args": [str(WORK)], "timeout": LONG}),
    )
    took = time.monotonic() - started
    failures = [] if stuck.timed_out else ["a process did not time out"]
    if took < SHORT or stuck.duration_ms < SHORT * 1000:
        failures.append(f"a timeout of {SHORT} s fired after {took:.3f} s")
    if not busy.success or not WORK * 1000 <= busy.duration_ms < LONG * 1000:
        failures.append(f"a process that takes {WORK} s took {busy.duration_ms} ms: {busy.stderr}")
    return failures


async def _requests() -> list[str]:
    def slowly(connection: Connection) -> bool:
        time.sleep(WORK)
        return good(connection)

    good: Answer = respond(json={"ok": True})
    async with _server() as server, HttpClientPrimitive(environ={}) as http:
        server.on("/hangs", hang())
        server.on("/slow", slowly)
        stuck, slow = await asyncio.gather(
            http.execute({"url": f"{server.url}/hangs", "timeout": SHORT}),
            http.execute({"url": f"{server.url}/slow", "timeout": LONG}),
        )
    failures = []
    if not (stuck.error or "").startswith(f"timed out after {SHORT} seconds"):
        failures.append(f"a request did not time out: {stuck.error}")
    if not slow.success:
        failures.append(f"a slow answer failed: {slow.error}")
    return failures


@asynccontextmanager
async def _server() -> AsyncIterator[LoopbackServer]:
    with LoopbackServer() as server:
        yield server


async def _token(folder: Path, clock: Clock) -> list[str]:
    store = AuthStore("torture", folder, keychain=None)
    store.set_token("service", "kept", expires_in=3600)
    clock.jump(YEAR)
    failures = []
    try:
        await store.get_token("service")
        failures.append("an expired token was handed out")
    except AuthenticationRequired:
        pass
    clock.jump(0)
    if await store.get_token("service") != "kept":
        failures.append("a token was lost after a jump")
    return failures


async def _tool(folder: Path, clock: Clock, numbers: random.Random) -> list[str]:
    """Sign a tool in one year, lock it in another, and run it in a third."""
    folder.mkdir()
    years = [numbers.randrange(-30, 30) for _ in range(3)]
    clock.jump(years[0] * YEAR)
    project = Project(folder)
    project.command("hello", "/bin/echo", "hi")
    failures = []
    for year in years[1:]:
        clock.jump(year * YEAR)
        async with project.executor() as executor:
            result = await executor.execute("hello")
            if not result.success:
                failures.append(f"signed and run {years} years away: {result.error}")
    clock.jump(0)
    return failures


if __name__ == "__main__":
    children.print_outcome(asyncio.run(_jump_often(Path(sys.argv[1]), int(sys.argv[2]))))
