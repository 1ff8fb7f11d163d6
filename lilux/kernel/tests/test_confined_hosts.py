"""A list of hosts through the process client: real programs behind the proxy."""

from __future__ import annotations

import datetime as dt
import functools
import http.server
import ipaddress
import os
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from lilux.primitives.subprocess import BlockingSubprocess, Confinement, SubprocessResult
from lilux.primitives.subprocess.confinement import confinement_fields
from process_transports import Execute

EXECUTABLE = tuple(
    sorted(
        {
            os.path.realpath(path)
            for path in ("/usr", "/bin", "/lib", "/lib64", sys.prefix, sys.base_prefix)
            if Path(path).exists()
        }
    )
)
URLLIB = """
import sys, urllib.request, urllib.error
try: print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())
except urllib.error.URLError as error: print(error)
"""
HTTPX = """
import ssl, sys, httpx2
verify = ssl.create_default_context(cafile=sys.argv[2])
try: print(httpx2.get(sys.argv[1], verify=verify).text)
except httpx2.HTTPError as error: print(error)
"""


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base
        pass


class Site:
    """A folder that is served by HTTP and HTTPS on the loopback interface."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "page").write_text("the page")
        self.authority = folder / "authority.pem"
        self.servers = [self._server(), self._server()]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(_certificate(self.authority), None)
        self.servers[1].socket = context.wrap_socket(self.servers[1].socket, server_side=True)
        for server in self.servers:
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        self.http, self.https = (f"localhost:{server.server_port}" for server in self.servers)

    def _server(self) -> http.server.ThreadingHTTPServer:
        handler = functools.partial(_Handler, directory=str(self.folder))
        return http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)

    def close(self) -> None:
        for server in self.servers:
            server.shutdown()
            server.server_close()


def _certificate(authority: Path) -> Path:
    """Write a certificate for localhost, and beside it the same with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    authority.write_bytes(certificate)
    with_key = authority.with_name("key.pem")
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    with_key.write_bytes(certificate + private)
    return with_key


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A running site."""
    running = Site(tmp_path.resolve() / "site")
    yield running
    running.close()


@pytest.fixture
def can_confine() -> None:
    """Skip if this machine cannot enforce a list of hosts."""
    with BlockingSubprocess() as blocking:
        enforced = blocking.probe_confinement().enforced
    if enforced.get("net") != "namespace" or "fs" not in enforced:
        pytest.skip("not tried: this machine has no network namespaces")


def run(
    execute: Execute, site: Site, *command: str, net: tuple[str, ...], **more: Any
) -> SubprocessResult:
    """Run a command that may reach ``net`` and read the certificate of the site."""
    confinement = Confinement(
        execute=EXECUTABLE,
        read=("/etc", "/dev/urandom", site.authority, *more.pop("read", ())),
        write=("/dev/null", *more.pop("write", ())),
        tmp=("TMPDIR", "HOME"),
        net=net,
        require=("fs", "net"),
    )
    env = {"PATH": os.defpath, "LC_ALL": "C"}
    config = {"command": command[0], "args": list(command[1:]), "env": env, "env_mode": "exact"}
    return execute({**config, **more, "confinement": confinement})


@pytest.mark.usefixtures("can_confine")
def test_curl_reaches_listed_hosts_only(execute: Execute, site: Site) -> None:
    hosts = (site.http, site.https)
    curl = ("curl", "-sS", "--cacert", str(site.authority))
    for url in (f"http://{site.http}/page", f"https://{site.https}/page"):
        result = run(execute, site, *curl, url, net=hosts)
        assert (result.stdout, result.stderr) == ("the page", "")
        assert result.confinement is not None
        assert result.confinement.enforced["net"] == "namespace and proxy"
    result = run(execute, site, *curl, f"https://{site.https}/page", net=(site.http,))
    assert (result.stdout, result.return_code) == ("", 56)
    assert result.stderr == "curl: (56) CONNECT tunnel failed, response 403\n"
    result = run(execute, site, *curl, f"http://{site.http}/page", net=(site.https,))
    assert result.stdout == f"{site.http} is not an allowed host\n"
    direct = run(execute, site, *curl, "--noproxy", "*", f"http://{site.http}/page", net=hosts)
    assert (direct.success, direct.stdout) == (False, "")


@pytest.mark.usefixtures("can_confine")
def test_python_reaches_listed_hosts_only(execute: Execute, site: Site) -> None:
    hosts = (site.http, site.https)
    for code in (URLLIB, HTTPX):
        for url in (f"http://{site.http}/page", f"https://{site.https}/page"):
            command = (sys.executable, "-c", code, url, str(site.authority))
            env = {"SSL_CERT_FILE": str(site.authority), "PATH": os.defpath}
            result = run(execute, site, *command, net=hosts, env=env)
            assert (result.stdout, result.stderr) == ("the page\n", "")
            result = run(execute, site, *command, net=("example.org:443",), env=env)
            assert f"{url.split('/')[2]} is not an allowed host" in result.stdout, result.stderr


@pytest.mark.usefixtures("can_confine")
def test_git_clones_from_a_listed_host_only(execute: Execute, site: Site, tmp_path: Path) -> None:
    if not shutil.which("git"):
        pytest.skip("not tried: git is not installed")
    source, target = tmp_path.resolve() / "source", tmp_path.resolve() / "target"
    target.mkdir()
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (
        ("git", "init", "-q", str(source)),
        (*git, "-C", str(source), "commit", "-q", "--allow-empty", "-m", "first"),
        ("git", "clone", "-q", "--bare", str(source), str(site.folder / "a.git")),
        ("git", "-C", str(site.folder / "a.git"), "update-server-info"),
    ):
        subprocess.run(command, check=True)
    for scheme, host in (("http", site.http), ("https", site.https)):
        clone = ("git", "-c", f"http.sslCAInfo={site.authority}", "clone", "-q")
        folder = target / scheme
        url = f"{scheme}://{host}/a.git"
        refused = run(
            execute, site, *clone, url, str(folder), net=("example.org:443",), write=(target,)
        )
        assert not refused.success
        assert "403" in refused.stderr
        result = run(execute, site, *clone, url, str(folder), net=(host,), write=(target,))
        assert result.success, result.stderr
        assert (folder / ".git/HEAD").exists()


@pytest.mark.usefixtures("can_confine")
def test_the_environment_of_the_caller_is_replaced(execute: Execute, site: Site) -> None:
    env = {"HTTP_PROXY": "http://127.0.0.1:1", "no_proxy": "*", "PATH": os.defpath}
    script = 'echo "$HTTP_PROXY" "$http_proxy" "$https_proxy" "$ALL_PROXY" "[$NO_PROXY$no_proxy]"'
    result = run(execute, site, "sh", "-c", script, net=(site.http,), env=env)
    assert result.stdout == " ".join(["http://127.0.0.1:3128"] * 4) + " []\n"


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("example.org", "needs a port from 1 to 65535, as in api.example.org:443"),
        ("http://example.org:80", "is not the name of a host"),
        ("münchen.de:443", "is not ASCII; write the name in punycode (xn--…)"),
        ("0177.0.0.1:80", "is not an address in its usual form, such as 127.0.0.1"),
    ],
)
def test_what_is_not_a_host_is_refused(execute: Execute, host: str, reason: str) -> None:
    confinement = Confinement(net=("example.org:443", host), require=())
    result = execute({"command": "true", "confinement": confinement})
    assert (result.success, result.stderr) == (False, f"confinement.net[1] {reason}")


def test_a_list_of_hosts_is_sent_as_it_is() -> None:
    hosts = ("a.org:443", "*.b.org:80")
    assert confinement_fields(Confinement(net=hosts))["net"] == list(hosts)
    assert confinement_fields(Confinement(net=()))["net"] == "none"
    broken: Any = {"net": ("a.org:443", 1)}
    with pytest.raises(ValueError, match="must be 'none', 'all' or a tuple of hosts"):
        confinement_fields(Confinement(**broken))
