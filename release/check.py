"""Installing the wheels as a user would, without a compiler, and using what was installed."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from release.steps import StepError, run

# What README.md tells a user to type in the folder that contains dist/.
INSTALLERS = {
    "uv": "uv tool install dist/rye-*.whl --with dist/lilux-*.whl --with dist/lilux_proc-*.whl",
    "pipx": 'pipx install dist/rye-*.whl --preinstall "$PWD"/dist/lilux_proc-*.whl '
    '--preinstall "$PWD"/dist/lilux-*.whl',
    "pip": "python3 -m pip install dist/*.whl",
}


def check(installer: str, wheels: Sequence[Path], folder: Path) -> Iterator[str]:
    """Install the wheels below ``folder``, use them, and yield what works.

    Raises :class:`StepError` for the first thing that does not work.
    """
    (folder / "dist").mkdir()
    for wheel in wheels:
        shutil.copy(wheel, folder / "dist")
    environ = clean_environment(folder)
    scripts = _install(installer, folder, environ)
    yield "installed without cargo"
    environ = {**environ, "PATH": f"{scripts}{os.pathsep}{environ['PATH']}"}
    version = _expect(["rye", "--version"], "rye ", folder, environ).strip()
    _expect(["ryex", "--version"], version, folder, environ)
    yield f"rye and ryex print {version!r}"
    _expect(["rye", "run", "rye/bash/bash", "command=echo hello"], "hello\n", folder, environ)
    yield "a tool of Rye runs"
    run(["rye", "init", "demo"], cwd=folder, environ=environ)
    call = ["rye", "-C", "demo", "run", "hello", "--name", "you"]
    _expect(call, '{"greeting": "Hello, you!"}\n', folder, environ)
    yield "a new tool runs"
    run(["rye", "verify", "--all"], cwd=folder, environ=environ)
    yield "every signature is valid"
    (helper,) = json.loads(
        run(["rye", "config", "lilux-proc", "--json"], cwd=folder, environ=environ)
    )
    if not Path(helper["value"]).resolve().is_relative_to(folder.resolve()):
        raise StepError(f"{helper['value']} is used instead of the helper that was installed")
    yield "the helper is the one of the wheel"


def clean_environment(folder: Path) -> dict[str, str]:
    """Return an environment with a home of its own, in which a compiler fails."""
    home = folder / "home"
    home.mkdir()
    tools = folder / "tools"
    tools.mkdir()
    for name in ("uv", "pipx"):
        if (found := shutil.which(name)) is not None:
            (tools / name).symlink_to(found)
    (tools / "python3").symlink_to(sys.executable)
    for name in ("cargo", "rustc"):
        (tools / name).write_text(f"#!/bin/sh\necho {name} must not be needed >&2\nexit 127\n")
        (tools / name).chmod(0o755)
    kept = ("LANG", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
    given = {name: value for name, value in os.environ.items() if name in kept}
    # Where packages are downloaded from is a setting of this machine.
    given |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_"))}
    return {
        **{name: value for name, value in given.items() if not name.startswith("UV_PROJECT")},
        "HOME": str(home),
        "PATH": f"{tools}{os.pathsep}{os.defpath}",
        "UV_NO_BUILD": "1",
        "PIP_ONLY_BINARY": ":all:",
        "UV_TOOL_DIR": str(folder / "uv-tools"),
        "UV_TOOL_BIN_DIR": str(folder / "uv-bin"),
        "PIPX_HOME": str(folder / "pipx"),
        "PIPX_BIN_DIR": str(folder / "pipx-bin"),
    }


def _install(installer: str, folder: Path, environ: Mapping[str, str]) -> Path:
    """Run the command of the README, and return the folder of the installed programs."""
    command = INSTALLERS[installer]
    if installer == "pip":
        run([sys.executable, "-m", "venv", folder / "venv"], cwd=folder, environ=environ)
        command = command.replace("python3", f"{folder}/venv/bin/python3")
    elif installer == "pipx" and shutil.which("pipx", path=environ["PATH"]) is None:
        command = f"uv tool run {command}"
    run(["sh", "-c", command], cwd=folder, environ=environ)
    places = {"uv": "uv-bin", "pipx": "pipx-bin", "pip": "venv/bin"}
    return folder / places[installer]


def _expect(command: Sequence[str], printed: str, folder: Path, environ: Mapping[str, str]) -> str:
    found = run(command, cwd=folder, environ=environ)
    if not found.startswith(printed):
        raise StepError(f"{' '.join(command)} printed {found!r} instead of {printed!r}")
    return found
