"""The plan of a dry run, for people."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from rye.cli.printing import plain


def plan_lines(plan: Mapping[str, Any]) -> Iterator[str]:
    """What would run, where, with what, and what vouches for it."""
    yield f"would run {plain(plan['item_id'])}:"
    yield from _what(plan)
    if plan.get("timeout") is not None:
        yield _row("timeout", f"{plan['timeout']:g} s")
    yield _row("environment", " ".join(plan["environment"]) or "none")
    lock = plan["lock"]
    yield _row("lock", f"{lock['state']}, {lock['path']}" if lock["path"] else lock["state"])
    if plan["dependencies"]:
        yield _row("dependencies", f"{len(plan['dependencies'])} files, verified")
    signers = {one["item_id"]: one for one in plan["signatures"]}
    for at, element in enumerate(plan["chain"]):
        signed = signers.get(element["item_id"])
        by = f"signed by {signed['signer']}, {signed['standing']}" if signed else "built in"
        text = f"{element['item_id']} {element['version']} ({element['space']}), {by}"
        yield _row("chain" if at == 0 else "", text)


def _what(plan: Mapping[str, Any]) -> Iterator[str]:
    if "argv" in plan:
        yield _row("command", shlex.join(map(str, plan["argv"])))
        yield _row("folder", str(plan["cwd"]))
        yield _row("stdin", f"{plan['stdin_bytes']} bytes")
    elif "request" in plan:
        for name, value in plan["request"].items():
            yield _row(name, value if isinstance(value, str) else _listed(value))
    else:
        yield _row("primitive", plan["primitive"])
        yield _row("config", " ".join(plan["config_keys"]))


def _listed(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {one}" for name, one in value.items()) or "none"
    if isinstance(value, list | tuple):
        return " ".join(map(str, value)) or "none"
    return str(value)


def _row(name: str, text: str) -> str:
    return f"  {name:<13}{plain(text)}"
