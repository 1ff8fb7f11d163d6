"""The connection to a Ray cluster, and what has to be true before anything is sent to it."""

from __future__ import annotations

import contextlib
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from rye.errors import ClusterError

_PROBE_SECONDS = 30.0
_REACH_SECONDS = 10.0
_MAX_PORT = 65535
# Asks the head for something without a token; exits with 0 only if it answers.
_PROBE = """
import sys
from ray._raylet import GcsClient
GcsClient(address=sys.argv[1]).internal_kv_keys(b"rye", namespace=b"rye", timeout=10)
"""


class ClusterNode(NamedTuple):
    """A living node."""

    id: str
    address: str
    cpus: int


def load_ray() -> Any:
    """The module ``ray``. Raises :class:`ClusterError` if it is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Below `uv run`, Ray would send the working directory to the cluster, with all secrets in it.
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
    try:
        import ray
    except ImportError:
        raise ClusterError("ray is not installed", hint="pip install 'rye[ray]'") from None
    return ray


def connect(*, insecure: bool) -> list[ClusterNode]:
    """Connect to ``RAY_ADDRESS``, or to the cluster of this machine; returns its nodes.

    A program that is connected already stays so.

    Raises :class:`ClusterError` if there is none, if it does not fit to this program, or if it
    needs no authentication, is not on this machine, and ``insecure`` is false.
    """
    ray = load_ray()
    connected = ray.is_initialized()
    if not connected:
        _join(ray, os.environ.get("RAY_ADDRESS") or "auto")
    try:
        nodes = [
            ClusterNode(
                one["NodeID"],
                one["NodeManagerAddress"],
                int(one["Resources"].get("CPU", 0)),
            )
            for one in ray.nodes()
            if one["Alive"]
        ]
        if not insecure:
            gcs = ray.get_runtime_context().gcs_address
            require_authentication(gcs, [one.address for one in nodes])
    except BaseException:
        if not connected:
            ray.shutdown()
        raise
    # A head without processors is there to schedule, not to work.
    return [one for one in nodes if one.cpus > 0] or nodes


def _join(ray: Any, address: str) -> None:
    if address.startswith("ray://"):
        raise ClusterError(
            f"RAY_ADDRESS={address} is the address of a Ray Client, which rye does not use",
            hint="run it on the cluster: ray job submit -- rye batch … --on ray",
        )
    if address == "local":
        address = "auto"
    if address != "auto":
        _reach(address)
    try:
        # Workers search the driver's directory for modules first, and a project is not trusted.
        with contextlib.chdir("/"):
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except ConnectionError as error:
        raise _no_cluster(address, error) from None
    except ray.exceptions.AuthenticationError as error:
        raise ClusterError(
            f"the cluster at {address} refused the token: {_first_line(error)}",
            hint="set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH to the cluster's token",
        ) from None
    except RuntimeError as error:
        if "ersion mismatch" in str(error):
            raise ClusterError(
                f"the cluster at {address} runs other versions: {_first_line(error)}",
                hint=f"install ray {ray.__version__} and Python {platform.python_version()} there",
            ) from None
        raise _no_cluster(address, error) from None


def _reach(address: str) -> None:
    """Ray itself tries for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > _MAX_PORT:
        raise ClusterError(
            f"RAY_ADDRESS={address} is not an address of a cluster", hint="set it to HOST:PORT"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), _REACH_SECONDS).close()
    except OSError as error:
        raise _no_cluster(address, error) from None


def require_authentication(head: str, addresses: Iterable[str]) -> None:
    """Raise :class:`ClusterError` unless only those who may can use the cluster.

    That is so if every node is on this machine, if the connection uses TLS, with which Ray lets in
    only those who have a certificate, or if the head refuses a question without a token.
    """
    if all(map(is_here, addresses)) or os.environ.get("RAY_USE_TLS", "0") in ("1", "true"):
        return
    if _answers_anybody(head):
        raise ClusterError(
            f"the cluster at {head} has no authentication: anyone who reaches it can run programs "
            "on its nodes, and read what you send",
            hint="start it with RAY_AUTH_MODE=token, or accept that with --insecure",
        )


def is_here(address: str) -> bool:
    """True for an address of this machine: only such an address can be bound."""
    try:
        kind = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(kind, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def _answers_anybody(head: str) -> bool:
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH_")
    }
    done = subprocess.run(
        [sys.executable, "-c", _PROBE, head],
        env={**environ, "RAY_AUTH_MODE": "disabled"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=_PROBE_SECONDS,
        check=False,
    )
    # Anything but a refusal is treated as an answer.
    return b"nauthenticated" not in done.stderr


def _no_cluster(address: str, error: Exception) -> ClusterError:
    if address == "auto":
        return ClusterError(
            "no Ray cluster runs on this machine, and RAY_ADDRESS is not set",
            hint="start one with: ray start --head, or set RAY_ADDRESS",
        )
    return ClusterError(
        f"the Ray cluster at {address} cannot be reached: {_first_line(error)}",
        hint="check RAY_ADDRESS, and that the cluster runs",
    )


def _first_line(error: Exception) -> str:
    text = (error.strerror or "").lower() if isinstance(error, OSError) else ""
    lines = [line.strip() for line in (text or str(error)).splitlines() if line.strip()]
    return lines[0].rstrip(".:;") if lines else type(error).__name__
