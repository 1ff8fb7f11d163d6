"""``rye check``: mistakes in a tool, each with a message that ends in the fix."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import rye.authoring
from rye.authoring.check import Checker, refuse_what_cannot_run
from rye.authoring.report import Report
from rye.authoring.settings_file import USER_SECTIONS, check_settings
from rye.errors import ItemFormatError
from rye.executor.chain.snapshot import Library
from rye_project import SUBPROCESS, Project

FIX = "correct it and sign again"
PYTHON = '__executor_id__ = "rye/core/runtimes/python_runtime"\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, shipped_system=True)


def check(project: Project, item_id: str = "t") -> Report:
    """The report, with paths relative to the project."""
    report = Checker(project.context).check(item_id)
    start = f"{project.path.resolve()}/"
    errors = tuple(one.replace(start, "") for one in report.errors)
    return report._replace(
        errors=errors, warnings=tuple(one.replace(start, "") for one in report.warnings)
    )


def yaml(project: Project, **fields: Any) -> Report:
    defaults = {"executor_id": SUBPROCESS, "description": "x", "permissions": {}}
    project.yaml("t", **{**defaults, "config": {"command": "true"}, **fields})
    return check(project)


def schema(*names: str, **more: Any) -> dict[str, Any]:
    properties = {name: {"type": "string"} for name in names}
    return {"properties": properties, "additionalProperties": False, **more}


def test_a_sound_tool_has_no_findings(project: Project) -> None:
    config = {"command": "echo", "args": ["{who}"], "timeout": 5}
    assert yaml(project, config=config, config_schema=schema("who")) == Report("t")


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        (
            {"descripton_of_it": "x"},
            ":10: unknown key 'descripton_of_it' (did you mean 'description'?)",
        ),
        ({"colour": "red"}, ":10: unknown key 'colour', which nothing reads; remove it and sign"),
        (
            {"config": {"command": "true", "tiemout": 3}},
            ": unknown setting 'config.tiemout' (did you mean 'timeout'?)",
        ),
        (
            {"annotations": {"readonly": True}},
            ": unknown key 'annotations.readonly' (did you mean 'read_only'?)",
        ),
        (
            {"config_schema": {"propertis": {}, "type": "object"}},
            ": unknown key 'config_schema.propertis' (did you mean 'properties'?)",
        ),
        (
            {"config_schema": {"properties": {"a": {"type": "text"}}}},
            ": the schema of the parameters: ",
        ),
        (
            {"config": {"command": "no-such-program-xyz"}},
            ": the program 'no-such-program-xyz' is not installed; install it, or correct",
        ),
    ],
)
def test_what_nobody_can_have_meant_is_an_error(
    project: Project, fields: dict[str, Any], error: str
) -> None:
    (found,) = yaml(project, **fields).errors
    assert found.startswith(f".ai/tools/t.yaml{error}")


def test_a_key_for_another_program_may_stand(project: Project) -> None:
    assert yaml(project, **{"x-team": "core"}).state == "ok"


def test_a_placeholder_without_a_parameter_is_an_error(project: Project) -> None:
    config = {"command": "echo", "args": ["{whoo}", "{project_path}"]}
    report = yaml(project, config=config, config_schema=schema("who"))
    assert "\n".join(report.errors) == (
        ".ai/tools/t.yaml: unknown placeholder '{whoo}' in config.args (did you mean '{who}'?); "
        "add whoo to config_schema, or write { whoo } if it is only text"
    )
    assert "\n".join(report.warnings) == (
        ".ai/tools/t.yaml: config does not use the parameters who; "
        "pass them on, for example as {who}, or remove them from config_schema"
    )


def test_with_an_open_schema_only_a_typo_is_an_error(project: Project) -> None:
    config = {"command": "echo", "args": ["{whoo}", "{other}"]}
    report = yaml(project, config=config, config_schema=schema("who", patternProperties={}))
    assert [error.partition("'")[2][:6] for error in report.errors] == ["{whoo}"]


def test_a_tool_without_a_schema_or_description_gets_advice(project: Project) -> None:
    project.tool("t.py", PYTHON + "PERMISSIONS = {}\ndef execute(params, project_path): ...\n")
    assert "\n".join(check(project).warnings) == (
        ".ai/tools/t.py: has no description, by which people and agents find it; add one\n"
        ".ai/tools/t.py: has no schema, so that any parameters are accepted and agents cannot "
        "know them; declare config_schema, or in Python annotate main(…)"
    )


def test_a_missing_module_is_an_error_before_the_first_call(project: Project) -> None:
    project.tool("t.py", PYTHON + "import json, no_such_module_xyz\ndef main(): ...\n")
    (error,) = check(project).errors
    assert error.startswith(".ai/tools/t.py: the module 'no_such_module_xyz' is not installed for")
    assert error.endswith(" -m pip install no_such_module_xyz")


def test_a_module_that_may_be_missing_is_no_error(project: Project) -> None:
    text = "try:\n    import no_such_module_xyz\nexcept ImportError:\n    pass\ndef main(): ...\n"
    project.tool("t.py", PYTHON + text)
    assert check(project).errors == ()


def test_an_unknown_dunder_name_is_an_error(project: Project) -> None:
    project.tool("t.py", f'{PYTHON}__tool_desc__ = "x"\n__author__ = "me"\ndef main(): ...\n')
    (error,) = check(project).errors
    meant = "(did you mean '__tool_description__'?)"
    assert error == f".ai/tools/t.py:3: unknown name '__tool_desc__' {meant}; {FIX}"


def test_an_unsigned_tool_is_checked_too(project: Project) -> None:
    text = f"executor_id: {SUBPROCESS}\nconfig: {{command: 'true', tiemout: 3}}\n"
    project.tool("t.yaml", text, signed=False)
    report = check(project)
    assert "unknown setting 'config.tiemout'" in report.errors[0]
    assert report.errors[1].startswith("t is not signed: ")


def refused(project: Project, name: str, text: str) -> str:
    path = project.tool(name, text, signed=False)
    library, root = Library(project.context), (project.path / ".ai").resolve()
    with pytest.raises(ItemFormatError) as caught:
        refuse_what_cannot_run("t", path, root, library)
    return str(caught.value).replace(f"{path}", name)


BASH = '# /// rye\n# executor_id = "bash_runtime"\n# ///\n'


def test_a_merge_conflict_is_not_signed(project: Project) -> None:
    text = f"{BASH}<<<<<<< HEAD\necho a\n=======\necho b\n>>>>>>> other\n"
    assert refused(project, "t.sh", text) == (
        "t.sh:4: has the marks of a merge conflict; merge the content, "
        "then sign it with: rye sign --resolve t.sh"
    )


def test_a_shell_script_with_a_syntax_error_is_not_signed(project: Project) -> None:
    message = refused(project, "t.sh", f"{BASH}if true; then\n")
    assert message == f"t.sh:5: has a syntax error (unexpected end of file); {FIX}"


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_javascript_with_a_syntax_error_is_not_signed(project: Project) -> None:
    block = BASH.replace("#", "//").replace("bash_", "node_")
    message = refused(project, "t.mjs", f"{block}export function main( {{\n")
    assert message.startswith("t.mjs:")
    assert message.endswith(FIX)


def test_unknown_sections_of_the_settings_are_errors(project: Project) -> None:
    path = project.path / ".ai" / "config.yaml"
    path.write_text("mpc:\n  featured: []\nmcp:\n  feature: []\n")
    user = project.user / ".ai" / "config.yaml"
    user.write_text("grant: []\n")
    reports = list(check_settings(project.context))
    assert [error for report in reports for error in report.errors] == [
        f"{path}:1: unknown key 'mpc' (did you mean 'mcp'?); correct it",
        f"{path}:3: unknown key 'mcp.feature' (did you mean 'featured'?); correct it",
        f"{user}:1: unknown key 'grant' (did you mean 'grants'?); correct it",
    ]
    path.write_text("# nothing\n")
    user.write_text("history: {}\n")
    assert [report.state for report in check_settings(project.context)] == ["ok", "ok"]


def test_every_section_that_the_code_reads_is_known() -> None:
    """A new section must be listed, or `rye check` calls it an error."""
    sources = [path.read_text() for path in Path(rye.authoring.__file__).parents[1].rglob("*.py")]
    readers = [text for text in sources if "UserConfig(" in text]
    pattern = r'config(?:\.current\(\))?\.get\("(\w+)"'
    read = {name for text in readers for name in re.findall(pattern, text)}
    assert {"grants", "history"} <= read <= set(USER_SECTIONS)
