"""For each runtime, the interpreter that a tool on it would be started with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rye.cli.doctor.finding import Finding, ok, problem, warning
from rye.cli.doctor.programs import how_to_get, is_too_old, minimum_of, version_of
from rye.context import Context
from rye.errors import InterpreterMissingError, RyeError
from rye.executor.chain.build import build_chain
from rye.executor.chain.snapshot import Library, Snapshot
from rye.executor.config.environment import resolve_chain_env
from rye.executor.run.primitives import PRIMITIVE_MAP
from rye.items.element import ChainElement
from rye.spaces.model import Resolution


def runtime_findings(context: Context) -> Iterator[Finding]:
    """One line for each runtime that an id leads to, in the order of the ids."""
    library = Library(context)
    snapshot = library.snapshot()
    items = list(library.resolver.iter_items())
    used = _used(items, snapshot)
    versions: dict[Path, str | None] = {}
    for found in items:
        try:
            is_runtime = snapshot.metadata(found).tool_type == "runtime"
        except RyeError:
            continue
        if is_runtime:
            yield _finding(found, snapshot, context, versions, used=found.item_id in used)


def _used(items: Sequence[Resolution], snapshot: Snapshot) -> set[str]:
    """The ids that a tool names as its executor."""
    used = set()
    for found in items:
        try:
            metadata = snapshot.metadata(found)
            if metadata.executor_id and metadata.tool_type not in ("runtime", "library"):
                used.add(snapshot.resolve(metadata.executor_id, found.space).item_id)
        except RyeError:
            continue
    return used


def _finding(
    found: Resolution,
    snapshot: Snapshot,
    context: Context,
    versions: dict[Path, str | None],
    *,
    used: bool,
) -> Finding:
    subject = f"runtime {found.item_id}"
    bad = problem if used else warning
    try:
        chain = build_chain(found.item_id, snapshot, PRIMITIVE_MAP)
    except RyeError as error:
        return problem(subject, str(error))
    rule = _interpreter(chain)
    name = _program_name(rule)
    try:
        env = resolve_chain_env(chain, context).env
    except InterpreterMissingError:
        by_whom = "tools here need it" if used else "no tool here needs it"
        return bad(subject, f"{name or 'its interpreter'} is missing; {by_whom}",
                   how_to_get(name, context.environ))  # fmt: skip
    except RyeError as error:
        return problem(subject, str(error))
    if rule is None:
        return ok(subject, "needs no interpreter")
    return _judged(subject, env[rule["var"]], name, context, versions, used=used)


def _judged(
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
        return problem(subject, f"{name} is missing", how_to_get(name, context.environ))
    if path not in versions:
        versions[path] = version_of(path, context.project_path)
    version, minimum = versions[path], minimum_of(name)
    if version is None and path.is_relative_to(context.project_path):
        return ok(subject, f"{path} (of the project; not asked for its version)")
    if version is None:
        return warning(subject, f"{path} does not tell its version", "see whether it runs")
    if minimum and is_too_old(version, minimum):
        oldest = ".".join(map(str, minimum))
        return (problem if used else warning)(
            subject,
            f"{path} is {name} {version}; {oldest} or newer is needed",
            how_to_get(name, context.environ),
        )
    return ok(subject, f"{path} ({version})")


def _interpreter(chain: Sequence[ChainElement]) -> Mapping[str, Any] | None:
    rules = [(element.metadata.env_config or {}).get("interpreter") for element in chain]
    return next((rule for rule in rules if isinstance(rule, Mapping)), None)


def _program_name(rule: Mapping[str, Any] | None) -> str:
    """What a person would install."""
    if rule is None:
        return ""
    by_type = {"venv_python": "python3", "node_modules": "node"}.get(str(rule.get("type")))
    name = rule.get("binary") or rule.get("fallback") or by_type or ""
    return str(name).rpartition("/")[2]
