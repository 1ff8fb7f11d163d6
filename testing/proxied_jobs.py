"""Jobs behind the proxy for a list of hosts, and servers for them to reach."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import socketserver
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from confined_jobs import PYTHON, ConfinedJobs
from proc_client import find_binary

_EXCHANGE = """
import socket, sys
with socket.create_connection(("127.0.0.1", 3128), timeout=20) as proxy:
    proxy.sendall(sys.stdin.buffer.read())
    while data := proxy.recv(65536):
        sys.stdout.buffer.write(data)
"""
_WITH_HOSTS = """#!/bin/sh
exec unshare --mount sh -c '
mount --bind HOSTS /etc/hosts && exec setpriv --reuid=UID --clear-groups BINARY "$@"' sh "$@"
"""


def needs_proxy(jobs: ConfinedJobs) -> None:
    """Skip if this machine cannot enforce a list of hosts."""
    enforced = jobs.client.call("probe").header["enforced"]
    if enforced.get("net") != "namespace":
        pytest.skip("not tried: this machine has no network namespaces")


def exchange(jobs: ConfinedJobs, hosts: list[str], request: bytes) -> bytes:
    """Send bytes to the proxy from a job that may reach ``hosts``; return the answer."""
    answer = jobs.run(
        *(PYTHON, "-I", "-S", "-c", _EXCHANGE),
        payload=request,
        confinement=jobs.confinement(net=hosts),
    )
    assert answer.header["success"], (answer.header, answer.stderr)
    return bytes(answer.stdout)


def tunnel(jobs: ConfinedJobs, hosts: list[str], target: str) -> str:
    """Ask for a tunnel to a server that answers and closes; return the status line."""
    request = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\nquestion".encode()
    return exchange(jobs, hosts, request).split(b"\r\n")[0].decode()


class Server:
    """A server on the loopback interface: what it received, and how it handles a connection."""

    def __init__(self, handle: Callable[[socket.socket], None], address: str) -> None:
        self.accepted = 0
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                outer.accepted += 1
                self.request.settimeout(20)
                with contextlib.suppress(OSError):
                    handle(self.request)

        class ThreadingServer(socketserver.ThreadingTCPServer):
            address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
            daemon_threads = True
            block_on_close = False
            request_queue_size = 256

        self.server = ThreadingServer((address, 0), Handler)
        self.port = int(self.server.server_address[1])

    @property
    def name(self) -> str:
        return f"localhost:{self.port}"


@contextlib.contextmanager
def serving(
    handle: Callable[[socket.socket], None], address: str = "127.0.0.1"
) -> Iterator[Server]:
    """Handle each connection on a thread."""
    server = Server(handle, address)
    threading.Thread(target=server.server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server
    finally:
        server.server.shutdown()
        server.server.server_close()


def mirror(connection: socket.socket) -> None:
    """Answer with the request itself. It ends where it must, or when nothing more arrives."""
    received = connection.recv(65536)
    connection.settimeout(0.2)
    with contextlib.suppress(TimeoutError):
        while data := connection.recv(65536):
            received += data
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(received)}\r\n\r\n".encode()
    connection.sendall(head + received)


def echo(connection: socket.socket) -> None:
    """Send everything back."""
    while data := connection.recv(65536):
        connection.sendall(data)


def binary_with_hosts(jobs_folder: Path, hosts: str, uid: int) -> str:
    """Return a helper that resolves names by ``hosts``. Only root can make one."""
    if os.geteuid() != 0:
        pytest.skip("not tried: only root can replace the names of this machine")
    if not all(map(shutil.which, ("unshare", "setpriv"))):
        pytest.skip("not tried: unshare or setpriv is not installed")
    jobs_folder.joinpath("hosts").write_text(hosts)
    shutil.copy(find_binary(), jobs_folder / "lilux-proc-itself")
    script = jobs_folder / "lilux-proc"
    text = _WITH_HOSTS.replace("HOSTS", str(jobs_folder / "hosts")).replace("UID", str(uid))
    script.write_text(text.replace("BINARY", str(jobs_folder / "lilux-proc-itself")))
    script.chmod(0o755)
    tried = subprocess.run([script, "--version"], capture_output=True, check=False)
    if tried.returncode != 0:
        pytest.skip("not tried: this root cannot mount")
    return str(script)


def threads(helper: subprocess.Popen[Any], name: str) -> list[int]:
    """Return the process of each thread with this name in a helper."""
    found = []
    for process in psutil.Process(helper.pid).children(recursive=True):
        for task in Path(f"/proc/{process.pid}/task").glob("*/comm"):
            with contextlib.suppress(OSError):
                if task.read_text().strip() == name:
                    found.append(process.pid)
    return found
