"""Run a chain's config with the real primitive, and check what the process received."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from lilux.primitives.subprocess import SubprocessPrimitive, SubprocessResult
from rye.executor.chain.anchor import resolve_anchor
from rye.executor.config.build import build_execution_config
from rye.executor.config.environment import resolve_chain_env
from rye.items.element import ChainElement
from rye_elements import Workshop

ATTACK = "${SECRET} {env} {params_json} $(touch pwned) `touch pwned` '\"\\ ; touch pwned\n-- ü"


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path, {"PATH": "/usr/bin:/bin", "SECRET": "hunter2"})


def run(workshop: Workshop, chain: list[ChainElement], parameters: dict[str, Any]) -> str:
    env = resolve_chain_env(chain, workshop.context)
    anchor = resolve_anchor(chain, workshop.context)
    built = build_execution_config(chain, parameters, env, anchor, workshop.context)

    async def job() -> SubprocessResult:
        return await SubprocessPrimitive().execute(built.config, built.params)

    result = asyncio.run(job())
    assert result.success, result.stderr
    assert not (workshop.project / "pwned").exists()
    return result.stdout


def tool(workshop: Workshop, **config: Any) -> list[ChainElement]:
    return [workshop.element("t.yaml", config=config), workshop.primitive()]


@pytest.mark.parametrize("args", [["-c", 'printf %s "$1"', "sh", "{v}"], ["-c", 'printf %s "$V"']])
def test_an_attack_arrives_as_plain_text(workshop: Workshop, args: list[str]) -> None:
    chain = tool(workshop, command="sh", args=args, env={"V": "{v}"})
    assert run(workshop, chain, {"v": ATTACK}) == ATTACK


def test_a_variable_of_a_checkouts_dotenv_is_plain_text(
    workshop: Workshop,
) -> None:
    attack = "$(touch pwned) {v} `touch pwned`; touch pwned"
    (workshop.project / ".env").write_text(f"NAME='{attack}'\n")
    chain = tool(workshop, command="sh", args=["-c", 'printf "%s|%s" ${NAME} "$NAME"'])
    assert run(workshop, chain, {"v": "x"}) == f"{attack}|{attack}"


def test_a_whole_argument_arrives_unchanged(workshop: Workshop) -> None:
    chain = tool(workshop, command="printf", args=["%s|", "{v}", "--x={v}", "{list}"])
    given = {"v": ATTACK, "list": ["a b", "--"]}
    assert run(workshop, chain, given) == f"{ATTACK}|--x={ATTACK}|a b|--|"


def test_large_parameters_are_sent_on_stdin(workshop: Workshop) -> None:
    chain = tool(workshop, command="cat", args=[], input_data="{params_json}")
    given = {"big": "x" * 300_000, "nul": "\0", "text": ATTACK}
    assert json.loads(run(workshop, chain, given)) == given


def test_the_environment_is_exact_and_the_anchor_applies(workshop: Workshop) -> None:
    """The environment of this process is not added, although there are few variables."""
    anchor = {"mode": "always", "cwd": "{anchor_path}", "env_paths": {"P": {"append": ["lib"]}}}
    runtime = workshop.element(
        "r.yaml",
        config={"command": "sh", "args": ["-c", "env; pwd"]},
        env_config={"env": {"LEVEL": "runtime"}},
        anchor=anchor,
    )
    element = workshop.element("pkg/tool.x", env_config={"env": {"LEVEL": "tool of ${LEVEL}"}})
    folder = workshop.tools("project") / "pkg"
    *lines, cwd = run(workshop, [element, runtime, workshop.primitive()], {}).splitlines()
    seen = dict(line.split("=", 1) for line in lines)
    # The shell sets these.
    for name in ("PWD", "OLDPWD", "_", "SHLVL"):
        seen.pop(name, None)
    assert seen == {
        "PATH": "/usr/bin:/bin",
        "SECRET": "hunter2",
        "LEVEL": "tool of runtime",
        "P": f"{folder}/lib",
    }
    assert cwd == str(folder)
