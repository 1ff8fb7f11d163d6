"""`rye batch --on ray`, on a cluster of two nodes on this machine."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from console_pages import fresh_environment, play
from processes import is_alive, wait_until
from ray_nodes import INSTALLED, MISSING, RayNodes
from rye.batches.backends.ray_cluster import is_here, require_authentication
from rye.errors import ClusterError
from rye_command import COMMAND, Completed, environment, rye
from rye_project import Project

pytestmark = [
    pytest.mark.skipif(not INSTALLED, reason=MISSING),
    # One worker of the test runner starts the cluster, once.
    pytest.mark.xdist_group("ray"),
]

PAGE = Path(__file__).parents[2] / "docs" / "batch-ray.md"
# Writes its pid to a file of its own, so that a second run would be seen.
ONCE = 'echo "$$" >> "$1/$2"; [ "$2" -ge "$3" ] || sleep 600; echo "did $2"'


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayNodes]:
    with RayNodes(2, env={"OF_THE_RAYLET": "leaked"}, dashboard=True) as nodes:
        yield nodes


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, shipped_system=True)
    (tmp_path / "ran").mkdir()
    project.command("tools/once", "/bin/sh", "-c", ONCE, "sh", "{ran}", "{n}", "{slow}")
    return project


def write_calls(project: Project, count: int, slow: int = 0) -> None:
    ran = str(project.path.parent / "ran")
    lines = [json.dumps({"ran": ran, "n": n, "slow": slow}) for n in range(count)]
    (project.path / "calls.jsonl").write_text("".join(f"{line}\n" for line in lines))


def command(project: Project, nodes: RayNodes, *args: str, **env: str) -> Completed:
    environ = {**nodes.environ, **env}
    return rye("batch", *args, cwd=project.path, user=project.user, env=environ)


def results(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def ran(project: Project) -> dict[str, list[int]]:
    """The pids of each call that ran."""
    found = {
        one.name: [int(line) for line in one.read_text().split()]
        for one in (project.path.parent / "ran").iterdir()
    }
    return {name: pids for name, pids in found.items() if pids}


def test_every_call_runs_once_and_is_in_the_history_of_the_driver(
    project: Project, nodes: RayNodes, tmp_path: Path
) -> None:
    write_calls(project, 50)
    done = command(
        project, nodes, "tools/once", "calls.jsonl", "--on", "ray", "--dir", str(tmp_path / "b"),
        "--receipts", "signed",
    )  # fmt: skip
    assert done.code == 0, done.stderr
    lines = results(tmp_path / "b")
    assert sorted(one["line"] for one in lines) == list(range(1, 51))
    assert all(f"did {one['line'] - 1}" in json.dumps(one["data"]) for one in lines)
    assert {name: len(pids) for name, pids in ran(project).items()} == {
        str(n): 1 for n in range(50)
    }
    shown = rye("history", "--json", "--limit", "100", cwd=project.path, user=project.user)
    assert shown.stdout.count('"tools/once"') == 50, shown.stderr
    assert rye("receipt", "log", "--out", "log", cwd=project.path, user=project.user).code == 0
    assert len((project.path / "log").read_text().splitlines()) == 50


def test_a_tool_gets_only_variables_that_it_declares_and_the_user_names(
    project: Project, nodes: RayNodes, tmp_path: Path
) -> None:
    project.command(
        "tools/env", "/bin/sh", "-c", "export -p", permissions={"env": ["ASKED", "OF_THE_RAYLET"]}
    )
    (project.path / "calls.jsonl").write_text("{}\n")
    arguments = ("tools/env", "calls.jsonl", "--on", "ray", "--dir")
    done = command(
        project, nodes, *arguments, str(tmp_path / "a"), "--env", "ASKED", ASKED="x", OTHER="y"
    )
    assert done.code == 0, done.stdout
    printed = results(tmp_path / "a")[0]["data"]["stdout"]
    names = {line.removeprefix("export ").partition("=")[0] for line in printed.splitlines()}
    assert names <= {"ASKED", "HOME", "LANG", "OLDPWD", "PATH", "PWD", "RYE_CHANNEL", "TMPDIR"}
    assert "export ASKED='x'\n" in printed
    refused = command(project, nodes, *arguments, str(tmp_path / "b"), "--env", "OTHER", OTHER="y")
    assert refused.code == 1
    assert refused.stderr == (
        "rye: 'tools/env' does not ask for the variable 'OTHER'; "
        "declare it in the tool's permissions.env, or leave out --env\n"
    )


@contextmanager
def started(project: Project, nodes: RayNodes, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [*COMMAND, "batch", "tools/once", "calls.jsonl", "--on", "ray", "--jobs", "4",
         "--dir", folder],
        cwd=project.path,
        env=environment(project.user, nodes.environ),
        stdout=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            wait_until(lambda: len(ran(project)) == 4, "four calls sleep", seconds=60)
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("victim", ["actor", "node", "helper"])
def test_a_lost_worker_leaves_its_slots_unknown_and_the_rest_goes_on(
    project: Project, nodes: RayNodes, tmp_path: Path, victim: str
) -> None:
    # Two calls on each node sleep; those of the other node are ended by the test.
    write_calls(project, 40, slow=4)
    with started(project, nodes, tmp_path / "b") as process:
        index = len(nodes.raylets) - 1
        below = {one.pid for one in nodes.raylets[index].children(recursive=True)}
        pids = {name: psutil.Process(found[0]) for name, found in ran(project).items()}
        lost = {name for name, one in pids.items() if one.pid in below}
        assert len(lost) == 2
        (worker,) = nodes.workers(index)
        if victim == "node":
            nodes.kill(index)
        elif victim == "actor":
            worker.kill()
        else:
            (helper,) = (one for one in worker.children() if one.name() == "lilux-proc")
            helper.kill()
        wait_until(
            lambda: not any(is_alive(pids[name]) for name in lost), "its tools end", seconds=2
        )
        for name in pids.keys() - lost:
            pids[name].kill()
        assert process.wait(60) == 1
    if victim == "node":
        nodes.add()
    lines = results(tmp_path / "b")
    assert sorted(one["line"] for one in lines) == list(range(1, 41))
    assert Counter(one["outcome"] for one in lines) == {"ok": 36, "failed": 2, "unknown": 2}
    unknown = [one for one in lines if one["outcome"] == "unknown"]
    assert {str(one["line"] - 1) for one in unknown} == lost
    assert unknown[0]["error"] == "the worker died; the call may or may not have run"
    assert all(len(found) == 1 for found in ran(project).values())


def test_no_tool_outlives_a_killed_driver_and_the_batch_resumes_on_the_cluster(
    project: Project, nodes: RayNodes, tmp_path: Path
) -> None:
    write_calls(project, 20, slow=4)
    with started(project, nodes, tmp_path / "b") as process:
        tools = [psutil.Process(found[0]) for found in ran(project).values()]
        process.kill()
        wait_until(lambda: not any(map(is_alive, tools)), "the tools end", seconds=2)
    resumed = command(project, nodes, "resume", str(tmp_path / "b"), "--on", "ray")
    assert resumed.code == 1, resumed.stderr
    counted = Counter(one["outcome"] for one in results(tmp_path / "b"))
    assert counted == {"ok": 16, "unknown": 4}
    assert all(len(found) == 1 for found in ran(project).values())


def test_a_node_may_require_keys_that_its_operator_trusts(
    project: Project, nodes: RayNodes, tmp_path: Path
) -> None:
    operator = tmp_path / "operator"
    (operator / ".ai").mkdir(parents=True, mode=0o700)
    (operator / ".ai" / "config.yaml").write_text("worker: {keys: pinned}\n")
    index = nodes.add({"USER_SPACE": str(operator)})
    write_calls(project, 10)
    arguments = ("tools/once", "calls.jsonl", "--on", "ray", "--dir")
    try:
        refused = command(project, nodes, *arguments, str(tmp_path / "a"))
        assert refused.code == 4
        assert "which requires pinned keys; its operator trusts a key there with: " in (
            refused.stderr
        )
        assert ran(project) == {}
        key = project.user / ".ai" / "keys" / "public_key.pem"
        added = rye("trust", "add", key, "--owner", "Ada", cwd=project.path, user=operator)
        assert added.code == 0, added.stderr
        done = command(project, nodes, *arguments, str(tmp_path / "b"))
        assert done.code == 0, done.stderr
    finally:
        nodes.kill(index)


def test_a_cluster_elsewhere_that_answers_anybody_is_refused(nodes: RayNodes) -> None:
    require_authentication(nodes.address, ["127.0.0.1"])
    with pytest.raises(ClusterError) as caught:
        require_authentication(nodes.address, ["127.0.0.1", "192.0.2.1"])
    assert str(caught.value) == (
        f"the cluster at {nodes.address} has no authentication: anyone who reaches it can run "
        "programs on its nodes, and read what you send; "
        "start it with RAY_AUTH_MODE=token, or accept that with --insecure"
    )


def test_only_an_address_of_this_machine_is_here() -> None:
    assert is_here("127.0.0.1")
    assert not is_here("192.0.2.1")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (
            "ray://192.0.2.1:1",
            (
                "RAY_ADDRESS=ray://192.0.2.1:1 is the address of a Ray Client, which rye does not "
                "use; run it on the cluster: ray job submit -- rye batch … --on ray"
            ),
        ),
        (
            "127.0.0.1:1",
            (
                "the Ray cluster at 127.0.0.1:1 cannot be reached: connection refused; "
                "check RAY_ADDRESS, and that the cluster runs"
            ),
        ),
        ("head", "RAY_ADDRESS=head is not an address of a cluster; set it to HOST:PORT"),
    ],
)
def test_without_a_cluster_it_says_what_to_do(project: Project, address: str, message: str) -> None:
    write_calls(project, 1)
    done = rye(
        "batch", "tools/once", "calls.jsonl", "--on", "ray",
        cwd=project.path, user=project.user, env={"RAY_ADDRESS": address},
    )  # fmt: skip
    assert (done.code, done.stderr) == (1, f"rye: {message}\n")


def test_a_secret_is_neither_in_the_logs_of_ray_nor_left_on_a_node(
    project: Project, nodes: RayNodes, tmp_path: Path
) -> None:
    project.command(
        "tools/secret", "/bin/sh", "-c", 'printf "%s" "$1$TOKEN" | wc -c; pwd', "sh", "{pin}",
        permissions={"env": ["TOKEN"], "run": ["/usr/bin/wc"]},
    )  # fmt: skip
    secrets = {"pin": "pin-4711-secret", "TOKEN": "token-0815-secret", "OTHER": "other-1234-secret"}
    (project.path / "calls.jsonl").write_text(json.dumps({"pin": secrets["pin"]}) + "\n")
    (project.path / ".env").write_text("OTHER=other-1234-secret\n")
    done = command(
        project, nodes, "tools/secret", "calls.jsonl", "--on", "ray", "--dir", str(tmp_path / "b"),
        "--env", "TOKEN", TOKEN=secrets["TOKEN"], OTHER=secrets["OTHER"],
    )  # fmt: skip
    assert done.code == 0, done.stdout
    length, folder = results(tmp_path / "b")[0]["data"]["stdout"].split()
    assert int(length) == len(secrets["pin"] + secrets["TOKEN"])
    wait_until(lambda: not Path(folder).exists(), "the folder of the worker is removed")
    for path in nodes.session.rglob("*"):
        if path.is_file():
            text = path.read_bytes()
            assert not any(value.encode() in text for value in secrets.values()), path


def test_a_module_in_the_project_is_not_imported_by_workers(
    project: Project, nodes: RayNodes, tmp_path: Path
) -> None:
    for name in ("httpx2", "lilux", "psutil", "rye", "sitecustomize", "yaml"):
        marker = f"open({str(tmp_path / 'imported')!r}, 'a').write({name!r})"
        (project.path / f"{name}.py").write_text(f"{marker}\nraise ImportError({name!r})\n")
    write_calls(project, 2)
    done = subprocess.run(
        [Path(sys.executable).with_name("rye"), "batch", "tools/once", "calls.jsonl",
         "--on", "ray", "--dir", tmp_path / "b"],
        cwd=project.path,
        env=environment(project.user, nodes.environ),
        capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "imported").exists()


def test_the_working_directory_is_not_sent_below_uv_run(
    project: Project, nodes: RayNodes, tmp_path: Path
) -> None:
    write_calls(project, 2)
    (project.path / ".env").write_text("TOKEN=secret\n")
    # A shell that looks like `uv run` runs the script `run`.
    uv = tmp_path / "uv"
    uv.symlink_to("/bin/sh")
    line = [*COMMAND, "batch", "tools/once", "calls.jsonl", "--on", "ray", "--dir", tmp_path / "b"]
    (project.path / "run").write_text(f"{shlex.join(map(str, line))}\nexit $?\n")
    done = subprocess.run(
        [uv, "run"],
        cwd=project.path,
        env=environment(project.user, nodes.environ),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    logs = [path for path in nodes.session.rglob("*") if path.is_file()]
    assert not any(b"_ray_pkg_" in path.read_bytes() for path in logs)


def test_python_gets_the_results_of_the_cluster(project: Project, nodes: RayNodes) -> None:
    script = (
        "import asyncio, rye\n"
        "async def main():\n"
        "    calls = ({'ran': '../ran', 'n': n, 'slow': 0} for n in range(8))\n"
        "    async for one in rye.batch('tools/once', calls, backend='ray', jobs=4):\n"
        "        print(one.line, one.outcome, one.error)\n"
        "asyncio.run(main())\n"
    ).replace("../ran", str(project.path.parent / "ran"))
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=project.path,
        env=environment(project.user, nodes.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert sorted(done.stdout.splitlines()) == [f"{n} ok None" for n in range(1, 9)], done.stderr
    assert len(ran(project)) == 8


def test_a_tool_that_has_changed_runs_as_it_was(
    project: Project, nodes: RayNodes, tmp_path: Path
) -> None:
    write_calls(project, 20, slow=4)
    with started(project, nodes, tmp_path / "b") as process:
        process.kill()
    project.command("tools/once", "/bin/sh", "-c", "exit 3")
    resumed = command(project, nodes, "resume", str(tmp_path / "b"), "--on", "ray")
    assert "tools/once has changed meanwhile" in resumed.stderr
    counted = Counter(one["outcome"] for one in results(tmp_path / "b"))
    assert counted == {"ok": 16, "unknown": 4}


def test_a_job_of_the_cluster_runs_a_batch(
    project: Project, nodes: RayNodes, tmp_path: Path
) -> None:
    write_calls(project, 4)
    line = [*COMMAND, "batch", "tools/once", "calls.jsonl", "--on", "ray", "--dir", tmp_path / "b"]
    script = f"cd {project.path} && {shlex.join(map(str, line))}"
    done = subprocess.run(
        [Path(sys.executable).with_name("ray"), "job", "submit", "--address", nodes.dashboard, "--",
         "env", f"HOME={project.user}", f"USER_SPACE={project.user}", "sh", "-c", script],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "4 of 4 calls have a result (4 ok)\n" in done.stdout
    assert len(results(tmp_path / "b")) == 4


def test_every_command_of_the_page_about_ray_prints_what_it_shows(
    nodes: RayNodes, tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir()
    environ = fresh_environment(tmp_path / "home", Path(sys.executable).parent)
    assert play(PAGE, tmp_path / "work", {**environ, **nodes.environ}) > 3
