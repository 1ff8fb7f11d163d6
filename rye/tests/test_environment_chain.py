"""The environment of a chain: precedence, and what a checkout cannot choose."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
from approved_project import approve
from lilux.primitives.errors import ConfigurationError
from lilux.record import replaced
from rye.context import Context
from rye.errors import InterpreterMissingError, ItemFormatError
from rye.executor.config.asked_names import asked_names
from rye.executor.config.environment import Environments, resolve_chain_env
from rye.items.permissions import Permissions
from rye.spaces.model import SpaceName
from rye_elements import Workshop


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path, {"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "LEVEL": "machine"})


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_tool_overrides_its_runtime_and_the_runtime_the_machine(workshop: Workshop) -> None:
    tool = workshop.element("t.py", env_config={"env": {"LEVEL": "tool"}})
    runtime = workshop.element("r.yaml", env_config={"env": {"LEVEL": "runtime", "MORE": "yes"}})
    primitive = workshop.primitive()

    both = resolve_chain_env([tool, runtime, primitive], workshop.context)
    one = resolve_chain_env([runtime, primitive], workshop.context)
    none = resolve_chain_env([primitive], workshop.context)

    assert (both.env["LEVEL"], both.env["MORE"]) == ("tool", "yes")
    assert one.env["LEVEL"] == "runtime"
    assert none.env == workshop.environ
    assert both.declared == {"LEVEL", "MORE"}
    assert none.declared == frozenset()


def test_only_declared_variables_override(workshop: Workshop) -> None:
    """A tool's rules must not restore the machine's value over its runtime's."""
    tool = workshop.element("t.py", env_config={"env": {"OTHER": "x"}})
    runtime = workshop.element("r.yaml", env_config={"env": {"LEVEL": "runtime"}})
    (workshop.project / ".env").write_text("LEVEL=dotenv\n")
    tool = replaced(tool, metadata=replaced(tool.metadata, permissions=Permissions(env=("LEVEL",))))
    env = resolve_chain_env([tool, runtime, workshop.primitive()], workshop.context).env
    assert env["LEVEL"] == "runtime"


def test_a_tools_template_sees_the_values_of_its_runtime(workshop: Workshop) -> None:
    tool = workshop.element("t.py", env_config={"env": {"FULL": "${BASE}/tool"}})
    runtime = workshop.element("r.yaml", env_config={"env": {"BASE": "${LEVEL}/runtime"}})
    env = resolve_chain_env([tool, runtime, workshop.primitive()], workshop.context).env
    assert env["FULL"] == "machine/runtime/tool"


def test_dotenv_overrides_the_machine_and_the_chain_overrides_dotenv(workshop: Workshop) -> None:
    (workshop.project / ".env").write_text("LEVEL=dotenv\nFROM_FILE=${LEVEL} {x} $(id)\n")
    runtime = workshop.element(
        "r.yaml",
        env_config={"env": {"SEEN": "${FROM_FILE}"}},
        permissions=Permissions(env=("LEVEL",)),
    )
    env = resolve_chain_env([runtime, workshop.primitive()], workshop.context).env
    assert env["LEVEL"] == "dotenv"
    assert env["SEEN"] == "${LEVEL} {x} $(id)"


def test_an_interpreter_is_found_in_the_project(workshop: Workshop) -> None:
    python = executable(workshop.project / ".venv/bin/python")
    rules = {"interpreter": {"type": "venv_python", "var": "RYE_PYTHON", "fallback": "python3"}}
    runtime = workshop.element("r.yaml", env_config=rules)
    result = resolve_chain_env([runtime, workshop.primitive()], workshop.context)
    assert result.env["RYE_PYTHON"] == str(python)
    assert result.declared == {"RYE_PYTHON"}


@pytest.mark.parametrize(
    ("planted", "rules"),
    [
        (".venv/bin/python", {"type": "venv_python"}),
        ("node_modules/.bin/node", {"type": "node_modules"}),
        ("bin/sh", {"type": "system_binary", "binary": "bin/sh"}),
    ],
)
@pytest.mark.parametrize("space", ["project", "user", "system"])
def test_an_interpreter_of_a_checkout_runs_only_tools_of_the_project(
    workshop: Workshop, planted: str, rules: dict[str, str], space: SpaceName
) -> None:
    planted_path = executable(workshop.project / planted)
    interpreter = {**rules, "var": "RYE_X", "fallback": "/bin/sh"}
    runtime = workshop.element("r.yaml", space="system", env_config={"interpreter": interpreter})
    tool = workshop.element("t.x", space=space)
    env = resolve_chain_env([tool, runtime, workshop.primitive()], workshop.context).env
    assert env["RYE_X"] == (str(planted_path) if space == "project" else "/bin/sh")


