"""The plan of a dry run, for people: what there is nothing to say of is left out."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from rye.cli.output.paths import near
from rye.cli.output.printing import json_text, plain

_LOCKS = {"absent": "none yet"}


def plan_lines(plan: Mapping[str, Any]) -> Iterator[str]:
    """What would run, where, with what, and what vouches for it."""
    yield f"would run {plain(plan['item_id'])}:"
    for name, text in (*_what(plan), *_with_what(plan), *_by_whom(plan)):
        if text:
            yield f"  {name:<13}{plain(text)}"


def _what(plan: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "argv" in plan:
        yield "command", shlex.join(map(str, plan["argv"]))
        yield "folder", str(plan["cwd"])
        yield "stdin", f"{plan['stdin_bytes']} bytes" if plan["stdin_bytes"] else ""
    elif "request" in plan:
        yield from _request(plan["request"])
    else:
        yield "primitive", plan["primitive"]
        yield "config", " ".join(plan["config_keys"])


def _request(request: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    body = request["body"]
    yield "request", f"{request['method']} {request['url']}"
    yield "headers", " ".join(request["header_names"])
    yield "signs in by", request["auth"] or ""
    yield "body", body if isinstance(body, str) else "" if body is None else json_text(body)
    yield "answer", "" if request["mode"] == "sync" else f"as a {request['mode']}"


def _with_what(plan: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "timeout", "" if plan.get("timeout") is None else f"{plan['timeout']:g} s"
    yield "environment", " ".join(plan["environment"])


def _by_whom(plan: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    lock, count = plan["lock"], len(plan["dependencies"])
    state = _LOCKS.get(lock["state"], lock["state"])
    yield "lock", f"{state}, {near(lock['path'])}" if lock["path"] else state
    yield "dependencies", f"{count} {'file' if count == 1 else 'files'}, verified" if count else ""
    signers = {one["item_id"]: one for one in plan["signatures"]}
    for at, element in enumerate(plan["chain"]):
        signed = signers.get(element["item_id"])
        by = f"signed by {signed['signer']}, {signed['standing']}" if signed else "built in"
        text = f"{element['item_id']} {element['version']} ({element['space']}), {by}"
        yield "chain" if at == 0 else "", text
