"""A confined job and sockets: networks, name lookups, and unix sockets of other processes."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from confined_jobs import ConfinedJobs, confined_jobs, users


@pytest.fixture(params=users())
def jobs(request: pytest.FixtureRequest) -> Iterator[ConfinedJobs]:
    """The jobs of root and of an ordinary user."""
    with confined_jobs(request.param) as jobs:
        yield jobs


@contextlib.contextmanager
def listening(family: int, kind: int, address: str | tuple[str, int]) -> Iterator[socket.socket]:
    with socket.socket(family, kind) as server:
        server.bind(address)
        if isinstance(address, str) and address.startswith("/"):
            Path(address).chmod(0o777)
        if kind == socket.SOCK_STREAM:
            server.listen()
        yield server


@pytest.mark.parametrize(
    "attack",
    [
        "socket.create_connection(('127.0.0.1', int(a[0])))",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
        "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)",
        "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)",
        "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
        "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
        "socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)",
        "socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)",
    ],
)
def test_without_a_network_no_socket_can_be_created(jobs: ConfinedJobs, attack: str) -> None:
    with listening(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)) as server:
        assert jobs.error_of(attack, server.getsockname()[1]) == "EACCES"


def test_without_a_network_names_are_not_looked_up(jobs: ConfinedJobs) -> None:
    code = "import socket\ntry: print(socket.getaddrinfo('secret.example.com', 80))\n"
    assert "Error" not in jobs.python(code + "except socket.gaierror: print('no answer')")
    assert jobs.python(code + "except socket.gaierror: print('no answer')") == "no answer"


def test_with_the_network_tcp_and_udp_work_and_other_families_do_not(jobs: ConfinedJobs) -> None:
    confinement = jobs.confinement(net="all")
    with listening(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = "socket.create_connection(('127.0.0.1', int(a[0])))"
        assert jobs.error_of(connect, port, confinement=confinement) == "done"
    for attack, expected in [
        ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM)", "done"),
        ("socket.getaddrinfo('localhost', 80)", "done"),
        ("socket.socket(socket.AF_PACKET, socket.SOCK_RAW)", "EACCES"),
        ("socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)", "EPERM"),
        ("socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)", "EACCES"),
    ]:
        assert jobs.error_of(attack, confinement=confinement) == expected, attack


@pytest.mark.parametrize("net", ["none", "all"])
def test_a_unix_socket_in_a_granted_folder_cannot_be_reached(jobs: ConfinedJobs, net: str) -> None:
    path = str(jobs.project / "agent.sock")
    confinement = jobs.confinement(net=net)
    with listening(socket.AF_UNIX, socket.SOCK_STREAM, path) as server:
        attack = "s = socket.socket(socket.AF_UNIX); s.connect(a[0])"
        assert jobs.error_of(attack, path, confinement=confinement) == "EACCES"
        attack = "socket.socketpair()[0].connect(a[0])"
        assert jobs.error_of(attack, path, confinement=confinement) == "EISCONN"
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize("net", ["none", "all"])
def test_one_end_of_a_pair_cannot_send_to_a_unix_socket(jobs: ConfinedJobs, net: str) -> None:
    path = str(jobs.folder / "log.sock")
    confinement = jobs.confinement(net=net)
    with listening(socket.AF_UNIX, socket.SOCK_DGRAM, path) as server:
        for attack, expected in [
            ("socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(b'x', a[0])", "EACCES"),
            ("socket.socketpair(type=socket.SOCK_RAW)[0].sendto(b'x', a[0])", "EACCES"),
            ("socket.socketpair()[0].sendto(b'x', a[0])", "EISCONN"),
            # The address is ignored, and the other end of the pair is closed.
            ("socket.socketpair(type=socket.SOCK_SEQPACKET)[0].sendto(b'x', a[0])", "EPIPE"),
            ("a, b = socket.socketpair(); a.send(b'x'); b.recv(1)", "done"),
        ]:
            assert jobs.error_of(attack, path, confinement=confinement) == expected, attack
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.recv(1)


def test_with_unix_sockets_a_server_is_reached(jobs: ConfinedJobs) -> None:
    path = str(jobs.project / "agent.sock")
    confinement = jobs.confinement(unix=True)
    with listening(socket.AF_UNIX, socket.SOCK_STREAM, path):
        attack = "s = socket.socket(socket.AF_UNIX); s.connect(a[0])"
        assert jobs.error_of(attack, path, confinement=confinement) == "done"
    assert "unix" not in jobs.run("true", confinement=confinement).header["confinement"]["enforced"]


def test_the_network_of_a_job_is_empty(jobs: ConfinedJobs) -> None:
    if jobs.enforced["net"] != "namespace":
        pytest.skip("not tried: this machine has no network namespaces")
    confinement = jobs.confinement(read=["/proc"])
    read = "print(open('/proc/self/net/dev').read().count(':'), open('/proc/self/net/unix').read())"
    devices = jobs.python(read, confinement=confinement)
    assert devices.split()[0] == "1", devices
    assert jobs.folder.name not in devices
