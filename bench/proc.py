"""lilux-proc, through a minimal client, against the standard library of Python.

Measured in one run: `/bin/true` one at a time and many at once, 100 MB of output, a caller with
much memory, an autopsy of 50 processes, and the memory of the helper.
"""

import asyncio
import statistics
import subprocess
import sys
import time

from proc_client import ProcClient
from processes import helper_processes

from bench.programs import TRUE, asyncio_call, spawn_with_pipes
from bench.table import Report, Row, alternating_medians

ROUNDS = 400
OUTPUT = 100_000_000
MIB = 1024 * 1024


def one_at_a_time(client: ProcClient, loop: asyncio.AbstractEventLoop) -> list[Row]:
    serve, floor, stdlib = alternating_medians(
        ROUNDS,
        lambda: client.exec(TRUE),
        spawn_with_pipes,
        lambda: loop.run_until_complete(asyncio_call(TRUE)),
    )
    detail = f"{serve:.0f} / {floor:.0f} / {stdlib:.0f} µs"
    return [
        Row("one call ÷ os.posix_spawn with pipes", serve / floor, 1.25, detail=detail),
        Row("one call ÷ asyncio.create_subprocess_exec", serve / stdlib, 0.70),
    ]


def serve_rate(client: ProcClient, in_flight: int, total: int) -> float:
    started = time.perf_counter()
    for _ in range(in_flight):
        client.send("exec", command=TRUE)
    sent = in_flight
    for _ in range(total):
        assert client.receive().header["success"]
        if sent < total:
            client.send("exec", command=TRUE)
            sent += 1
    return total / (time.perf_counter() - started)


def asyncio_rate(loop: asyncio.AbstractEventLoop, in_flight: int, total: int) -> float:
    async def lane() -> None:
        for _ in range(total // in_flight):
            await asyncio_call(TRUE)

    async def lanes() -> None:
        await asyncio.gather(*(lane() for _ in range(in_flight)))

    started = time.perf_counter()
    loop.run_until_complete(lanes())
    return total // in_flight * in_flight / (time.perf_counter() - started)


def many_at_once(client: ProcClient, loop: asyncio.AbstractEventLoop) -> list[Row]:
    rows = []
    for in_flight in (8, 64, 200):
        ours, theirs = 0.0, 0.0
        for _ in range(3):
            ours = max(ours, serve_rate(client, in_flight, 1000))
            theirs = max(theirs, asyncio_rate(loop, in_flight, 600))
        detail = f"{ours:.0f} / {theirs:.0f} per second"
        what = f"throughput, {in_flight} in flight ÷ asyncio"
        rows.append(Row(what, ours / theirs, 1.7, at_least=True, detail=detail))
    return rows


def streamed_output(client: ProcClient) -> bytes:
    args = ["-c", str(OUTPUT), "/dev/zero"]
    client.send("exec", command="head", args=args, stream=True, capture=False)
    chunks = []
    while (answer := client.receive()).kind == "stdout":
        chunks.append(answer.payload)
    return b"".join(chunks)


def much_output(client: ProcClient, loop: asyncio.AbstractEventLoop) -> list[Row]:
    command = ("head", "-c", str(OUTPUT), "/dev/zero")

    def with_serve() -> None:
        assert len(streamed_output(client)) == OUTPUT

    def with_asyncio() -> None:
        assert len(loop.run_until_complete(asyncio_call(*command))) == OUTPUT

    ours, theirs = alternating_medians(10, with_serve, with_asyncio)
    detail = f"{ours / 1000:.0f} / {theirs / 1000:.0f} ms"
    return [
        Row("100 MB of stdout, asyncio ÷ ours", theirs / ours, 1.2, at_least=True, detail=detail)
    ]


def caller(mebibytes: int) -> None:
    """Use that much memory, then make one call for each line on stdin."""
    ballast = bytearray(mebibytes * MIB)
    ballast[::4096] = b"x" * len(ballast[::4096])
    with ProcClient(timeout=None) as client:
        for _ in sys.stdin:
            client.exec(TRUE)
            print("done", flush=True)


def large_caller() -> list[Row]:
    def start(mebibytes: int) -> "subprocess.Popen[str]":
        code = f"import sys; sys.path = {sys.path!r}; import bench.proc as p; p.caller({mebibytes})"
        command = [sys.executable, "-c", code]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, bufsize=1)

    def ask(process: "subprocess.Popen[str]") -> None:
        assert process.stdin
        assert process.stdout
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "done\n"

    small, large = start(1), start(1024)
    with small, large:
        ours, theirs = alternating_medians(ROUNDS, lambda: ask(large), lambda: ask(small))
        assert small.stdin
        assert large.stdin
        small.stdin.close()
        large.stdin.close()
    return [Row("one call, caller of 1 GiB ÷ small caller", ours / theirs, 1.1)]


def memory_of(client: ProcClient) -> float:
    """Return the memory of the helper's processes in MiB; shared memory is counted once."""
    return sum(p.memory_full_info().pss for p in helper_processes(client.process.pid)) / MIB


def memory() -> list[Row]:
    with ProcClient(timeout=None) as client:
        client.exec(TRUE)
        idle = memory_of(client)
        for _ in range(200):
            client.send("exec", command="sleep", args=["600"])
        worker = helper_processes(client.process.pid)[-1]
        while len(worker.children()) < 200:
            time.sleep(0.01)
        busy = memory_of(client)
    return [
        Row("memory, idle", idle, 10, unit=" MiB"),
        Row("memory, 200 jobs without output", busy, 64, unit=" MiB"),
    ]


def stubborn_job(client: ProcClient) -> list[Row]:
    script = "trap '' TERM; while :; do sleep 1; done"
    started = time.perf_counter()
    assert client.exec("sh", "-c", script, timeout=1).header["timed_out"]
    seconds = time.perf_counter() - started
    return [Row("timeout of 1 s, job ignores SIGTERM", seconds, 1.5, unit=" s")]


def autopsy(client: ProcClient) -> list[Row]:
    script = "for i in $(seq 49); do sleep 600 & done; wait"
    took = []
    for _ in range(5):
        found = client.exec("bash", "-c", script, timeout=1).header["autopsy"]
        assert len(found["processes"]) == 50
        took.append(found["elapsed_ms"])
    return [Row("autopsy of 50 processes", statistics.median(took), 50, unit=" ms")]


def measure() -> Report:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    with ProcClient(timeout=None) as client:
        rows = one_at_a_time(client, loop) + many_at_once(client, loop)
        rows += much_output(client, loop) + stubborn_job(client) + autopsy(client)
    return Report([*rows, *large_caller(), *memory()])