def test_a_runtime_called_directly_uses_the_interpreter_of_the_project(workshop: Workshop) -> None:
    python = executable(workshop.project / ".venv/bin/python")
    rules = {"interpreter": {"type": "venv_python", "var": "RYE_PYTHON", "fallback": "/bin/sh"}}
    for kind, expected in (("runtime", str(python)), ("tool", "/bin/sh")):
        item = workshop.element("r.yaml", space="system", tool_type=kind, env_config=rules)
        env = resolve_chain_env([item, workshop.primitive()], workshop.context).env
        assert env["RYE_PYTHON"] == expected


def test_in_the_home_directory_the_users_interpreter_is_used(workshop: Workshop) -> None:
    python = executable(workshop.project / ".venv/bin/python")
    at_home = Context(
        project_path=workshop.project,
        user_space=workshop.project,
        system_space=workshop.context.system_space,
        environ=workshop.environ,
    )
    rules = {"interpreter": {"type": "venv_python", "var": "RYE_PYTHON", "fallback": "/bin/sh"}}
    item = workshop.element("r.yaml", space="system", env_config=rules)
    assert resolve_chain_env([item], at_home).env["RYE_PYTHON"] == str(python)


def test_a_tool_may_choose_another_interpreter(workshop: Workshop) -> None:
    mine = executable(workshop.project / "bin/mine")
    rules = {"interpreter": {"type": "system_binary", "binary": "no-such", "var": "RYE_X"}}
    runtime = workshop.element("r.yaml", env_config=rules)
    tool = workshop.element("t.x", env_config={"env": {"RYE_X": "bin/mine"}})
    env = resolve_chain_env([tool, runtime, workshop.primitive()], workshop.context).env
    assert env["RYE_X"] == "bin/mine"
    assert mine.exists()


@pytest.mark.parametrize(
    ("fallback", "problem"),
    [
        (None, "none was found"),
        ("no-such-thing", "'no-such-thing' is not an executable on this machine"),
        ("/no/such/thing", "'/no/such/thing' is not an executable on this machine"),
    ],
)
def test_a_missing_interpreter_names_the_runtime_and_what_to_do(
    workshop: Workshop, fallback: str | None, problem: str
) -> None:
    rules = {"type": "system_binary", "binary": "no-such", "var": "RYE_X", "fallback": fallback}
    runtime = workshop.element("lang/r.yaml", env_config={"interpreter": rules})
    with pytest.raises(InterpreterMissingError) as caught:
        resolve_chain_env([runtime, workshop.primitive()], workshop.context)
    assert str(caught.value) == (
        f"the interpreter of 'lang/r' ({runtime.path}) is missing: {problem}; "
        "install it, or set RYE_X in the env_config of the tool"
    )


