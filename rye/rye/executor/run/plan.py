"""The plan that a dry run returns: what would run, without values of the environment.

The plan is rendered with an environment in which the value of every variable, except for
interpreters and shells, is its name: a token on a command line shows as ``${TOKEN}``. The real
config is built before, so a dry run fails where the run would.
"""

from __future__ import annotations

from lilux.record import replaced

from rye.context import Context
from rye.executor.chain.build import describe_chain
from rye.executor.config.build import ExecutionConfig, build_execution_config
from rye.executor.config.http import shown_request
from rye.executor.config.inert import is_shell
from rye.executor.config.merge import interpreter_variables
from rye.executor.run.outcome import Outcome
from rye.executor.run.prepare import PreparedCall
from rye.spaces.ids import HTTP_CLIENT, SUBPROCESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def planned(call: PreparedCall, context: Context) -> Outcome:
    """The outcome of a dry run.

    Raises :class:`ConfigTemplateError` for a request that could not be sent.
    """
    chain, config, lock = call.chain, call.config, call.lock
    settings = config.config
    shown = _masked_config(call, context)
    unlocked = "absent" if call.options.locked else "not used"
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
            "state": "verified" if lock else unlocked,
            "path": str(lock.path) if lock else None,
        },
        "dependencies": dict(call.dependencies),
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


def _masked_config(call: PreparedCall, context: Context) -> ExecutionConfig:
    """The config with ``${NAME}`` for each value of the environment.

    Interpreters keep their values, and so do shells, whose scripts may contain ``${VAR}``.
    """
    env = call.environment
    shown = interpreter_variables(call.chain)
    masked = {
        name: value if name in shown or not value or is_shell(value) else f"${{{name}}}"
        for name, value in env.env.items()
    }
    return build_execution_config(
        call.chain,
        call.parameters,
        replaced(env, env=masked),
        call.placement.anchor,
        context,
        masked=True,
        places=call.placement.names,
    )
