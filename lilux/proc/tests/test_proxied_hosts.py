"""A job whose network is a list of hosts: what it reaches, and that it cannot reach more."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confined_jobs import ConfinedJobs, confined_jobs, real_paths, uid_of, users
from proc_client import ProcClient, find_binary
from proxied_jobs import (
    Server,
    binary_with_hosts,
    exchange,
    mirror,
    needs_proxy,
    serving,
    tunnel,
)

ESTABLISHED = "HTTP/1.1 200 Connection established"
OWN = "leads to 8.8.4.4, which is this machine and not an allowed host itself"
NAMES = """
127.0.0.1 localhost
127.0.0.1 loop.example.org deep.loop.example.org example.org loop.example.net
169.254.169.254 metadata.example.org
10.255.255.1 private.example.org
100.100.100.200 shared.example.org
::1 loop6.example.org
fe80::1 link.example.org
::ffff:127.0.0.1 mapped.example.org
127.0.0.1 xn--mnchen-3ya.example.org
"""
WITHOUT_NAMESPACES = (
    'for kind in user mnt net; do echo 0 > /proc/sys/user/max_${kind}_namespaces; done; exec "$@"'
)


@pytest.fixture(scope="module", params=users())
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


@pytest.fixture(scope="module", params=users())
def named(request: pytest.FixtureRequest) -> Iterator[ConfinedJobs]:
    """Jobs of a helper that resolves the names above."""
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="confined-")))
    folder.chmod(0o755)
    try:
        binary_with_hosts(folder, NAMES, uid_of(request.param))
        jobs = ConfinedJobs(folder, "root")
        jobs.uid = uid_of(request.param)
        for path in (jobs.project, jobs.outside):
            os.chown(path, jobs.uid, -1)
        with jobs.client:
            needs_proxy(jobs)
            yield jobs
    finally:
        shutil.rmtree(folder)


def test_a_listed_host_is_reached_by_http_and_through_a_tunnel(
    jobs: ConfinedJobs, server: Server
) -> None:
    request = f"GET http://{server.name}/path HTTP/1.1\r\nAccept: */*\r\n\r\n".encode()
    answer = exchange(jobs, [server.name], request)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(
        b"GET /path HTTP/1.1\r\nHost: " + server.name.encode() + b"\r\nAccept: */*\r\n"
        b"Connection: close\r\n\r\n"
    )
    inner = b"GET / HTTP/1.1\r\n\r\n"
    answer = exchange(
        jobs, [server.name], f"CONNECT {server.name} HTTP/1.1\r\n\r\n".encode() + inner
    )
    assert answer.startswith(ESTABLISHED.encode() + b"\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert answer.endswith(inner)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example.org:PORT",
        "LOCALHOST.example.org:PORT",
        "localhost.localdomain:PORT",
        "xlocalhost:PORT",
        "sub.localhost:PORT",
        "127.0.0.1:PORT",
        "127.0.0.2:PORT",
        "0.0.0.0:PORT",
        "[::1]:PORT",
        "[::]:PORT",
        "[::ffff:127.0.0.1]:PORT",
        "169.254.169.254:80",
        "[fd00:ec2::254]:80",
        "localhost:22",
        "localhost:80",
    ],
)
def test_a_host_that_is_not_listed_is_refused(
    jobs: ConfinedJobs, server: Server, host: str
) -> None:
    host = host.replace("PORT", str(server.port))
    shown = host.lower()
    if "ffff" in host:
        shown = f"127.0.0.1:{server.port}"
    refusal = f"HTTP/1.1 403 {shown} is not an allowed host"
    assert tunnel(jobs, [server.name], host) == refusal
    answer = exchange(jobs, [server.name], f"GET http://{host}/ HTTP/1.1\r\n\r\n".encode())
    assert answer.split(b"\r\n")[0].decode() == refusal
    assert server.accepted == 0


@pytest.mark.parametrize("host", ["LocalHost:PORT", "localhost.:PORT", "LOCALHOST.:PORT"])
def test_upper_case_and_a_trailing_dot_do_not_make_another_name(
    jobs: ConfinedJobs, server: Server, host: str
) -> None:
    host = host.replace("PORT", str(server.port))
    assert tunnel(jobs, [server.name], host) == ESTABLISHED
    assert tunnel(jobs, [host], server.name) == ESTABLISHED
    refusal = f"HTTP/1.1 403 {server.name} is not an allowed host"
    assert tunnel(jobs, ["other.example.org:443"], host) == refusal


@pytest.mark.parametrize(
    "host",
    ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0x7f.1", "127.0.0.1.", "127.0.0.01"],
)
def test_an_unusual_form_of_an_address_is_not_a_host(
    jobs: ConfinedJobs, server: Server, host: str
) -> None:
    hosts = [server.name, f"127.0.0.1:{server.port}"]
    expected = "HTTP/1.1 400 the host is not an address in its usual form, such as 127.0.0.1"
    assert tunnel(jobs, hosts, f"{host}:{server.port}") == expected
    assert server.accepted == 0


def test_an_address_is_allowed_if_it_is_listed_itself(jobs: ConfinedJobs, server: Server) -> None:
    address = f"127.0.0.1:{server.port}"
    assert tunnel(jobs, [address], address) == ESTABLISHED
    assert tunnel(jobs, [address], f"[::ffff:7f00:1]:{server.port}") == ESTABLISHED
    refusal = f"HTTP/1.1 403 {server.name} is not an allowed host"
    assert tunnel(jobs, [address], server.name) == refusal


def test_an_ipv6_address_is_allowed_if_it_is_listed_itself(jobs: ConfinedJobs) -> None:
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(serving(mirror, "::1"))
        except OSError:
            pytest.skip("not tried: this machine has no IPv6")
        hosts = [f"[0:0::1]:{server.port}"]
        assert tunnel(jobs, hosts, f"[::1]:{server.port}") == ESTABLISHED
        assert tunnel(jobs, [server.name], server.name) == ESTABLISHED


def test_a_redirect_to_another_host_is_refused(jobs: ConfinedJobs, server: Server) -> None:
    def redirect(connection: socket.socket) -> None:
        connection.recv(65536)
        location = f"http://127.0.0.1:{server.port}/secret"
        connection.sendall(f"HTTP/1.1 302 Found\r\nLocation: {location}\r\n\r\n".encode())

    with serving(redirect) as first:
        confinement = jobs.confinement(net=[first.name, server.name])
        answer = jobs.run("curl", "-sSL", f"http://{first.name}/", confinement=confinement)
        assert answer.stdout == f"127.0.0.1:{server.port} is not an allowed host\n".encode()
        assert (first.accepted, server.accepted) == (1, 0)


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("loop.example.org", "127.0.0.1"),
        ("metadata.example.org", "169.254.169.254"),
        ("private.example.org", "10.255.255.1"),
        ("shared.example.org", "100.100.100.200"),
        ("loop6.example.org", "::1"),
        ("link.example.org", "fe80::1"),
        ("mapped.example.org", "127.0.0.1"),
    ],
)
def test_a_name_that_leads_into_this_machine_or_its_network_is_refused(
    named: ConfinedJobs, server: Server, name: str, address: str
) -> None:
    for hosts in ([f"{name}:{server.port}"], [f"*.example.org:{server.port}", server.name]):
        assert tunnel(named, hosts, f"{name}:{server.port}") == (
            f"HTTP/1.1 403 {name}:{server.port} leads to {address}, "
            "which is not public and not an allowed host itself"
        )
    assert server.accepted == 0


def test_a_name_reaches_a_private_address_that_is_listed_too(
    named: ConfinedJobs, server: Server
) -> None:
    port = server.port
    address = f"127.0.0.1:{port}"
    for name in ("loop.example.org", "xn--mnchen-3ya.example.org", "mapped.example.org"):
        assert tunnel(named, [f"{name}:{port}", address], f"{name}:{port}") == ESTABLISHED
    hosts = [f"loop.example.org:{port}", "127.0.0.1:1"]
    refused = tunnel(named, hosts, f"loop.example.org:{port}")
    assert refused.startswith(f"HTTP/1.1 403 loop.example.org:{port} leads to 127.0.0.1, ")


def test_a_wildcard_is_for_the_names_below_it(named: ConfinedJobs, server: Server) -> None:
    port = server.port
    hosts = [f"*.example.org:{port}", f"127.0.0.1:{port}"]
    for name in ("loop.example.org", "deep.loop.example.org", "Loop.Example.ORG."):
        assert tunnel(named, hosts, f"{name}:{port}") == ESTABLISHED
    for name in ("example.org", "loop.example.net", "loopexample.org"):
        refusal = f"HTTP/1.1 403 {name}:{port} is not an allowed host"
        assert tunnel(named, hosts, f"{name}:{port}") == refusal


@pytest.mark.parametrize(
    ("attack", "expected"),
    [
        ("socket.create_connection(('127.0.0.1', int(a[0])))", "EACCES"),
        ("socket.create_connection(('169.254.169.254', 80))", "EACCES"),
        ("socket.create_connection(('127.0.0.1', 3129))", "EACCES"),
        ("socket.create_connection(('127.0.0.1', 3128))", "done"),
        ("socket.socket().sendto(b'x', socket.MSG_FASTOPEN, ('127.0.0.1', int(a[0])))", "refused"),
        ("socket.socket().bind(('127.0.0.1', 0))", "EACCES"),
        ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM)", "EACCES"),
        ("socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)", "EACCES"),
        ("socket.socket(socket.AF_INET6, socket.SOCK_STREAM)", "EACCES"),
        ("socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)", "EACCES"),
        ("socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)", "EACCES"),
        ("socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)", "EACCES"),
        ("socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)", "EACCES"),
    ],
)
def test_without_the_proxy_nothing_is_reached(
    jobs: ConfinedJobs, server: Server, attack: str, expected: str
) -> None:
    confinement = jobs.confinement(net=[server.name])
    found = jobs.error_of(attack, server.port, confinement=confinement)
    if expected == "refused":
        assert found in ("EACCES", "ECONNREFUSED", "EOPNOTSUPP")
    elif "bind" in attack or "connect" in attack:
        # Where Landlock does not know ports, the namespace is still empty.
        assert found in (expected, "ECONNREFUSED", "ENETUNREACH")
        assert (found == "done") == (expected == "done")
    else:
        assert found == expected
    assert server.accepted == 0


def test_names_are_not_looked_up_by_the_job(jobs: ConfinedJobs, server: Server) -> None:
    code = (
        "import socket\ntry: print(socket.getaddrinfo('secret.example.com', 80))\n"
        "except socket.gaierror: print('no answer')"
    )
    assert jobs.python(code, confinement=jobs.confinement(net=[server.name])) == "no answer"


def test_variables_of_the_caller_do_not_lead_around_the_proxy(
    jobs: ConfinedJobs, server: Server
) -> None:
    env = {"NO_PROXY": "*", "no_proxy": "localhost", "http_proxy": "http://127.0.0.1:1"}
    code = "import os\nprint(*(f'{k}={v}' for k, v in os.environ.items() if 'PROXY' in k.upper()))"
    confinement = jobs.confinement(net=[server.name])
    names = ("ALL", "HTTP", "HTTPS", "all", "http", "https")
    proxies = {f"{name}_{'PROXY' if name.isupper() else 'proxy'}" for name in names}
    expected = {f"{name}=http://127.0.0.1:3128" for name in proxies} | {"NO_PROXY=", "no_proxy="}
    found = jobs.python(code, confinement=confinement, env={"PATH": "/usr/bin:/bin", **env})
    assert set(found.split()) == expected


def test_the_report_names_the_proxy(jobs: ConfinedJobs) -> None:
    confinement = jobs.confinement(net=["example.org:443"])
    report = jobs.run("true", confinement=confinement).header["confinement"]
    assert report["enforced"]["net"] == "namespace and proxy"
    assert report["missing"] == []


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("example.org", "needs a port from 1 to 65535, as in api.example.org:443"),
        ("example.org:https", "needs a port from 1 to 65535, as in api.example.org:443"),
        ("https://example.org:443", "is not the name of a host"),
        ("münchen.de:443", "is not ASCII; write the name in punycode (xn--…)"),
        ("127.1:443", "is not an address in its usual form, such as 127.0.0.1"),
        ("*:443", "may have '*' only as the first label, as in *.example.org:443"),
        ("[::1:443", "has no IPv6 address in its brackets"),
    ],
)
def test_what_is_not_a_host_is_an_invalid_request(
    linux: ProcClient, host: str, reason: str
) -> None:
    answer = linux.exec("true", confinement={"net": ["example.org:443", host]})
    assert answer.header["kind"] == "error"
    assert answer.header["message"] == f"confinement.net[1] {reason}"


def test_without_namespaces_a_list_of_hosts_is_refused() -> None:
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", WITHOUT_NAMESPACES, "sh"]
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("not tried: this machine has no user namespaces to switch off")

    def answer(require: list[str]) -> dict[str, Any]:
        confinement = {"execute": real_paths("/usr"), "net": ["a.org:443"], "require": require}
        done = subprocess.run(
            [*command, find_binary(), "exec", "--request"],
            input=json.dumps({"command": "env", "confinement": confinement}).encode(),
            capture_output=True,
            check=False,
        )
        printed: dict[str, Any] = json.loads(done.stdout)
        return printed

    reason = "network namespaces cannot be used: No space left on device"
    expected = f"Failed to spawn: the confinement cannot be enforced here: net ({reason})"
    assert answer(["net"])["stderr"] == expected
    # A caller that accepts it gets a job with the whole network, which is reported as such.
    accepted = answer([])
    assert "net" not in accepted["confinement"]["enforced"]
    assert {"part": "net", "reason": reason} in accepted["confinement"]["missing"]
    assert "127.0.0.1:3128" not in accepted["stdout"]


def test_the_portable_platform_does_not_enforce_a_list_of_hosts() -> None:
    with ProcClient("--platform", "portable") as client:
        answer = client.exec("true", confinement={"net": ["a.org:443"], "require": ["net"]})
    assert b"net (lilux-proc does not confine processes on this platform)" in answer.stderr


IN_A_NETWORK_OF_ITS_OWN = """
import subprocess, sys
from confined_jobs import confined_jobs
from proxied_jobs import mirror, serving, tunnel