def test_a_checkout_cannot_choose_the_interpreter_by_its_dotenv(
    workshop: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    evil = executable(workshop.project / "evil/python3")
    (workshop.project / ".env").write_text(f"PATH={evil.parent}\nMY_X={evil}\nFINE=1\n")
    rules = {"type": "system_binary", "binary": "sh", "var": "MY_X", "fallback": "sh"}
    asked = Permissions(env=("PATH", "MY_*", "FINE"))
    runtime = workshop.element("r.yaml", env_config={"interpreter": rules}, permissions=asked)
    no_such = {"interpreter": {**rules, "binary": "no-such"}}
    lost = workshop.element("lost.yaml", env_config=no_such, permissions=asked)
    with caplog.at_level(logging.WARNING):
        env = resolve_chain_env([runtime, workshop.primitive()], workshop.context).env
    assert env["PATH"] == "/usr/bin:/bin"
    machine_sh = shutil.which("sh", path="/usr/bin:/bin")
    assert env["MY_X"] == machine_sh
    assert env["FINE"] == "1"
    assert f"{workshop.project}/.env: PATH is ignored: it decides which program runs" in caplog.text
    assert str(evil) not in caplog.text
    assert resolve_chain_env([lost], workshop.context).env["MY_X"] == machine_sh


def test_a_malformed_declaration_names_file_and_field(workshop: Workshop) -> None:
    runtime = workshop.element("r.yaml", env_config={"env": {"N": 1}})
    with pytest.raises(ItemFormatError) as caught:
        resolve_chain_env([runtime, workshop.primitive()], workshop.context)
    assert str(caught.value) == (
        f"{runtime.path}: env_config.env.N: expected a string, got int; quote it"
    )


def test_a_dotenv_that_is_not_text_is_an_error(workshop: Workshop) -> None:
    (workshop.project / ".env").write_bytes(b"\xff\xfe")
    asking = workshop.element("t.yaml", permissions=Permissions(env=("A",)))
    with pytest.raises(ConfigurationError, match="is not UTF-8 text; fix or remove it"):
        resolve_chain_env([asking], workshop.context)


def test_a_chain_that_asks_for_nothing_does_not_read_the_dotenv(workshop: Workshop) -> None:
    (workshop.project / ".env").write_bytes(b"\xff\xfe")
    runtime = workshop.element("r.yaml", config={"args": ["${RYE_ANCHOR_PATH}"]})
    chain = [runtime, workshop.primitive()]
    assert resolve_chain_env(chain, workshop.context).env == workshop.environ


def test_values_are_not_part_of_the_repr(workshop: Workshop) -> None:
    workshop.environ["TOKEN"] = "hunter2"
    assert "hunter2" not in repr(resolve_chain_env([workshop.primitive()], workshop.context))


# ── resolved again and again ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("declares", [False, True])
def test_a_dotenv_that_appears_changes_or_disappears_is_noticed(
    workshop: Workshop, declares: bool
) -> None:
    rules = {"env": {"LEVEL": "tool"}} if declares else None
    asked = Permissions(env=("A",))
    chain = [workshop.element("t.py", env_config=rules, permissions=asked), workshop.primitive()]
    environments = Environments(workshop.context)
    dotenv = workshop.project / ".env"

    assert "A" not in environments.resolve(chain).env
    for value in ("1", "2"):
        dotenv.write_text(f"A={value}\n")
        approve(workshop.context)
        assert environments.resolve(chain).env["A"] == value
    dotenv.unlink()
    assert "A" not in environments.resolve(chain).env


def test_an_invalid_dotenv_is_an_error_every_time(workshop: Workshop) -> None:
    (workshop.project / ".env").write_bytes(b"\xff\n")
    environments = Environments(workshop.context)
    chain = [workshop.element("t.yaml", permissions=Permissions(env=("A",)))]
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="is not UTF-8 text; fix or remove it"):
            environments.resolve(chain)


def test_an_interpreter_that_appears_is_noticed(workshop: Workshop) -> None:
    rules = {"interpreter": {"type": "venv_python", "var": "RYE_PYTHON", "fallback": "/bin/sh"}}
    chain = [workshop.element("t.py", env_config=rules), workshop.primitive()]
    environments = Environments(workshop.context)
    assert environments.resolve(chain).env["RYE_PYTHON"] == "/bin/sh"
    python = executable(workshop.project / ".venv/bin/python")
    approve(workshop.context)
    assert environments.resolve(chain).env["RYE_PYTHON"] == str(python)


@pytest.mark.parametrize(
    ("config", "rules"),
    [
        ({"command": "${PROGRAM:-/bin/echo}"}, None),
        ({"command": "${FOLDER}/bin/${PROGRAM}"}, {"env": {"OTHER": "x"}}),
        ({"command": "{chosen}", "chosen": "{again}", "again": "${PROGRAM}"}, None),
        ({"command": "${CHOSEN}"}, {"env": {"CHOSEN": "${PROGRAM:-/bin/echo}"}}),
        ({"command": "{command}${PROGRAM}"}, None),
        ({"command": "/bin/cat", "mcp_server": {"command": "${PROGRAM}"}}, None),
        ({"command": "/bin/cat", "servers": [{"command": "${PROGRAM}"}]}, None),
        ({"command": "cat"}, {"env": {"PATH": "${PROGRAM}:/bin"}}),
        ({"command": "cat", "env": {"PATH": "${FOLDER}"}}, {"env": {"FOLDER": "${PROGRAM}"}}),
    ],
)
def test_a_checkout_cannot_choose_the_command_by_its_dotenv(
    workshop: Workshop, config: dict[str, str], rules: dict[str, object] | None
) -> None:
    (workshop.project / ".env").write_text("PROGRAM=evil\nFINE=1\n")
    asked = Permissions(env=("PROGRAM", "FINE"))
    tool = workshop.element("t.yaml", space="user", permissions=asked)
    runtime = workshop.element("r.yaml", space="user", config=config, env_config=rules)
    env = Environments(workshop.context).resolve([tool, runtime, workshop.primitive()]).env
    assert "PROGRAM" not in env
    assert env["FINE"] == "1"


