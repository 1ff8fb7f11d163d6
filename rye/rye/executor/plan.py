"""The plan that a dry run gives: what would run, without a value of the environment.

The plan's own config is rendered with an environment in which every variable but the interpreters
has its own name as its value: a token that an author put on a command line shows as ``${TOKEN}``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rye.executor.chain import describe_chain
from rye.executor.environment import ChainEnvironment
from rye.executor.execution_config import ExecutionConfig
from rye.executor.lockfile_resolver import StoredLock
from rye.executor.output import Outcome
from rye.executor.primitives import HTTP_CLIENT, SUBPROCESS
from rye.items.element import ChainElement


def masked_environment(env: ChainEnvironment, chain: Iterable[ChainElement]) -> ChainEnvironment:
    """``env`` with ``${NAME}`` for each value; interpreters and what is empty stay as they are."""
    shown = {_interpreter_variable(element) for element in chain}
    masked = {
        name: value if name in shown or not value else f"${{{name}}}"
        for name, value in env.env.items()
    }
    return replace(env, env=masked)


def planned(
    chain: Sequence[ChainElement],
    config: ExecutionConfig,
    lock: StoredLock | None,
    dependencies: Mapping[str, str],
    *,
    use_lockfile: bool,
) -> Outcome:
    """The outcome of a dry run; ``config`` must have been made with the masked environment."""
    settings = config.config
    plan: dict[str, Any] = {
        "item_id": chain[0].item_id,
        "primitive": config.primitive_id,
        "chain": list(describe_chain(chain)),
        "environment": sorted(settings.get("env") or ()),
        "signatures": [
            {"item_id": element.item_id, "signer": element.signer, "standing": "trusted"}
            for element in chain
            if element.path is not None
        ],
        "lock": {
            "state": "verified" if lock else "absent" if use_lockfile else "not used",
            "path": str(lock.path) if lock else None,
        },
        "dependencies": dict(dependencies),
        "timeout": settings.get("timeout"),
    }
    if config.primitive_id == SUBPROCESS:
        plan["argv"] = [str(settings.get("command", "")), *map(str, settings.get("args") or ())]
        plan["cwd"] = None if settings.get("cwd") is None else str(settings["cwd"])
        plan["stdin_bytes"] = len(str(settings.get("input_data") or "").encode())
    elif config.primitive_id == HTTP_CLIENT:
        plan["request"] = _request(settings, config.params)
    else:
        plan["config_keys"] = sorted(settings)
    return Outcome(success=True, data=plan, metadata={"plan": plan})


def _request(config: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    auth = config.get("auth")
    return {
        "method": config.get("method", "GET"),
        "url": config.get("url"),
        "header_names": sorted(config.get("headers") or ()),
        "auth": auth.get("type") if isinstance(auth, Mapping) else None,
        "body": config.get("body"),
        "mode": config.get("mode", "sync"),
        "parameter_names": sorted(params),
    }


def _interpreter_variable(element: ChainElement) -> str:
    interpreter = (element.metadata.env_config or {}).get("interpreter")
    return str(interpreter.get("var", "")) if isinstance(interpreter, Mapping) else ""