# Of the two public addresses, one is this machine's own, and the other one looks like another's.
for command in (
    "ip link set lo up",
    "ip address add 8.8.4.4/32 dev lo",
    "ip address add 10.9.9.9/32 dev lo",
    "ip route add local 9.9.9.0/24 dev lo src 10.9.9.9",
    f"mount --bind {sys.argv[1]} /etc/hosts",
):
    subprocess.run(command.split(), check=True)
with confined_jobs(sys.argv[2]) as jobs:
    for address, name in (("9.9.9.9", "other.example.org"), ("8.8.4.4", "own.example.org")):
        with serving(mirror, address) as server:
            target = f"{name}:{server.port}"
            print(tunnel(jobs, [target], target).replace(str(server.port), "PORT"))
            print(tunnel(jobs, [target, f"{address}:{server.port}"], target))
"""


@pytest.mark.parametrize("user", users())
def test_a_public_address_is_reached_by_its_name_unless_it_is_this_machine(
    user: str, tmp_path: Path
) -> None:
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "ip"))):
        pytest.skip("not tried: only root can give this machine another network")
    names = tmp_path / "hosts"
    names.write_text("9.9.9.9 other.example.org\n8.8.4.4 own.example.org\n")
    isolated = ("unshare", "--mount", "--net", sys.executable)
    done = subprocess.run(
        [*isolated, "-c", IN_A_NETWORK_OF_ITS_OWN, str(names), user],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if "Operation not permitted" in done.stderr:
        pytest.skip("not tried: this root cannot configure a network")
    assert done.stdout.splitlines() == [
        ESTABLISHED,
        ESTABLISHED,
        f"HTTP/1.1 403 own.example.org:PORT {OWN}",
        ESTABLISHED,
    ], done.stderr