def test_the_machine_may_choose_the_command(workshop: Workshop) -> None:
    context = Context(
        project_path=workshop.context.project_path,
        user_space=workshop.context.user_space,
        system_space=workshop.context.system_space,
        environ={"PROGRAM": "/bin/mine"},
    )
    (workshop.project / ".env").write_text("PROGRAM=evil\n")
    runtime = workshop.element("r.yaml", config={"command": "${PROGRAM}"})
    assert resolve_chain_env([runtime], context).env["PROGRAM"] == "/bin/mine"


# ── what a chain asks for ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "metadata",
    [
        {"permissions": Permissions(env=("NAME",))},
        {"permissions": Permissions(env=("NA*",))},
        {"env_config": {"env": {"OTHER": "x-${NAME:-default}"}}},
        {"config": {"args": ["--token", "${NAME}"]}},
        {"config": {"headers": {"Authorization": "Bearer ${NAME}"}}},
        {"config": {"body": {"deep": [{"er": "${NAME}"}]}}},
    ],
)
@pytest.mark.parametrize("space", ["project", "user", "system"])
def test_a_name_in_a_signed_file_is_supplied(
    workshop: Workshop, metadata: dict[str, Any], space: SpaceName
) -> None:
    lines = "NAME=value\nNOT=1\nname=1\nPATH=evil\nRYE_X=1\n"
    (workshop.project / ".env").write_text(lines)
    tool = workshop.element("t.yaml", space=space, **metadata)
    env = resolve_chain_env([tool, workshop.primitive()], workshop.context).env
    assert (env["NAME"], "NOT" in env, "name" in env) == ("value", False, False)
    assert Environments(workshop.context).unasked([tool]) == ["NOT", "name"]


def test_a_key_that_the_chain_sets_does_not_ask_for_a_value(workshop: Workshop) -> None:
    tool = workshop.element("t.yaml", env_config={"env": {"NAME": "mine"}})
    assert not asked_names([tool]).takes("NAME")


def test_the_interpreter_is_found_without_the_values_of_the_dotenv(workshop: Workshop) -> None:
    """Also if a signed file asks for a variable that a version manager obeys."""
    good = executable(workshop.root / "good/versions/3.11/bin/python")
    executable(workshop.project / "evil/versions/3.11/bin/python")
    workshop.environ["PYENV_ROOT"] = str(workshop.root / "good")
    (workshop.project / ".env").write_text(f"PYENV_ROOT={workshop.project}/evil\n")
    rules = {"type": "version_manager", "manager": "pyenv", "version": "3.11", "var": "MY_PYTHON"}
    env_config = {"interpreter": rules, "env": {"SEEN": "${MY_PYTHON}"}}
    tool = workshop.element(
        "t.yaml", env_config=env_config, permissions=Permissions(env=("PYENV_*",))
    )
    env = resolve_chain_env([tool, workshop.primitive()], workshop.context).env
    assert (env["MY_PYTHON"], env["SEEN"]) == (str(good), str(good))
    assert env["PYENV_ROOT"] == f"{workshop.project}/evil"


def test_shown_names_are_those_that_may_be_supplied(workshop: Workshop) -> None:
    tool = workshop.element(
        "t.yaml",
        permissions=Permissions(env=("TOKEN", "AWS_*", "PATH")),
        config={"command": "${PROGRAM}", "args": ["${RYE_PYTHON}", "${WORD}"]},
    )
    assert asked_names([tool]).shown() == ("AWS_*", "TOKEN", "WORD")
