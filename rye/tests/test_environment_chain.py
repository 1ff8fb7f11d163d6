"""The environment of a chain: who overrides whom, and what a checkout cannot choose."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest
from lilux.primitives.errors import ConfigurationError
from rye.errors import InterpreterMissingError, ItemFormatError
from rye.executor.environment import resolve_chain_env
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
    """A tool with rules of its own does not bring the machine's value back over its runtime's."""
    tool = workshop.element("t.py", env_config={"env": {"OTHER": "x"}})
    runtime = workshop.element("r.yaml", env_config={"env": {"LEVEL": "runtime"}})
    (workshop.project / ".env").write_text("LEVEL=dotenv\n")
    env = resolve_chain_env([tool, runtime, workshop.primitive()], workshop.context).env
    assert env["LEVEL"] == "runtime"


def test_a_tools_template_sees_the_values_of_its_runtime(workshop: Workshop) -> None:
    tool = workshop.element("t.py", env_config={"env": {"FULL": "${BASE}/tool"}})
    runtime = workshop.element("r.yaml", env_config={"env": {"BASE": "${LEVEL}/runtime"}})
    env = resolve_chain_env([tool, runtime, workshop.primitive()], workshop.context).env
    assert env["FULL"] == "machine/runtime/tool"


def test_dotenv_lies_between_the_machine_and_the_chain(workshop: Workshop) -> None:
    (workshop.project / ".env").write_text("LEVEL=dotenv\nFROM_FILE=${LEVEL} {x} $(id)\n")
    runtime = workshop.element("r.yaml", env_config={"env": {"SEEN": "${FROM_FILE}"}})
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


def test_a_tool_may_choose_another_interpreter(workshop: Workshop) -> None:
    mine = executable(workshop.project / "bin/mine")
    rules = {"interpreter": {"type": "system_binary", "binary": "no-such", "var": "RYE_X"}}
    runtime = workshop.element("r.yaml", env_config=rules)
    tool = workshop.element("t.x", env_config={"env": {"RYE_X": "bin/mine"}})
    env = resolve_chain_env([tool, runtime, workshop.primitive()], workshop.context).env
    assert env["RYE_X"] == "bin/mine"
    assert mine.exists()


@pytest.mark.parametrize(
    ("fallback", "what"),
    [
        (None, "nothing was found"),
        ("no-such-thing", "'no-such-thing' is not an executable here"),
        ("/no/such/thing", "'/no/such/thing' is not an executable here"),
    ],
)
def test_a_missing_interpreter_names_the_runtime_and_what_to_do(
    workshop: Workshop, fallback: str | None, what: str
) -> None:
    rules = {"type": "system_binary", "binary": "no-such", "var": "RYE_X", "fallback": fallback}
    runtime = workshop.element("lang/r.yaml", env_config={"interpreter": rules})
    with pytest.raises(InterpreterMissingError) as caught:
        resolve_chain_env([runtime, workshop.primitive()], workshop.context)
    assert str(caught.value) == (
        f"the interpreter of 'lang/r' ({runtime.path}) is missing: {what}; "
        "install it, or set RYE_X in the env_config of the tool"
    )


def test_a_checkout_cannot_choose_the_interpreter_by_its_dotenv(
    workshop: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    evil = executable(workshop.project / "evil/python3")
    (workshop.project / ".env").write_text(f"PATH={evil.parent}\nRYE_X={evil}\nFINE=1\n")
    rules = {"type": "system_binary", "binary": "sh", "var": "RYE_X", "fallback": "sh"}
    runtime = workshop.element("r.yaml", env_config={"interpreter": rules})
    lost = workshop.element("lost.yaml", env_config={"interpreter": {**rules, "binary": "no-such"}})
    with caplog.at_level(logging.WARNING):
        env = resolve_chain_env([runtime, workshop.primitive()], workshop.context).env
    assert env["PATH"] == "/usr/bin:/bin"
    machine_sh = shutil.which("sh", path="/usr/bin:/bin")
    assert env["RYE_X"] == machine_sh
    assert env["FINE"] == "1"
    assert f"{workshop.project}/.env: PATH is ignored: it decides which program runs" in caplog.text
    assert str(evil) not in caplog.text
    assert resolve_chain_env([lost], workshop.context).env["RYE_X"] == machine_sh


def test_a_malformed_declaration_names_file_and_field(workshop: Workshop) -> None:
    runtime = workshop.element("r.yaml", env_config={"env": {"N": 1}})
    with pytest.raises(ItemFormatError) as caught:
        resolve_chain_env([runtime, workshop.primitive()], workshop.context)
    assert str(caught.value) == (
        f"{runtime.path}: env_config.env.N: expected text, got int; put it in quotes; "
        "mend the env_config"
    )


def test_a_dotenv_that_is_no_text_is_an_error(workshop: Workshop) -> None:
    (workshop.project / ".env").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="is not UTF-8 text; mend or remove it"):
        resolve_chain_env([workshop.primitive()], workshop.context)


def test_values_stay_out_of_the_repr(workshop: Workshop) -> None:
    workshop.environ["TOKEN"] = "hunter2"
    assert "hunter2" not in repr(resolve_chain_env([workshop.primitive()], workshop.context))
