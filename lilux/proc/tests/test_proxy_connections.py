"""The proxy for a list of hosts: ambiguous requests, many connections, their data and their end."""

from __future__ import annotations

import hashlib
import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from confined_jobs import PYTHON, ConfinedJobs, confined_jobs, users
from proxied_jobs import Server, echo, exchange, mirror, needs_proxy, serving, threads, tunnel

MOST_CONNECTIONS = min(128, max(1, resource.getrlimit(resource.RLIMIT_NOFILE)[1] // 16))
MOST_PROFILES = 64
OPEN_TUNNEL = """
import socket, sys
def tunnel(target):
    proxy = socket.create_connection(("127.0.0.1", 3128), timeout=30)
    proxy.sendall(f"CONNECT {target} HTTP/1.1\\r\\n\\r\\n".encode())
    head = b""
    while not head.endswith(b"\\r\\n\\r\\n"):
        head += proxy.recv(1)
    assert head.startswith(b"HTTP/1.1 200 "), head
    return proxy
a = sys.argv[1:]
"""


@pytest.fixture(params=users())
def jobs(request: pytest.FixtureRequest) -> Iterator[ConfinedJobs]:
    """The jobs of root and of an ordinary user."""
    with confined_jobs(request.param) as jobs:
        needs_proxy(jobs)
        yield jobs


@pytest.fixture
def server() -> Iterator[Server]:
    """Answers with the request."""
    with serving(mirror) as server:
        yield server


class Holding:
    """A server that waits until its connections end."""

    def __init__(self) -> None:
        self.opened = threading.Semaphore(0)
        self.ended = threading.Semaphore(0)

    def __call__(self, connection: socket.socket) -> None:
        connection.sendall(b"hello")
        self.opened.release()
        try:
            while connection.recv(65536):
                pass
            # The other side has finished sending; it is gone if it does not take more either.
            for _ in range(1000):
                connection.sendall(b"still here")
                time.sleep(0.01)
        except TimeoutError:
            return
        except OSError:
            self.ended.release()


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def start(jobs: ConfinedJobs, code: str, *args: object, hosts: list[str]) -> int:
    """Start a job and return its id; its answer is not waited for."""
    command = [PYTHON, "-I", "-S", "-c", OPEN_TUNNEL + code, *map(str, args)]
    confinement = jobs.confinement(net=hosts)
    return jobs.client.send("exec", command=command[0], args=command[1:], confinement=confinement)


def tunnelled(jobs: ConfinedJobs, code: str, server: Server) -> str:
    confinement = jobs.confinement(net=[server.name])
    return jobs.python(OPEN_TUNNEL + code, server.name, confinement=confinement)


@pytest.mark.parametrize(
    "head",
    [
        "GET http://HOST/ HTTP/1.1\nHost: evil\r\n\r\n",
        "GET http://HOST/ HTTP/1.1\r\nA: b\n\nGET http://evil/ HTTP/1.1\r\n\r\n",
        "GET http://HOST/ HTTP/1.1\r\nA: b\rC: d\r\n\r\n",
        "GET http://HOST/ HTTP/1.1\r\nA: b\r\n folded: c\r\n\r\n",
        "GET http://HOST/ HTTP/1.1\r\nContent-Length : 5\r\n\r\nhello",
        "GET http://evil@HOST/ HTTP/1.1\r\n\r\n",
        "GET http://HOST\\@evil/ HTTP/1.1\r\n\r\n",
        "GET http://HOST#@evil/ HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: HOST\r\n\r\n",
        "GET https://HOST/ HTTP/1.1\r\n\r\n",
        "POST http://HOST/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "POST http://HOST/ HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0",
        "POST http://HOST/ HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "CONNECT HOST HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
        "CONNECT HOST/path HTTP/1.1\r\n\r\n",
        "\r\nGET http://HOST/ HTTP/1.1\r\n\r\n",
        "SSH-2.0-client\r\n\r\n",
    ],
)
def test_an_ambiguous_request_is_refused(jobs: ConfinedJobs, server: Server, head: str) -> None:
    answer = exchange(jobs, [server.name], head.replace("HOST", server.name).encode())
    assert answer.startswith(b"HTTP/1.1 400 "), answer
    assert server.accepted == 0


def test_the_host_is_the_one_of_the_target(jobs: ConfinedJobs, server: Server) -> None:
    request = f"GET http://{server.name}/ HTTP/1.1\r\nHost: evil.org\r\nhost: b.org\r\n\r\n"
    answer = exchange(jobs, [server.name], request.encode())
    assert answer.count(f"Host: {server.name}\r\n".encode()) == 1
    assert b"evil.org" not in answer
    assert b"b.org" not in answer
    request = f"GET http://evil.org/ HTTP/1.1\r\nHost: {server.name}\r\n\r\n"
    answer = exchange(jobs, [server.name], request.encode())
    assert answer.startswith(b"HTTP/1.1 403 evil.org:80 is not an allowed host\r\n")


@pytest.mark.parametrize(
    "first",
    [
        "GET http://HOST/ HTTP/1.1\r\nConnection: keep-alive\r\n\r\n",
        "POST http://HOST/ HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
        "POST http://HOST/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ],
)
def test_a_second_request_on_a_connection_is_not_passed_on(
    jobs: ConfinedJobs, server: Server, first: str
) -> None:
    second = f"GET http://{server.name}/second HTTP/1.1\r\nHost: evil.org\r\n\r\n"
    answer = exchange(jobs, [server.name], (first.replace("HOST", server.name) + second).encode())
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n"), answer
    assert answer.count(b"HTTP/1.1") == 2
    assert b"second" not in answer
    assert b"evil.org" not in answer


def test_a_second_request_after_the_answer_ends_the_connection(jobs: ConfinedJobs) -> None:
    received = []

    def keep_alive(connection: socket.socket) -> None:
        while data := connection.recv(65536):
            received.append(data)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    code = """
proxy = socket.create_connection(("127.0.0.1", 3128), timeout=20)
for turn in range(2):
    proxy.sendall(f"GET http://{a[0]}/{turn} HTTP/1.1\\r\\n\\r\\n".encode())
    print(proxy.recv(65536)[-2:])
"""
    with serving(keep_alive) as server:
        assert tunnelled(jobs, code, server).split() == ["b'ok'", "b''"]
    assert len(received) == 1


def test_a_head_that_is_too_long_is_refused(jobs: ConfinedJobs, server: Server) -> None:
    request = f"GET http://{server.name}/ HTTP/1.1\r\nA: {'b' * 40_000}\r\n\r\n"
    answer = exchange(jobs, [server.name], request.encode())
    assert answer.startswith(b"HTTP/1.1 431 the head is too long\r\n")
    assert server.accepted == 0


def test_a_host_that_does_not_answer_is_reported(jobs: ConfinedJobs) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        name = f"127.0.0.1:{closed.getsockname()[1]}"
    expected = f"HTTP/1.1 502 {name} cannot be reached: Connection refused"
    assert tunnel(jobs, [name], name) == expected


def test_each_half_of_a_tunnel_ends_by_itself(jobs: ConfinedJobs) -> None:
    def after_the_end(connection: socket.socket) -> None:
        received = b""
        while data := connection.recv(65536):
            received += data
        connection.sendall(received.upper())

    code = """
s = tunnel(a[0]); s.sendall(b"question"); s.shutdown(socket.SHUT_WR); print(s.recv(100), s.recv(1))
"""
    with serving(after_the_end) as server:
        assert tunnelled(jobs, code, server) == "b'QUESTION' b''"

    heard = threading.Event()

    def end_first(connection: socket.socket) -> None:
        connection.shutdown(socket.SHUT_WR)
        if connection.recv(100) == b"still heard":
            heard.set()

    code = """
s = tunnel(a[0]); print(s.recv(1)); s.sendall(b"still heard"); s.close()
"""
    with serving(end_first) as server:
        assert tunnelled(jobs, code, server) == "b''"
        assert heard.wait(10)


def test_much_data_passes_unchanged_in_both_directions(jobs: ConfinedJobs) -> None:
    code = """
import hashlib, threading
s = tunnel(a[0])
block = bytes(range(256)) * 4096
sent, got = hashlib.sha256(), hashlib.sha256()
def send():
    for _ in range(64):
        sent.update(block)
        s.sendall(block)
    s.shutdown(socket.SHUT_WR)
thread = threading.Thread(target=send); thread.start()
while data := s.recv(1 << 20):
    got.update(data)
thread.join()
print(got.hexdigest() == sent.hexdigest(), got.hexdigest())
"""
    whole = hashlib.sha256(bytes(range(256)) * 4096 * 64).hexdigest()
    with serving(echo) as server:
        assert tunnelled(jobs, code, server) == f"True {whole}"


def test_a_chunked_body_is_passed_on(jobs: ConfinedJobs, server: Server) -> None:
    body = "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nTrailer: t\r\n\r\n"
    head = f"POST http://{server.name}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = exchange(jobs, [server.name], (head + body).encode())
    assert answer.endswith(b"\r\n\r\n" + body.encode())


def test_connections_are_bounded_and_the_others_wait(jobs: ConfinedJobs) -> None:
    code = f"""
import time
waiting = [socket.create_connection(("127.0.0.1", 3128), timeout=30) for _ in range(200)]
time.sleep(2)
for connection in waiting[:{MOST_CONNECTIONS}]:
    connection.close()
print(tunnel(a[0]).recv(5))
"""
    holding = Holding()
    helper = jobs.client.process
    with serving(holding) as server:
        start(jobs, code, server.name, hosts=[server.name])
        wait_until(lambda: len(threads(helper, "proxied")) == MOST_CONNECTIONS)
        time.sleep(0.3)
        assert len(threads(helper, "proxied")) == MOST_CONNECTIONS
        answer = jobs.client.receive()
        assert answer.stdout == b"b'hello'\n", answer.stderr
    wait_until(lambda: not threads(helper, "proxied"))


def test_connections_end_with_the_job(jobs: ConfinedJobs) -> None:
    holding = Holding()
    with serving(holding) as server:
        # The server does not close its half, so only the end of the job ends the connection.
        code = "s = tunnel(a[0]); s.recv(5); s.shutdown(socket.SHUT_WR); print('end')"
        assert tunnelled(jobs, code, server) == "end"
        assert holding.ended.acquire(timeout=10)
        wait_until(lambda: not threads(jobs.client.process, "proxied"))


def test_a_cancelled_job_loses_its_connections(jobs: ConfinedJobs) -> None:
    holding = Holding()
    with serving(holding) as server:
        job = start(
            jobs, "s = tunnel(a[0]); s.recv(6); s.recv(1)", server.name, hosts=[server.name]
        )
        assert holding.opened.acquire(timeout=10)
        jobs.client.send("cancel", target=job)
        assert holding.ended.acquire(timeout=10)
        wait_until(lambda: not threads(jobs.client.process, "proxied"))


@pytest.mark.parametrize("ending", ["closed", "worker killed"])
def test_the_proxy_does_not_outlive_the_helper(jobs: ConfinedJobs, ending: str) -> None:
    holding = Holding()
    with serving(holding) as server:
        start(jobs, "s = tunnel(a[0]); s.recv(6); s.recv(1)", server.name, hosts=[server.name])
        assert holding.opened.acquire(timeout=10)
        [worker] = threads(jobs.client.process, "proxy")
        if ending == "closed":
            jobs.client.close()
        else:
            os.kill(worker, signal.SIGKILL)
        assert holding.ended.acquire(timeout=10)
        jobs.client.process.wait(timeout=10)


def test_the_proxy_ends_with_its_profile(jobs: ConfinedJobs) -> None:
    helper = jobs.client.process
    for number in range(MOST_PROFILES + 6):
        confinement = jobs.confinement(net=[f"a{number}.org:1"])
        assert jobs.run("true", confinement=confinement).header["success"]
    wait_until(lambda: 0 < len(threads(helper, "proxy")) <= MOST_PROFILES)


def test_another_job_and_another_list_are_independent(jobs: ConfinedJobs, server: Server) -> None:
    holding = Holding()
    with serving(holding) as other:
        start(jobs, "s = tunnel(a[0]); s.recv(6); s.recv(1)", other.name, hosts=[other.name])
        assert holding.opened.acquire(timeout=10)
        with confined_jobs("root" if jobs.uid == 0 else "ordinary") as second:
            refusal = f"HTTP/1.1 403 {other.name} is not an allowed host"
            assert tunnel(second, [server.name], other.name) == refusal
            assert tunnel(second, [server.name], server.name).startswith("HTTP/1.1 200 ")
        assert not holding.ended.acquire(blocking=False)
