"""A Ray cluster of several nodes on this machine, in processes that end with this one.

::

    with RayNodes(2) as nodes:
        rye("batch", …, "--on", "ray", env=nodes.environ)
        nodes.kill(1)

The nodes are children of one more process, which ends them when its stdin is closed: whatever
happens to the program that started it, no node outlives it. The head has no processors, so that
every other node can be killed while the cluster goes on. Their operator has an empty user space.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
from confined_machine import accept_missing_parts
from processes import is_alive

MISSING = "ray is not installed: uv sync --group ray"
INSTALLED = importlib.util.find_spec("ray") is not None
# Below `uv run`, the agent of a node would start jobs with `uv run` in a copy of the working
# directory, which has no environment: workers would crash, and the job would wait for them.
_SETTINGS = {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", "RAY_USAGE_STATS_ENABLED": "0"}


class RayNodes:
    """A running cluster."""

    def __init__(
        self,
        count: int,
        *,
        env: Mapping[str, str] | None = None,
        cpus: int = 1,
        dashboard: bool = False,
    ) -> None:
        """``env`` is added to the environment of the nodes. Jobs are submitted to a dashboard."""
        self._cpus = cpus
        self._home = tempfile.TemporaryDirectory(prefix="rye-operator-")
        accept_missing_parts(Path(self._home.name))
        base = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        base.update(HOME=self._home.name, USER_SPACE=self._home.name)
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            # Ray handles SIGTERM by waiting for work that may never end; stdin ends this process.
            start_new_session=True,
            env={**base, **_SETTINGS, **(env or {})},
        )
        # Clusters that share a folder find each other; names of sockets in it have to be short.
        self._files = tempfile.TemporaryDirectory(
            prefix="ray-", dir="/tmp", ignore_cleanup_errors=True
        )
        head = self._ask("head", dashboard=dashboard, folder=self._files.name)
        self.dashboard = f"http://{head['dashboard']}"
        self.address = str(head["address"])
        self.session = Path(head["session"])
        """Where Ray has its logs and its sockets."""
        self.raylets: list[psutil.Process] = []
        for _ in range(count):
            self.add()

    @property
    def environ(self) -> dict[str, str]:
        """What a driver needs to find the cluster."""
        return {"RAY_ADDRESS": self.address}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        family = psutil.Process(self._process.pid).children(recursive=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()
            for one in family:
                if one.is_running():
                    one.kill()
            self._home.cleanup()
            self._files.cleanup()

    def add(self, env: Mapping[str, str] | None = None) -> int:
        """Start another node, and return its index. ``env`` is added to its environment."""
        answer = self._ask("add", cpus=self._cpus, env=dict(env or {}))
        self.raylets.append(psutil.Process(answer["raylet"]))
        return len(self.raylets) - 1

    def kill(self, index: int) -> None:
        """End the processes of a node with SIGKILL, as a machine that loses its power."""
        self._ask("kill", index=index)

    def alive(self) -> list[int]:
        """The indexes of the nodes that were not killed."""
        return [index for index, one in enumerate(self.raylets) if is_alive(one)]

    def workers(self, index: int) -> list[psutil.Process]:
        """The actors of Rye on a node."""
        found = []
        for one in self.raylets[index].children(recursive=True):
            # Tools end while they are looked at.
            with suppress(psutil.NoSuchProcess):
                if "RayWorker" in " ".join(one.cmdline()[:1]):
                    found.append(one)
        return found

    def _ask(self, what: str, **fields: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": what, **fields}) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("{"):
                return dict(json.loads(line))
        raise AssertionError("the process with the cluster ended")


def _serve() -> None:
    """The process with the nodes: one line for each request, until stdin ends."""
    from ray.cluster_utils import Cluster

    cluster: Any = None
    nodes: list[Any] = []
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {}
        if request["do"] == "head":
            shown = {"dashboard_port": 0, "dashboard_agent_listen_port": 0}
            cluster = Cluster(
                initialize_head=True,
                head_node_args={
                    "num_cpus": 0,
                    "temp_dir": request["folder"],
                    "include_dashboard": request["dashboard"],
                    **(shown if request["dashboard"] else {}),
                },
            )
            answer["dashboard"] = cluster.head_node.address_info["webui_url"]
            answer["address"] = cluster.address
            answer["session"] = cluster.head_node.get_session_dir_path()
        elif request["do"] == "add":
            node = cluster.add_node(num_cpus=request["cpus"], env_vars=request["env"], wait=True)
            nodes.append(node)
            answer["raylet"] = node.all_processes["raylet"][0].process.pid
        else:
            cluster.remove_node(nodes[request["index"]], allow_graceful=False)
        print(json.dumps(answer), flush=True)  # noqa: T201 - the answer
    if cluster is not None:
        cluster.shutdown()


if __name__ == "__main__":
    sys.path = [one for one in sys.path if Path(one).resolve() != Path(__file__).parent]
    _serve()
