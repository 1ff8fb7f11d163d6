"""Jobs whose network is a list of hosts, against jobs without a network and direct connections.

Measured in one run, on one helper: the first and each later `/bin/true` of a profile, a connection
with one byte in each direction, and a large transfer, each through the proxy and directly from an
unconfined job. The servers are on the loopback interface.
"""

import json
import os
import socket
import statistics
import tempfile
import threading
import time
from contextlib import ExitStack
from typing import Any

from confined_jobs import PYTHON
from proc_client import ProcClient

from bench.confinement import call, confinement
from bench.programs import TRUE
from bench.table import Report, Row, alternating_medians

ROUNDS = 400
PROFILES = 20
MEGABYTES = 512
JOB = """
import json, socket, statistics, sys, time
echo, source, direct = sys.argv[1], sys.argv[2], sys.argv[3] == "direct"
def connect(target):
    if direct:
        host, port = target.split(":")
        return socket.create_connection((host, int(port)))
    s = socket.create_connection(("127.0.0.1", 3128))
    s.sendall(f"CONNECT {target} HTTP/1.1\\r\\n\\r\\n".encode())
    established = b"HTTP/1.1 200 Connection established\\r\\n\\r\\n"
    assert s.recv(len(established), socket.MSG_WAITALL) == established
    return s
taken = []
for _ in range(300):
    started = time.perf_counter()
    with connect(echo) as s:
        s.sendall(b"x")
        s.recv(1)
    taken.append(time.perf_counter() - started)
buffer, received = bytearray(1 << 20), 0
with connect(source) as s:
    started = time.perf_counter()
    while count := s.recv_into(buffer):
        received += count
    seconds = time.perf_counter() - started
print(json.dumps([statistics.median(taken) * 1e6, received / (1 << 20) / seconds]))
"""


def serve(handle: Any) -> str:
    """Handle each connection on a thread; return the address."""
    server = socket.create_server(("127.0.0.1", 0), backlog=256)

    def accept() -> None:
        while True:
            connection, _ = server.accept()
            threading.Thread(target=handle, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return f"127.0.0.1:{server.getsockname()[1]}"


def echo(connection: socket.socket) -> None:
    with connection:
        while data := connection.recv(1000):
            connection.sendall(data)


def source(connection: socket.socket) -> None:
    block = bytes(1 << 20)
    with connection:
        for _ in range(MEGABYTES):
            connection.sendall(block)


def first_starts(client: ProcClient, project: str) -> tuple[float, float]:
    """Return the median milliseconds of the first job of a profile: without a network, and with."""
    samples: tuple[list[float], list[float]] = ([], [])
    for number in range(PROFILES):
        # A path that does not exist makes another profile and is skipped.
        absent = {"read": [f"{project}/absent-{number}"]}
        for taken, net in zip(samples, ("none", ["example.org:443"]), strict=True):
            started = time.perf_counter()
            call(client, TRUE, confinement=confinement(project, net=net) | absent)()
            taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(samples[0]), statistics.median(samples[1])


def measure() -> Report:
    with ExitStack() as stack:
        project = os.path.realpath(stack.enter_context(tempfile.TemporaryDirectory()))
        client = stack.enter_context(ProcClient(timeout=None))
        targets = [serve(echo), serve(source)]
        hosts = confinement(project, net=targets)
        report = client.exec(TRUE, confinement=hosts).header["confinement"]
        if report["enforced"].get("net") != "namespace and proxy":
            return Report([], missing={"lists of hosts": "this machine cannot enforce them"})
        without, with_hosts = first_starts(client, project)
        plain, none, listed = alternating_medians(
            ROUNDS,
            call(client, TRUE),
            call(client, TRUE, confinement=confinement(project)),
            call(client, TRUE, confinement=hosts),
        )

        def transfer(how: str, **fields: Any) -> tuple[float, float]:
            answer = client.exec(PYTHON, "-c", JOB, *targets, how, **fields)
            assert answer.header["success"], answer.stderr
            latency, throughput = json.loads(answer.stdout)
            return latency, throughput

        direct, proxied = transfer("direct"), transfer("proxied", confinement=hosts)
    added = proxied[0] - direct[0]
    return Report(
        [
            Row("first job, added by the list", with_hosts - without, 15, unit=" ms",
                detail=f"{with_hosts:.1f} / {without:.1f} ms"),
            Row("later jobs, list ÷ no network", listed / none, 1.10,
                detail=f"{listed:.0f} / {none:.0f} µs, plain {plain:.0f}"),
            Row("connection, added by the proxy", added / 1000, 2, unit=" ms",
                detail=f"{proxied[0]:.0f} / {direct[0]:.0f} µs"),
            Row("transfer, proxied ÷ direct", proxied[1] / direct[1], 0.2, at_least=True,
                detail=f"{proxied[1]:.0f} / {direct[1]:.0f} MiB/s"),
        ]
    )  # fmt: skip
