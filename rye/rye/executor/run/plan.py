"""The plan that a dry run gives: what would run, without a value of the environment.

What it shows is rendered with an environment in which every variable but interpreters and shells
has its own name as its value: a token that an author put on a command line shows as ``${TOKEN}``.
The config that would run was made before, so that a plan fails where the run would.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lilux.record import replaced

from rye.context import Context
from rye.executor.chain.anchor import Anchor
from rye.executor.chain.build import describe_chain
from rye.executor.config.build import ExecutionConfig, build_execution_config
from rye.executor.config.environment import ChainEnvironment
from rye.executor.config.http import shown_request
from rye.executor.config.merge import interpreter_variables
from rye.executor.config.shells import is_shell
from rye.executor.locks.file import StoredLock
from rye.executor.run.outcome import Outcome
from rye.executor.run.primitives import HTTP_CLIENT, SUBPROCESS
from rye.items.element import ChainElement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def masked_config(
    chain: Sequence[ChainElement],
    parameters: Mapping[str, Any],
    env: ChainEnvironment,
    anchor: Anchor | None,
    context: Context,
) -> ExecutionConfig:
    """The config with ``${NAME}`` for each value of the environment.

    Interpreters stay as they are, and so do shells, which decide what is quoted.
    """
    shown = interpreter_variables(chain)
    masked = {
        name: value if name in shown or not value or is_shell(value) else f"${{{name}}}"
        for name, value in env.env.items()
    }
    return build_execution_config(
        chain, parameters, replaced(env, env=masked), anchor, context, masked=True
    )


def planned(
    chain: Sequence[ChainElement],
    config: ExecutionConfig,
    shown: ExecutionConfig,
    lock: StoredLock | None,
    dependencies: Mapping[str, str],
    *,
    use_lockfile: bool,
) -> Outcome:
    """The outcome of a dry run: ``config`` would run, ``shown`` is the same with values masked.

    Raises :class:`ConfigTemplateError` for a request that could not be sent.
    """
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
        plan["argv"] = [shown.config["command"], *(shown.config.get("args") or ())]
        plan["cwd"] = shown.config["cwd"]
        plan["stdin_bytes"] = len(str(settings.get("input_data") or "").encode())
    elif config.primitive_id == HTTP_CLIENT:
        plan["request"] = shown_request(config.config, config.params, shown.config, chain[0])
    else:
        plan["config_keys"] = sorted(settings)
    return Outcome(success=True, data=plan, metadata={"plan": plan})
