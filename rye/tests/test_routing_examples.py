"""The worked examples, routing patterns and executor ids of executor-routing.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback_http import LoopbackServer, respond
from rye.executor.run.result import ExecutionResult
from rye_project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, shipped_system=True)


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer() as server:
        yield server


def ids(result: ExecutionResult) -> list[str]:
    return [element["item_id"] for element in result.chain]


def test_example_1_a_primitive_is_run_directly(project: Project) -> None:
    result = project.run("subprocess", {"command": "echo", "args": ["hello"]})

    assert result.data == {"stdout": "hello\n", "stderr": "", "return_code": 0}
    assert ids(result) == ["rye/core/primitives/subprocess"]


def test_example_1_parameters_of_a_primitive_are_not_templates(project: Project) -> None:
    result = project.run("subprocess", {"command": "echo", "args": ["{message}", "${HOME}"]})

    assert result.data["stdout"] == "{message} ${HOME}\n"


def test_example_2_a_runtime_is_run_with_its_environment(project: Project) -> None:
    result = project.run("python_runtime", {"script": "print('hello')"})

    assert result.data == {"stdout": "hello\n", "stderr": "", "return_code": 0}
    assert ids(result) == ["rye/core/runtimes/python_runtime", "rye/core/primitives/subprocess"]


def test_example_2_the_projects_interpreter_takes_precedence_over_the_users(
    project: Project,
) -> None:
    script = "import os; print(os.environ['RYE_PYTHON'], os.environ['PROJECT_VENV_PYTHON'],"
    script += " os.environ['PYTHONUNBUFFERED'])"
    for root in (project.user, project.path):
        python = root / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.symlink_to("/usr/bin/python3")

        assert project.run("python_runtime", {"script": script}).data["stdout"] == (
            f"{python} {python} 1\n"
        )


GIT = '''\
__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "python_runtime"
__category__ = "capabilities"

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "description": "git command (clone, pull, etc.)"},
        "args": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["command"]
}

def main(command: str, args: list = None) -> dict:
    """Execute git command."""
    import subprocess
    result = subprocess.run(
        ["git", command] + (args or []),
        capture_output=True,
        text=True
    )
    return {
        "stdout": result.stdout,
        "stderr": result.stderr,
        "returncode": result.returncode,
    }
'''


def test_example_3_a_tool_delegates_to_a_runtime(project: Project) -> None:
    project.tool("capabilities/git.py", GIT)

    result = project.run("capabilities/git", {"command": "version"})

    assert result.data["returncode"] == 0
    assert result.data["stdout"].startswith("git version ")
    assert ids(result) == [
        "capabilities/git",
        "rye/core/runtimes/python_runtime",
        "rye/core/primitives/subprocess",
    ]


def test_pattern_1_a_file_cannot_claim_to_be_a_primitive(project: Project) -> None:
    project.tool("mine.py", '__version__ = "1.0.0"\n__executor_id__ = None\n')

    assert project.run("mine").metadata["error_type"] == "UnknownPrimitiveError"


def test_pattern_2_a_tool_on_the_subprocess_primitive(project: Project) -> None:
    project.yaml(
        "greet", executor_id="subprocess", config={"command": "echo", "args": ["hi", "{name}"]}
    )

    result = project.run("greet", {"name": "{x} ${HOME}"})

    assert result.data["stdout"] == "hi {x} ${HOME}\n"
    assert ids(result) == ["greet", "rye/core/primitives/subprocess"]


def test_pattern_3_a_tool_on_a_users_language_runtime(project: Project) -> None:
    project.yaml(
        "runtimes/sh_runtime",
        space="user",
        tool_type="runtime",
        executor_id="subprocess",
        env_config={"env": {"GREETING": "from the runtime", "BOTH": "runtime"}},
        config={"command": "/bin/sh", "args": ["{tool_path}"]},
    )
    project.tool(
        "hello.sh",
        '# /// rye\n# version = "1.0.0"\n# executor_id = "sh_runtime"\n'
        '# env_config = { env = { BOTH = "tool over ${BOTH}" } }\n# ///\n'
        'echo "$GREETING, $BOTH"\n',
    )

    result = project.run("hello")

    assert result.data["stdout"] == "from the runtime, tool over runtime\n"
    assert [element["space"] for element in result.chain] == ["project", "user", "system"]


SUBPROCESS_TOOL = """\
version: "1.0.0"
executor_id: subprocess
config: {command: echo, args: ["[42]"]}
"""

HTTP_TOOL = """\
version: "1.0.0"
executor_id: http_client
config: {url: "SERVER/x"}
"""

PYTHON_TOOL = """\
__version__ = "1.0.0"
__executor_id__ = "python_runtime"

def main():
    return [42]
"""

NODE_TOOL = """\
// /// rye
// version = "1.0.0"
// executor_id = "node_runtime"
// ///
export const main = () => [42];
"""


@pytest.mark.parametrize(
    ("executor_id", "name", "text"),
    [
        ("subprocess", "tool.yaml", SUBPROCESS_TOOL),
        ("http_client", "tool.yaml", HTTP_TOOL),
        ("python_runtime", "tool.py", PYTHON_TOOL),
        ("node_runtime", "tool.mjs", NODE_TOOL),
    ],
)
def test_every_executor_id_of_the_table_works(
    project: Project, server: LoopbackServer, executor_id: str, name: str, text: str
) -> None:
    server.on("/x", respond(200, json=[42]))
    project.tool(name, text.replace("SERVER", server.url))

    result = project.run("tool")

    assert (result.error, result.data) == (None, [42])
    assert ids(result)[1].endswith(f"/{executor_id}")


@pytest.mark.parametrize(
    ("language", "extension", "body", "args"),
    [
        ("perl", "pl", 'print "perl: $ARGV[0]\\n";\n', ["{tool_path}", "{params_json}"]),
        ("awk", "awk", 'BEGIN { getline; print "awk: " $0 }\n', ["-f", "{tool_path}"]),
    ],
)
def test_one_yaml_file_adds_a_language(
    project: Project, language: str, extension: str, body: str, args: list[str]
) -> None:
    project.tool(
        f"runtimes/{language}_runtime.yaml",
        'version: "1.0.0"\n'
        "tool_type: runtime\n"
        "executor_id: rye/core/primitives/subprocess\n"
        "env_config:\n"
        f"  interpreter: {{type: system_binary, binary: {language}, var: RYE_{language.upper()}}}\n"
        "config:\n"
        f'  command: "${{RYE_{language.upper()}}}"\n'
        f"  args: {args!r}\n"
        '  input_data: "{params_json}"\n',
    )
    project.tool(
        f"tool.{extension}",
        f'# /// rye\n# version = "1.0.0"\n# executor_id = "{language}_runtime"\n# ///\n{body}',
    )

    result = project.run("tool", {"a": 1})

    assert (result.error, result.data["stdout"]) == (None, f'{language}: {{"a":1}}\n')


def test_a_language_that_is_not_installed_is_reported(project: Project) -> None:
    project.yaml(
        "cobol_runtime",
        tool_type="runtime",
        executor_id="subprocess",
        env_config={"interpreter": {"type": "system_binary", "binary": "cobc", "var": "RYE_COBC"}},
        config={"command": "${RYE_COBC}", "args": ["{tool_path}"]},
    )
    project.yaml("tool", executor_id="cobol_runtime")

    assert project.run("tool").metadata["error_type"] == "InterpreterMissingError"
