"""Confined jobs against unconfined ones, and against bubblewrap.

Measured in one run, on one helper: `/bin/true` plain, confined, with a private folder and with
limits. A second helper cannot create namespaces, so its jobs are confined by Landlock and seccomp
alone. Then a call of `rye/bash/bash`, and of a copy of it that declares no permissions, by one
executor.
"""

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from proc_client import ProcClient, find_binary
from rye.executor.run.execute import PrimitiveExecutor
from rye.items.strict_yaml import load_mapping
from rye_project import Project

from bench.programs import TRUE
from bench.table import Report, Row, Samples, alternating_medians

ROUNDS = 600
WITHOUT_NAMESPACES = """#!/bin/sh
exec unshare --user --map-root-user sh -c '
for kind in user mnt net; do echo 0 > /proc/sys/user/max_${kind}_namespaces; done
exec "$0" "$@"' BINARY "$@"
"""


def confinement(project: str, **more: Any) -> dict[str, Any]:
    """Return what an ordinary tool needs: programs, settings, devices and its project."""
    exists = [path for path in ("/usr", "/bin", "/lib", "/lib64") if Path(path).exists()]
    return {
        "execute": sorted({os.path.realpath(path) for path in exists}),
        "read": ["/etc", "/dev/zero", "/dev/urandom", "/proc"],
        "write": ["/dev/null", project],
        "require": [],
        **more,
    }


def call(client: ProcClient, *command: str, **fields: Any) -> Callable[[], None]:
    """Return a call whose request is encoded once, like the caller's other work."""
    request = {"id": 1, "op": "exec", "command": command[0], "args": command[1:], **fields}
    header = json.dumps(request).encode()

    def make() -> None:
        client.send_frame(header)
        answer = client.receive()
        assert answer.header["success"], (answer.header, answer.stderr)

    return make


def measure() -> Report:
    with ExitStack() as stack:
        project = os.path.realpath(stack.enter_context(tempfile.TemporaryDirectory()))
        base = confinement(project)
        full = stack.enter_context(ProcClient(timeout=None))
        report = full.exec(TRUE, confinement=base).header["confinement"]
        enforced = ", ".join(f"{part} by {by}" for part, by in report["enforced"].items())
        # In pairs: a call that follows one of another kind finds colder caches.
        plain = call(full, TRUE)
        usual, confined = alternating_medians(ROUNDS, plain, call(full, TRUE, confinement=base))
        detail = f"{confined:.0f} / {usual:.0f} µs"
        rows = [Row("confined ÷ plain", confined / usual, 1.20, detail=detail)]
        samples = {"not confined": usual, "confined by Lilux": confined}
        missing, peers = {}, {}
        if alone := landlock_and_seccomp(stack, project):
            before, after = alone
            rows.append(Row("by Landlock and seccomp alone ÷ plain", after / before, 1.15))
        else:
            missing["Landlock and seccomp alone"] = "this machine has no user namespaces"
        variants: list[tuple[str, dict[str, Any]]] = [
            ("with private folders", {"tmp": ["TMPDIR", "HOME"]}),
            ("with limits", {"limits": {"memory": 1 << 29, "cpu": 60, "processes": 64}}),
        ]
        for what, more in variants:
            special = call(full, TRUE, confinement=confinement(project, **more))
            before, after = alternating_medians(ROUNDS, plain, special)
            rows.append(Row(f"{what} ÷ plain", after / before, 1.25))
            samples[f"confined, {what}"] = after
        if shutil.which("bwrap"):
            wrapped = call(full, "bwrap", "--unshare-all", "--ro-bind", "/", "/", TRUE)
            before, after = alternating_medians(ROUNDS // 4, plain, wrapped)
            detail = f"{after:.0f} / {confined:.0f} µs; bubblewrap adds {after - before:.0f}"
            rows.append(Row("by bubblewrap ÷ confined", after / confined, 5, True, detail=detail))
            samples["confined by bubblewrap"] = after
            shown = subprocess.run(
                ["bwrap", "--version"], capture_output=True, text=True, check=True
            )
            peers["bubblewrap"] = shown.stdout.split()[-1]
        else:
            missing["confined by bubblewrap"] = "not installed"
        rows += bash_tool(Path(project))
    in_ms = {name: value / 1000 for name, value in samples.items()}
    samples_in_ms = {"/bin/true": Samples("ms", in_ms)}
    return Report(rows, samples_in_ms, missing, [f"enforced: {enforced}"], peers)


def landlock_and_seccomp(stack: ExitStack, project: str) -> list[float] | None:
    """Return the durations of a plain and a confined job of a helper without namespaces."""
    script = Path(project) / "without-namespaces"
    script.write_text(WITHOUT_NAMESPACES.replace("BINARY", find_binary()))
    script.chmod(0o755)
    helper = stack.enter_context(ProcClient(timeout=None, binary=str(script)))
    confined = call(helper, TRUE, confinement=confinement(project))
    try:
        confined()
    except (AssertionError, OSError, EOFError):
        return None
    return alternating_medians(ROUNDS, call(helper, TRUE), confined)


def bash_tool(folder: Path) -> list[Row]:
    """Compare a call of the shell that ships with Rye with an unconfined copy of it."""
    project = Project(folder / "shell", shipped_system=True)
    shipped = project.system / ".ai/tools/rye/bash/bash.yaml"
    fields, _ = load_mapping(shipped.read_text(), shipped, hint="")
    del fields["permissions"]
    project.yaml("free", **fields)
    with asyncio.Runner() as runner:
        executor = PrimitiveExecutor(context=project.context)

        def call_of(tool: str) -> Callable[[], None]:
            def make() -> None:
                result = runner.run(executor.execute(tool, {"command": "echo hi"}))
                assert result.success, result.error
                assert ("confinement" in result.metadata) == (tool != "free"), result.metadata

            return make

        free, confined = alternating_medians(ROUNDS, call_of("free"), call_of("rye/bash/bash"))
        runner.run(executor.aclose())
    detail = f"{confined:.0f} / {free:.0f} µs"
    return [Row("rye/bash/bash confined ÷ unconfined", confined / free, 1.10, detail=detail)]
