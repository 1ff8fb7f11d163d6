"""The wall clock jumps by years, forward and back, in the middle of everything.

A small library, loaded before the C library, moves the wall clock of the caller and of the helper;
the machine's own clock is left alone.
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
from torture.scenario import CannotBeTriedError, Outcome

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

__attribute__((constructor)) static void begin(void) {
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
    """Timeouts neither fire early nor late; tokens, signatures and lockfiles outlive the jump."""
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
        raise CannotBeTriedError("it takes Linux and a C compiler to move the clock")
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
        """Moves it away from the true time by so many seconds."""
        with self._path.open("r+b") as file:
            file.write(struct.pack("<q", seconds))

    @contextmanager
    def jumping(self, numbers: random.Random) -> Iterator[None]:
        """It jumps every few milliseconds meanwhile."""
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
        return Outcome(tried=1, lost=("the clock does not jump, so nothing was tried",))
    lost: list[str] = []
    for turn in range(times):
        with clock.jumping(numbers):
            lost += await _processes()
            lost += await _requests()
        lost += await _token(folder / f"tokens-{turn}", clock)
        lost += await _tool(folder / f"project-{turn}", clock, numbers)
    return Outcome(tried=times, lost=tuple(lost))


def _true_time() -> float:
    """The kernel's word, which no library changes: the uptime and the moment of the start."""
    started = next(
        int(line.split()[1])
        for line in Path("/proc/stat").read_text().splitlines()
        if line.startswith("btime")
    )
    return started + float(Path("/proc/uptime").read_text().split()[0])


async def _processes() -> list[str]:
    primitive = SubprocessPrimitive()
    began = time.monotonic()
    stuck, busy = await asyncio.gather(
        primitive.execute({"command": "sleep", "args": ["60"], "timeout": SHORT}),
        primitive.execute({"command": "sleep", "args": [str(WORK)], "timeout": LONG}),
    )
    took = time.monotonic() - began
    lost = [] if stuck.timed_out else ["a process did not time out"]
    if took < SHORT or stuck.duration_ms < SHORT * 1000:
        lost.append(f"a timeout of {SHORT} s fired after {took:.3f} s")
    if not busy.success or not WORK * 1000 <= busy.duration_ms < LONG * 1000:
        lost.append(f"a process that takes {WORK} s took {busy.duration_ms} ms: {busy.stderr}")
    return lost


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
    lost = []
    if not (stuck.error or "").startswith(f"timed out after {SHORT} seconds"):
        lost.append(f"a request did not time out: {stuck.error}")
    if not slow.success:
        lost.append(f"a slow answer was not waited for: {slow.error}")
    return lost


@asynccontextmanager
async def _server() -> AsyncIterator[LoopbackServer]:
    with LoopbackServer() as server:
        yield server


async def _token(folder: Path, clock: Clock) -> list[str]:
    store = AuthStore("torture", folder, keychain=None)
    store.set_token("service", "kept", expires_in=3600)
    clock.jump(YEAR)
    lost = []
    try:
        await store.get_token("service")
        lost.append("an expired token was handed out")
    except AuthenticationRequired:
        pass
    clock.jump(0)
    if await store.get_token("service") != "kept":
        lost.append("a token was lost by a jump")
    return lost


async def _tool(folder: Path, clock: Clock, numbers: random.Random) -> list[str]:
    """Signed in one year, locked in another, run in a third."""
    folder.mkdir()
    years = [numbers.randrange(-30, 30) for _ in range(3)]
    clock.jump(years[0] * YEAR)
    project = Project(folder)
    project.command("hello", "/bin/echo", "hi")
    lost = []
    for year in years[1:]:
        clock.jump(year * YEAR)
        async with project.executor() as executor:
            result = await executor.execute("hello")
            if not result.success:
                lost.append(f"signed and run {years} years away: {result.error}")
    clock.jump(0)
    return lost


if __name__ == "__main__":
    children.tell(asyncio.run(_jump_often(Path(sys.argv[1]), int(sys.argv[2]))))
