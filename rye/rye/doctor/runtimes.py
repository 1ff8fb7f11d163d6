"""Check the interpreter of each runtime: is it installed, and is it new enough?"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rye.context import Context
from rye.doctor.checks import Finding, ok, problem, warning
from rye.errors import InterpreterMissingError, RyeError, UnapprovedProjectError
from rye.executor.chain.build import build_chain
from rye.executor.chain.snapshot import Library, Snapshot
from rye.executor.config.environment import resolve_chain_env
from rye.executor.config.merge import interpreter_of
from rye.executor.run.primitives import PRIMITIVE_MAP
from rye.items.element import ChainElement
from rye.spaces.model import Resolution

_SECONDS = 10
_VERSION = r"\d+(?:\.\d+)+"
_PYVENV_VERSION = r"(?m)^version(?:_info)?\s*=\s*(\d+(?:\.\d+)+)"


class Program(NamedTuple):
    """A program that runtimes start."""

    minimum: tuple[int, ...] = ()
    """The oldest version that works."""
    packages: Mapping[str, str] = {}
    """Package manager → package; ``*`` is for all managers that are not named."""
    otherwise: str = ""
    """How to install it without a package manager."""


_PROGRAMS = {
    "bash": Program(minimum=(4, 4), packages={"*": "bash"}),
    "node": Program(minimum=(20,), packages={"brew": "node", "*": "nodejs"}),
    "python3": Program(
        minimum=(3, 9),
        packages={"brew": "python", "pacman": "python", "*": "python3"},
        otherwise="create a virtual environment in the project: python3 -m venv .venv",
    ),
    "uv": Program(
        packages=dict.fromkeys(("brew", "pacman", "apk", "dnf", "zypper"), "uv"),
        otherwise="install it with: pip install uv",
    ),
}

_MANAGERS = (
    ("brew", "brew install"),
    ("apt-get", "sudo apt-get install"),
    ("dnf", "sudo dnf install"),
    ("pacman", "sudo pacman -S"),
    ("apk", "sudo apk add"),
    ("zypper", "sudo zypper install"),
)


def check_runtimes(context: Context) -> Iterator[Finding]:
    """Return one finding for each runtime, in the order of the ids."""
    library = Library(context)
    snapshot = library.snapshot()
    items = list(library.resolver.iter_items())
    used = _used_executors(items, snapshot)
    versions: dict[Path, str | None] = {}
    for found in items:
        try:
            is_runtime = snapshot.metadata(found).tool_type == "runtime"
        except RyeError:
            continue
        if is_runtime:
            yield _check_runtime(found, snapshot, context, versions, used=found.item_id in used)


class Interpreter(NamedTuple):
    """The program that a runtime starts."""

    runtime: str
    variable: str
    """The variable of the environment that chooses it."""
    value: str
    """Its path or name; empty if it was not found."""
    problem: str


def runtime_interpreters(context: Context) -> Iterator[Interpreter]:
    """Return the interpreter of each runtime that has one, each variable once."""
    snapshot = Library(context).snapshot()
    seen: set[str] = set()
    for found in Library(context).resolver.iter_items():
        try:
            if snapshot.metadata(found).tool_type != "runtime":
                continue
            chain = build_chain(found.item_id, snapshot, PRIMITIVE_MAP)
        except RyeError:
            continue
        rule = _interpreter(chain)
        if rule is None or rule["var"] in seen:
            continue
        seen.add(rule["var"])
        value = problem = ""
        try:
            value = resolve_chain_env(chain, context).env[rule["var"]]
        except RyeError as error:
            problem = str(error)
        yield Interpreter(found.item_id, rule["var"], value, problem)


def _used_executors(items: Sequence[Resolution], snapshot: Snapshot) -> set[str]:
    """The ids of the items that tools name as their executor."""
    used = set()
    for found in items:
        try:
            metadata = snapshot.metadata(found)
            if metadata.executor_id and metadata.tool_type not in ("runtime", "library"):
                used.add(snapshot.resolve(metadata.executor_id, found.space).item_id)
        except RyeError:
            continue
    return used


def _check_runtime(
    found: Resolution,
    snapshot: Snapshot,
    context: Context,
    versions: dict[Path, str | None],
    *,
    used: bool,
) -> Finding:
    subject = f"runtime {found.item_id}"
    try:
        chain = build_chain(found.item_id, snapshot, PRIMITIVE_MAP)
    except RyeError as error:
        return problem(subject, str(error))
    rule = _interpreter(chain)
    name = _name_to_install(rule)
    try:
        env = resolve_chain_env(chain, context).env
    except InterpreterMissingError as error:
        name = _name_to_install(_interpreter(chain, error.variable))
        need = "tools need it" if used else "no tool needs it"
        message = f"{name or 'the interpreter'} is missing; {need}"
        hint = how_to_install(name, context.environ)
        return (problem if used else warning)(subject, message, hint)
    except UnapprovedProjectError as error:
        return warning(subject, error.reason)
    except RyeError as error:
        return problem(subject, str(error))
    if rule is None:
        return ok(subject, "needs no interpreter")
    return _check_interpreter(subject, env[rule["var"]], name, context, versions, used=used)


def _check_interpreter(
    subject: str,
    value: str,
    name: str,
    context: Context,
    versions: dict[Path, str | None],
    *,
    used: bool,
) -> Finding:
    from lilux.runtime.env_resolver.interpreters import which

    path = context.project_path / value if "/" in value else which(value, context.environ)
    if path is None:
        return problem(subject, f"{name} is missing", how_to_install(name, context.environ))
    if path not in versions:
        versions[path] = program_version(path, context.project_path)
    version, minimum = versions[path], _PROGRAMS.get(name, Program()).minimum
    if version is None and path.is_relative_to(context.project_path):
        return ok(subject, f"{path} (in the project; not started to get its version)")
    if version is None:
        return warning(subject, f"{path} does not print its version", "check that it runs")
    if minimum and is_too_old(version, minimum):
        oldest = ".".join(map(str, minimum))
        return (problem if used else warning)(
            subject,
            f"{path} is {name} {version}; version {oldest} or newer is required",
            how_to_install(name, context.environ),
        )
    return ok(subject, f"{path} ({version})")


def _interpreter(chain: Sequence[ChainElement], variable: str = "") -> Mapping[str, Any] | None:
    """The rule nearest to the tool, or the one that sets ``variable``."""
    rules = [rule for rule in map(interpreter_of, chain) if rule]
    return next((rule for rule in rules if variable in ("", rule.get("var"))), None)


def _name_to_install(rule: Mapping[str, Any] | None) -> str:
    """The name of the program that an interpreter rule looks for."""
    if rule is None:
        return ""
    by_type = {"venv_python": "python3", "node_modules": "node"}.get(str(rule.get("type")))
    name = rule.get("binary") or rule.get("fallback") or by_type or ""
    return str(name).rpartition("/")[2]


def how_to_install(name: str, environ: Mapping[str, str]) -> str:
    """Return a command for the package manager of this machine, or other advice."""
    from lilux.runtime.env_resolver.interpreters import which

    program = _PROGRAMS.get(name, Program())
    for manager, command in _MANAGERS:
        if which(manager, environ) is not None:
            package = program.packages.get(manager) or program.packages.get("*")
            if package is not None:
                return f"install it with: {command} {package}"
    return program.otherwise or f"install {name} and put it on PATH"


def program_version(path: Path, project: Path) -> str | None:
    """Return the version that the program prints; ``None`` if it prints none.

    A program inside the project is not started: looking at a checkout must not run its code. The
    version of a virtual environment comes from ``pyvenv.cfg``.
    """
    if path.is_relative_to(project):
        return _version_of_venv(path)
    try:
        done = subprocess.run(
            [str(path), "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(_VERSION, done.stdout.decode(errors="replace")[:1000])
    return found[0] if done.returncode == 0 and found else None


def is_too_old(version: str, minimum: tuple[int, ...]) -> bool:
    """True if a version such as ``3.2.57`` is below the minimum."""
    return tuple(int(part) for part in version.split("."))[: len(minimum)] < minimum


def _version_of_venv(path: Path) -> str | None:
    try:
        with (path.parent.parent / "pyvenv.cfg").open(encoding="utf-8", errors="replace") as file:
            found = re.search(_PYVENV_VERSION, file.read(10_000))
    except OSError:
        return None
    return found[1] if found else None
